package jahani

import _ "embed" // for Claim

// Claim is the experiment of the paper as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
