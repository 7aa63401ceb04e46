package mlfs

import _ "embed" // for Claim

// Claim is the experiment of the system as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
