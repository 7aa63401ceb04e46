package tidy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rooms is how many folders the root may have, so that one look takes them in.
const rooms = 18

// TestRooms counts the folders of the root.
func TestRooms(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders = append(folders, e.Name())
		}
	}
	if len(folders) > rooms {
		t.Errorf("the root has %d folders, at most %d: put the new one where its kind stands (docs/decisions/0032-rooms.md): %s", len(folders), rooms, strings.Join(folders, " "))
	}
}

// tree is every file and folder of the repository by its path from the root, and every
// name that one of them has.
func tree(t *testing.T) (paths, names map[string]bool) {
	t.Helper()
	paths, names = map[string]bool{".": true}, map[string]bool{}
	err := filepath.WalkDir("..", func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case at != "..":
			paths[strings.TrimPrefix(filepath.ToSlash(at), "../")] = true
			names[d.Name()] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths, names
}

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```")
	span  = regexp.MustCompile("`([^`\n]+)`")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	given = regexp.MustCompile(`\bgo (?:run|test|build|vet)\b[^\n]*? (\./[\w./-]+)`)
	// open are parts of a path that the reader fills in.
	open  = regexp.MustCompile(`^(<.*>|[A-Z]+|\*|mine)$`)
	title = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// TestPaths follows every link of every page, and in the pages that say how things are
// today every path in backticks and every ./path of a command. Decisions and the changelog
// tell of their day, when folders had other names.
func TestPaths(t *testing.T) {
	paths, names := tree(t)
	links, spans := 0, 0
	for page := range paths {
		if !strings.HasSuffix(page, ".md") || in(page, "mechanism/solve/highs") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			to, part, _ := strings.Cut(m[1], "#")
			to = path.Join(path.Dir(page), to)
			if path.Base(m[1])[0] == '#' && !strings.Contains(m[1], "/") {
				to = page
			}
			if !paths[to] {
				t.Errorf("%s links to %s, which there is not", page, m[1])
			} else if part != "" && strings.HasSuffix(to, ".md") && !hasTitle(t, to, part) {
				t.Errorf("%s links to %s: the page has no such title", page, m[1])
			}
		}
		if in(page, "docs/decisions") || page == "CHANGELOG.md" {
			continue
		}
		for _, m := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if isPath(m[1], paths, names) {
				spans++
				if !exists(paths, page, m[1]) {
					t.Errorf("%s speaks of `%s`, which there is not", page, m[1])
				}
			}
		}
		for _, m := range given.FindAllStringSubmatch(text, -1) {
			if at := strings.TrimRight(strings.TrimSuffix(m[1], "/..."), "."); !exists(paths, page, at) && !paths[path.Join("run/kube", at)] {
				t.Errorf("%s has a command for %s, which there is not", page, m[1])
			}
		}
	}
	if t.Logf("%d links and %d paths were followed", links, spans); links < 20 || spans < 50 {
		t.Error("the pages are not read as they are written")
	}
}

// isPath reports whether a code span is a path of the repository: it begins with a folder of
// the root, or each of its parts is the name of something here.
func isPath(code string, paths, names map[string]bool) bool {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(code, "./"), "/"), "/")
	if len(parts) < 2 {
		return strings.HasSuffix(code, ".go") || strings.HasSuffix(code, ".md")
	}
	if paths[parts[0]] && !strings.ContainsAny(code, " ()") {
		return true
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return !names[p] })
}

// exists reports whether a path leads somewhere from the root, or from the page's folder, up
// to the part that the reader fills in.
func exists(paths map[string]bool, page, to string) bool {
	parts := strings.Split(to, "/")
	if i := slices.IndexFunc(parts, open.MatchString); i >= 0 {
		to = path.Join(parts[:i]...)
	}
	return paths[path.Clean(to)] || paths[path.Join(path.Dir(page), to)]
}

// hasTitle reports whether a page has a title that a link names by its part behind #.
func hasTitle(t *testing.T, page, part string) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range title.FindAllStringSubmatch(string(data), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		if slug == part {
			return true
		}
	}
	return false
}
