package colocate

import _ "embed" // for Claim

// Claim is an experiment of our own as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
