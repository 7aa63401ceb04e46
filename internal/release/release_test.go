package release

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestDescribed(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26"}
	if got := described(info); got != Version+" (no commit, go1.26)" {
		t.Errorf("without a commit: %s", got)
	}
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	if got := described(info); got != Version+" (abc with changes, go1.26)" {
		t.Errorf("with one: %s", got)
	}
}

// kinds are what the changes of a version are listed by.
var kinds = []string{"Decisions that changed", "Figures corrected", "New", "Faster", "Fixed"}

// TestChanges: the list of changes has what is not released first, then the version that this is; each with
// the kinds in one order, and a sentence for each change. The chart has the same version.
func TestChanges(t *testing.T) {
	text := read(t, "CHANGELOG.md")
	versions := regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(text, -1)
	if len(versions) < 2 || versions[0][1] != "Unreleased" || versions[1][1] != Version {
		t.Errorf("CHANGELOG.md has the versions %q, expected Unreleased and then %s", versions, Version)
	}
	for _, part := range regexp.MustCompile(`(?m)^## `).Split(text, -1)[1:] {
		name, body, _ := strings.Cut(part, "\n")
		at := 0
		for line := range strings.Lines(body) {
			line = strings.TrimSuffix(line, "\n")
			kind, heading := strings.CutPrefix(line, "### ")
			switch {
			case heading && slices.Index(kinds, kind) < at:
				t.Errorf("%s: %q: expected the kinds %q in this order", name, kind, kinds)
			case heading:
				at = slices.Index(kinds, kind)
			case line != "" && (!strings.HasPrefix(line, "- ") || !strings.HasSuffix(line, ".")):
				t.Errorf("%s: %q: expected a sentence behind a dash", name, line)
			}
		}
	}
	if chart := read(t, "run/kube/deploy/chart/Chart.yaml"); !strings.Contains(chart, "\nversion: "+Version+"\nappVersion: \""+Version+"\"\n") {
		t.Errorf("the chart is of another version than %s", Version)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
