package catalogue

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/musterdl/muster/model/strategy"
)

// module is what all import paths begin with.
const module = "github.com/musterdl/muster"

//go:embed skeleton/*.tmpl
var skeletons embed.FS

// stub is how a strategy of a part is made, and what it must pass. In each text NAME stands
// for its package.
type stub struct {
	contract string // the folder of the part's contract
	suite    string // that of the suite
	line     string // puts it in the catalogue
	conform  string // calls the suite
}

// stubs are those of the parts that a strategy can be written for, by name.
var stubs = map[string]stub{
	"order": {"schedule", scheduleSuite, "tuned(NAME.Description, NAME.Default, func(c NAME.Config, _ Env) any { return NAME.New(c) }),",
		"scheduletest.Conform(t, func() schedule.Order { return NAME.New(NAME.Default()) })"},
	"place": {"allocate", "allocate/allocatetest", listed("Placer{}"), "allocatetest.Conform(t, func() allocate.Placer { return NAME.Placer{} })"},
	"joint": {"allocate", scheduleSuite, listed("Decider{}"), "scheduletest.ConformJoint(t, func() allocate.Joint { return NAME.Decider{} })"},
	"reserve": {"schedule/calendar", scheduleSuite, "tuned(NAME.Description, NAME.Default, func(c calendar.Policy, _ Env) any { return c }),",
		whole("calendar.ReservePart", "Default()")},
	"moves": {"schedule/moves", scheduleSuite, "tuned(NAME.Description, NAME.Default, func(c moves.Policy, _ Env) any { return c }),",
		whole("moves.Part", "Default()")},
	"estimate": {"profile", scheduleSuite, listed("Estimator{}"), whole("profile.EstimatePart", "Estimator{}")},
	"size":     {"allocate", scheduleSuite, listed("Sizer{}"), whole("allocate.SizePart", "Sizer{}")},
	"share":    {"allocate", scheduleSuite, listed("Sharer{}"), whole("allocate.SharePart", "Sharer{}")},
	"rate":     {"allocate", scheduleSuite, listed("Rater{}"), whole("allocate.RatePart", "Rater{}")},
	"switch":   {"allocate", scheduleSuite, listed("Switcher{}"), whole("allocate.SwitchPart", "Switcher{}")},
	"gate":     {"schedule", scheduleSuite, listed("Gate{}"), whole("schedule.GatePart", "Gate{}")},
	"victims":  {"schedule/victims", scheduleSuite, listed("Chooser{}"), whole("victims.VictimsPart", "Chooser{}")},
	"cut":      {"pipeline", scheduleSuite, listed("Partitioner{}"), whole("pipeline.CutPart", "Partitioner{}")},
	"sequence": {"pipeline", scheduleSuite, listed("Ordering{}"), whole("pipeline.SequencePart", "Ordering{}")},
	"planner":  {"pipeline/parallel", scheduleSuite, listed("Planner{}"), whole("parallel.PlannerPart", "Planner{}")},
	"reaction": {"pipeline/reaction", scheduleSuite, listed("Policy{}"), whole("reaction.Part", "Policy{}")},
	"flow":     {"flow", scheduleSuite, listed("Policy{}"), whole("flow.PolicyPart", "Policy{}")},
}

const scheduleSuite = "run/simulated/scheduletest"

// listed is the line of a strategy without options.
func listed(value string) string { return "plain(NAME.Description, NAME." + value + ")," }

// whole calls the suite that plays whole simulations with any part.
func whole(part, value string) string {
	return "scheduletest.ConformPart(t, " + part + ", func() any { return NAME." + value + " })"
}

// Stubs are the names of the parts that a strategy can be written for, by rank.
func Stubs() (names []string) {
	for _, p := range Parts() {
		if _, ok := stubs[p.Name]; ok {
			names = append(names, p.Name)
		}
	}
	return names
}

// Skeleton is a strategy that was just written: a package whose idea is a small one, its
// conformance test, and a text that shows it.
type Skeleton struct {
	Files []string `json:"files"`
	// List is catalogue/all.go, to which its line and its import were added.
	List string `json:"list"`
}

// filling is what the templates of a stub are filled in with.
type filling struct {
	Name, Package, Module, Step string
	Own                         bool // the step is said by the strategy, not by its part
	Contract, Suite, Conform    string
}

