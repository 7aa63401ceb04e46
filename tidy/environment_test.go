package tidy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEnvironment: docs/environment.md names the variables of the environment that the code
// names, tests and scripts too, and no other.
func TestEnvironment(t *testing.T) {
	variable := regexp.MustCompile(`\bMUSTER_[A-Z_]*[A-Z]\b`)
	named := map[string]string{} // and where
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".." {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".py", ".sh", ".js", ".yaml"}, filepath.Ext(path)) || d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		for _, name := range variable.FindAllString(string(data), -1) {
			named[name] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, name := range variable.FindAllString(string(page), -1) {
		if told[name] = true; named[name] == "" {
			t.Errorf("docs/environment.md tells of %s, which no code names: take it out", name)
		}
	}
	for name, path := range named {
		if !told[name] {
			t.Errorf("%s names %s: docs/environment.md does not say what it is", path, name)
		}
	}
}
