//go:build race

package costtest

// Slowed says that the race detector is in this program.
const Slowed = true
