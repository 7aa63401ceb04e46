package catalogue

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

// module is what all import paths begin with.
const module = "github.com/musterdl/muster"

//go:embed skeleton/*.tmpl
var skeletons embed.FS

// skeletonLines are the steps that a skeleton can be written for, with the line that
// puts it in the catalogue.
var skeletonLines = map[string]string{
	"schedule": "tuned(%[1]s.Description, %[1]s.Default, func(c %[1]s.Config, _ Env) any { return %[1]s.New(c) }),",
	"allocate": "plain(%[1]s.Description, %[1]s.Placer{}),",
	"profile":  "plain(%[1]s.Description, %[1]s.Estimator{}),",
	"flow":     "plain(%[1]s.Description, %[1]s.Policy{}),",
	"pipeline": "plain(%[1]s.Description, %[1]s.Partitioner{}),",
}

// Skeleton is a strategy that was just written and does what the null of its step
// does.
type Skeleton struct {
	Files  []string `json:"files"`
	Import string   `json:"import"` // to be added to catalogue/all.go
	Line   string   `json:"line"`   // likewise
}

var strategyName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// NewStrategy writes the folder of a new strategy below the root of the repository,
// in the one shape they all have. Nothing that exists is written over.
func NewStrategy(root, step, name string) (Skeleton, error) {
	line, ok := skeletonLines[step]
	if !ok {
		return Skeleton{}, fmt.Errorf("there is no skeleton for step %q: choose profile, allocate, schedule, pipeline or flow", step)
	}
	if !strategyName.MatchString(name) {
		return Skeleton{}, fmt.Errorf("%q is no name for a strategy: expected small letters, digits and single hyphens, as in my-order", name)
	}
	if e, taken := Find(name); taken {
		return Skeleton{}, fmt.Errorf("there is a strategy %q already, of step %s", name, e.Step)
	}
	if err := isModule(root); err != nil {
		return Skeleton{}, err
	}
	pkg := strings.ReplaceAll(name, "-", "")
	folder := filepath.Join(root, "strategies", step, pkg)
	if err := os.Mkdir(folder, 0o777); err != nil {
		return Skeleton{}, err
	}
	s := Skeleton{Import: fmt.Sprintf("%q", module+"/strategies/"+step+"/"+pkg), Line: fmt.Sprintf(line, pkg)}
	for _, kind := range []string{".go", "_test.go"} {
		text, err := fillSkeleton(step+kind+".tmpl", name, pkg)
		if err != nil {
			return s, err
		}
		file := filepath.Join(folder, pkg+kind)
		if err := os.WriteFile(file, text, 0o666); err != nil {
			return s, err
		}
		s.Files = append(s.Files, file)
	}
	return s, nil
}

// isModule makes sure that a folder is the root of this module, since nothing else
// can add to its catalogue.
func isModule(root string) error {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if first, _, _ := strings.Cut(string(data), "\n"); strings.TrimSpace(first) != "module "+module {
		return fmt.Errorf("%s is not the root of %s: strategies are compiled in, so run this in a copy of its source (or name one with --dir)", root, module)
	}
	return nil
}

func fillSkeleton(file, name, pkg string) ([]byte, error) {
	t, err := template.ParseFS(skeletons, "skeleton/"+file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, struct{ Name, Package, Module string }{name, pkg, module}); err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}
