package muster

import _ "embed" // for Claim

// Claim is how the order compares with one that knows all times and with those published, as data,
// for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte
