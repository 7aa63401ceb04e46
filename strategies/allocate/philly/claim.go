package philly

import _ "embed" // for Claim

// Claim is the experiment of the paper's guideline as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
