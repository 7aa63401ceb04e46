package tidy

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// dataRow is a file on docs/data.md: its path, bytes and digest.
	dataRow = regexp.MustCompile("(?m)^\\| `([^`/]+)(/[^`]+)` \\| (\\d+) \\| `([0-9a-f]{64})` \\|")
	// dataPath is a path, or how one begins, or a folder with the name of a file behind it; dataFile is a whole one.
	dataPath  = regexp.MustCompile(`"([a-z0-9-]+)(?:(/[\w./-]*)|", "([\w-]+\.[a-z][\w.-]*))"?`)
	dataFile  = regexp.MustCompile(`^"[^"]+\.(csv|json|txt|trace|config|gz)"$`)
	dataTrace = regexp.MustCompile(`[" ](?:philly|helios|pai|openb|pollux|tiresias|chronus):(?:DATA/)?([a-z0-9][\w./-]*)`) // below the data folder
)

// dataRows reads the page.
func dataRows(t *testing.T) (page string, rows [][]string) {
	text, err := os.ReadFile("../docs/data.md")
	if rows = dataRow.FindAllStringSubmatch(string(text), -1); err != nil || len(rows) < 50 {
		t.Fatalf("docs/data.md: %d files were read, expected 50 or more: %v", len(rows), err)
	}
	return string(text), rows
}

// TestDataPage: docs/data.md has every path of the published data that code and claims name, or how it begins.
func TestDataPage(t *testing.T) {
	page, _ := dataRows(t)
	paths, _ := tree(t)
	found := 0
	for at := range paths {
		if ext := filepath.Ext(at); ext != ".yaml" && ext != ".go" || strings.HasSuffix(at, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", at))
		if err != nil {
			t.Fatal(err)
		}
		named := dataTrace.FindAllStringSubmatch(string(text), -1)
		for _, m := range dataPath.FindAllStringSubmatch(string(text), -1) {
			name := m[1] + cmp.Or(m[2], "/"+m[3])
			if strings.Contains(page, "| `"+m[1]+"/") || dataFile.MatchString(m[0]) && !paths[name] {
				named = append(named, []string{"", name})
			}
		}
		for _, m := range named {
			if found++; !strings.Contains(page, m[1]) {
				t.Errorf("%s names %s: docs/data.md does not say where that comes from", at, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d paths of data are named: code is not read as it is written", found)
	}
}

// TestDataDigests: where a set of data is there, its files are those of docs/data.md.
func TestDataDigests(t *testing.T) {
	_, rows := dataRows(t)
	folder := cmp.Or(os.Getenv("MUSTER_DATA"), "../../shared/data")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no published data in %s: docs/data.md says where to get it", folder)
	}
	for _, r := range rows {
		if _, err := os.Stat(filepath.Join(folder, r[1])); err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, r[1]+r[2]))
		if is := fmt.Sprintf("%d %x", len(data), sha256.Sum256(data)); err != nil || is != r[3]+" "+r[4] {
			t.Errorf("%s is %s, and %s %s on docs/data.md: %v", r[1]+r[2], is, r[3], r[4], err)
		}
	}
}
