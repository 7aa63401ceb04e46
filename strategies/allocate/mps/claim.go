package mps

import _ "embed" // for Claim

// Claim is the acceptance experiment as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
