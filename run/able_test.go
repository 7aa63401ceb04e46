package run_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryYes: the texts of what must be seen of each act are played on every driver of
// which there is a table, so that no table says what no test has seen.
func TestEveryYes(t *testing.T) {
	tables, err := os.ReadFile("able.go")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`var Abilities = \[\]strategy.Ability{(.*)}`).FindSubmatch(tables)
	if list == nil {
		t.Fatal("able.go: there is no list of the abilities of all drivers")
	}
	var tests strings.Builder
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(string(list[1]), ", ") {
		if !strings.Contains(tests.String(), "runtest.Show(t, run."+name+", ") {
			t.Errorf("no test plays runtest.Show(t, run.%s, ...)", name)
		}
	}
}
