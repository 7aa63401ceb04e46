package pipeswitch

import _ "embed" // for Claim

// Claim is the headline experiment as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
