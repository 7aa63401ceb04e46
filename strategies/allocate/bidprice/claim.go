package bidprice

import _ "embed" // for Claim

// Claim is what the strategy is to hold, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
