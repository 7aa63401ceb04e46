// Package release says which version this is, and what it was built from.
package release

import (
	"fmt"
	"runtime/debug"
)

// Version is the version that was cut last; .ci/release sets it, with the chart's and the list of changes.
const Version = "0.1.0"

// Build says the version with the commit and the compiler, as far as the build knows them.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	return described(info)
}

func described(info *debug.BuildInfo) string {
	commit, changed := "no commit", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				changed = " with changes"
			}
		}
	}
	return fmt.Sprintf("%s (%s%s, %s)", Version, commit, changed, info.GoVersion)
}