var strategyName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// NewStrategy writes the folder of a new strategy for a part below the root of the
// repository, in the one shape they all have; step is empty where it is the part's own.
// Nothing that exists is written over.
func NewStrategy(root, part, step, name string) (Skeleton, error) {
	made, ok := stubs[part]
	if !ok {
		return Skeleton{}, fmt.Errorf("there is no skeleton for part %q: choose one of %s", part, strings.Join(Stubs(), ", "))
	}
	of := Parts()[slices.IndexFunc(Parts(), func(p *strategy.Part) bool { return p.Name == part })]
	step = cmp.Or(step, of.Step, "schedule")
	if steps := append([]string{"serve"}, Steps...); !slices.Contains(steps, step) || step == "run" {
		return Skeleton{}, fmt.Errorf("there are no strategies of step %q: choose one of %s", step, strings.Join(steps[:len(steps)-1], ", "))
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
	list := filepath.Join(root, "catalogue", "all.go")
	before, err := os.ReadFile(list)
	if err != nil {
		return Skeleton{}, err
	}
	after, err := registered(string(before), module+"/strategies/"+step+"/"+pkg, strings.ReplaceAll(made.line, "NAME", pkg))
	if err != nil {
		return Skeleton{}, fmt.Errorf("%s: %w", list, err)
	}
	folder := filepath.Join(root, "strategies", step, pkg)
	if err := os.Mkdir(folder, 0o777); err != nil {
		return Skeleton{}, err
	}
	if err := os.Mkdir(filepath.Join(folder, "testdata"), 0o777); err != nil {
		return Skeleton{}, err
	}
	s := Skeleton{List: list}
	fill := filling{Name: name, Package: pkg, Module: module, Step: step, Own: step != of.Step,
		Contract: made.contract, Suite: made.suite, Conform: strings.ReplaceAll(made.conform, "NAME", pkg)}
	for _, f := range []struct{ template, file string }{
		{part + ".go.tmpl", pkg + ".go"}, {"part_test.go.tmpl", pkg + "_test.go"}, {part + ".txt.tmpl", filepath.Join("testdata", "idea.txt")},
	} {
		text, err := fill.in(f.template)
		if err != nil {
			return s, err
		}
		file := filepath.Join(folder, f.file)
		if err := os.WriteFile(file, text, 0o666); err != nil {
			return s, err
		}
		s.Files = append(s.Files, file)
	}
	return s, os.WriteFile(list, after, 0o666)
}

// lineKey is what the lines of a list are sorted by: what is described, in the order of the alphabet.
var lineKey = regexp.MustCompile(`^\t[a-z]+\((\w+\.\w+),`)

// registered is the text of the list of strategies with the import and the line of another, each in its place.
func registered(list, path, line string) ([]byte, error) {
	line = "\t" + line
	name := lineKey.FindStringSubmatch(line)[1]
	pkg, _, _ := strings.Cut(name, ".")
	if regexp.MustCompile(`(?m)^\t(` + pkg + ` |.*/` + pkg + `"$)`).MatchString(list) {
		return nil, fmt.Errorf("it imports a package %s already: choose another name", pkg)
	}
	imports, entries, found := strings.Cut(list, "\nvar All = byPartAndName([]Entry{\n")
	if !found {
		return nil, errors.New("expected a line that begins var All = byPartAndName([]Entry{")
	}
	lines := strings.Split(entries, "\n")
	at := slices.IndexFunc(lines, func(l string) bool {
		other := lineKey.FindStringSubmatch(l)
		return other != nil && other[1] > name || l == "})"
	})
	lines = slices.Insert(lines, max(at, 0), line)
	// The formatter sorts the imports.
	imports = strings.Replace(imports, "\n)\n", fmt.Sprintf("\n\t%q\n)\n", path), 1)
	return format.Source([]byte(imports + "\nvar All = byPartAndName([]Entry{\n" + strings.Join(lines, "\n")))
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

// in fills a template in.
func (f filling) in(file string) ([]byte, error) {
	t, err := template.ParseFS(skeletons, "skeleton/"+file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, f); err != nil || !strings.HasSuffix(file, ".go.tmpl") {
		return b.Bytes(), err
	}
	return format.Source(b.Bytes())
}
