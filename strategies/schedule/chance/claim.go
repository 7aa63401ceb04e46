package chance

import _ "embed" // for Claim

// Claim is how the policy compares with free passing, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
