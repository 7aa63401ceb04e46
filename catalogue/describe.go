package catalogue

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/strategy"
)

// Option is one thing that can be set of a strategy, in a composition file under
// options: and the strategy's name.
type Option struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Meaning string `json:"meaning,omitempty"`
}

// Options lists what can be set of a strategy, with the defaults.
func (e Entry) Options() []Option {
	if e.options == nil {
		return nil
	}
	v := reflect.ValueOf(e.options()).Elem()
	var list []Option
	for i, name := range fieldNames(v.Type()) {
		if name != "" {
			list = append(list, Option{name, plainText(v.Field(i)), meaningOf(e.Name, name)})
		}
	}
	return list
}

// plainText writes a default as a user would in YAML.
func plainText(v reflect.Value) string {
	if _, ok := v.Interface().(fmt.Stringer); ok {
		return fmt.Sprint(v.Interface())
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = plainText(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Struct:
		var parts []string
		for i, name := range fieldNames(v.Type()) {
			if name != "" {
				parts = append(parts, name+": "+plainText(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Map:
		parts := make([]string, 0, v.Len())
		for _, key := range v.MapKeys() {
			parts = append(parts, fmt.Sprint(key.Interface())+": "+plainText(v.MapIndex(key)))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.String:
		if v.Len() == 0 {
			return `""`
		}
	}
	return fmt.Sprint(v.Interface())
}

// fieldNames are the names of a struct's fields in YAML; "" is not read.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case name == "":
			names[i] = strings.ToLower(f.Name)
		default:
			names[i] = name
		}
	}
	return names
}

// Shown is everything there is to know about a strategy.
type Shown struct {
	Line
	Needs string `json:"needs"`
	Live  string `json:"live"`
	// Acts are what it does with runs beyond starting and stopping them.
	Acts    []strategy.Act `json:"acts,omitempty"`
	With    Choices        `json:"with,omitempty"`
	Options []Option       `json:"options,omitempty"`
}

// Show returns everything there is to know about a strategy.
func Show(name string) (Shown, error) {
	e, ok := Find(name)
	if !ok {
		return Shown{}, fmt.Errorf("there is no strategy named %q: muster strategies lists them", name)
	}
	return e.shown(), nil
}

func (e Entry) shown() Shown {
	return Shown{Line: e.line(), Needs: e.Needs, Live: e.Live, Acts: e.Acts, With: e.With, Options: e.Options()}
}

func (e Entry) line() Line {
	l := Line{Name: e.Name, System: e.System, Step: e.Step, Part: e.Part.Name, Source: e.Source, Status: e.Status, Idea: e.Idea, Goal: e.Goal, Inner: e.Inner, Claim: e.Claim != nil, Default: byDefault(e)}
	for _, p := range e.places() {
		l.Challenges = append(l.Challenges, p.challenge)
	}
	return l
}

// byDefault reports whether a strategy decides where nobody names one.
func byDefault(e Entry) bool {
	c, err := named(House)
	return err == nil && slices.Contains(strings.Split(c.over(defaults()).Choices[e.Part], chained), e.Name)
}

// facts are the lines of a description, in the order of reading.
func (s Shown) facts() [][2]string {
	as := s.Step + ", as its " + s.Part
	if !slices.ContainsFunc(Parts(), func(p *strategy.Part) bool { return p.Name == s.Part }) {
		as += ", which planners ask and no composition has"
	}
	all := [][2]string{{"idea", s.Idea}, {"step", as}, {"system", s.System}, {"source", s.Source},
		{"status", statuses[s.Status]}, {"challenges", strings.Join(s.Challenges, ", ")}, {"goal", s.Goal}, {"inner score", s.Inner}, {"needs", s.Needs}, {"live", s.Live}, {"acts", joined(s.Acts)}}
	if s.With != nil {
		all = append(all, [2]string{"comes with", s.With.String()})
	}
	kept := all[:0]
	for _, f := range all {
		if f[1] != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

func joined(acts []strategy.Act) string {
	words := make([]string, len(acts))
	for i, a := range acts {
		words[i] = string(a)
	}
	return strings.Join(words, ", ")
}

// statuses say in words how faithful a strategy is.
var statuses = map[string]string{
	"read":     "read: its source was read",
	"recalled": "recalled: its paper is followed from memory",
	"after":    "after: the idea is theirs, the details are ours",
	"ours":     "ours: from no paper",
	"null":     "null: what one would do without this step",
}

// WriteShown prints a strategy with its options.
func WriteShown(w io.Writer, s Shown) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, s.Name)
	for _, f := range s.facts() {
		fmt.Fprintf(out, "  %-11s %s\n", f[0], f[1])
	}
	if len(s.Options) > 0 {
		fmt.Fprintf(out, "options, as in a file given as --strategy:\n\n  %s: %s\n  options:\n    %s:\n", s.Part, s.Name, s.Name)
		for _, o := range s.Options {
			if o.Meaning != "" {
				fmt.Fprintf(out, "      # %s\n", o.Meaning)
			}
			fmt.Fprintf(out, "      %s: %s\n", o.Name, o.Default)
		}
	}
	return out.Flush()
}

// stepTitles are the headings of the page of strategies.
var stepTitles = map[string]string{
	"profile":  "Step 1, profile: how long would this job be?",
	"allocate": "Step 2, allocate: how many devices, and which?",
	"schedule": "Step 3, schedule: which job next, which gives way?",
	"pipeline": "Step 4, pipeline: which layer where, which microbatch when?",
	"flow":     "Step 5, flow: which bytes first?",
	"run":      "Step 6, run: make it so",
}

// WriteMarkdown prints the page of all strategies, docs/strategies.md, and of the grounds that they go by,
// with what was found when their claims were run.
func WriteMarkdown(w io.Writer, grounds []Entry, found []Finding) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "# Strategies\n\nThis page is made from the catalogue when a version is cut, by `muster strategies --markdown > docs/strategies.md`; do not edit it.\n\n"+
		"Every job passes six steps, and a strategy fills one part of one of them. Join names with `+` (`--strategy tiresias+consolidate`), or name\n"+
		"them in a file: one line `PART: NAME` for each part, and under `options:` what is to differ from the defaults.\n")
	writeFound(out, found)
	writeMap(out)
	writeLive(out)
	for _, step := range Steps {
		first := true
		for e := range every {
			if e.Step != step {
				continue
			}
			if first {
				fmt.Fprintf(out, "\n## %s\n", stepTitles[step])
				first = false
			}
			e.shown().markdown(out)
			writeMetrics(out, found, e.Name)
		}
	}
	fmt.Fprint(out, "\n## What strategies go by\n\nNo strategy decides it; it is held against what was measured.\n")
	for _, e := range grounds {
		fmt.Fprintf(out, "\n### %s\n\n%s (%s).\n", e.Name, e.Idea, e.System)
		writeMetrics(out, found, e.Name)
	}
	return out.Flush()
}

// writeFound is one line per claim: how many of its figures hold.
func writeFound(out io.Writer, found []Finding) {
	if len(found) == 0 {
		return
	}
	fmt.Fprint(out, "\n## Published claims, measured\n\nWhat `muster reproduce --all --write docs/claims.json` found last, on the machine that ran it; the figures stand\n"+
		"with the strategies below, and the format of a claim in [experiment/reproduce/CLAIMS.md](../experiment/reproduce/CLAIMS.md).\n\n"+
		"A figure is decided by the `engine`, where the strategy that users name decides and the simulated driver acts; or by a `kernel`, a function\n"+
		"of the strategy's package called alone. Counts are of the engine's figures, and behind a + of the kernels'.\n\n"+
		"| Claim | System | Strategy | Holds | Missed | Reported | Skipped |\n|---|---|---|---|---|---|---|\n")
	type kind struct{ verdict, by string }
	all := map[kind]int{}
	line := func(first string, count map[kind]int) {
		fmt.Fprintf(out, "| %s |", first)
		for _, verdict := range []string{Holds, Missed, Reported, Skipped} {
			text := fmt.Sprint(count[kind{verdict, ByEngine}])
			if kernels := count[kind{verdict, ByKernel}]; kernels > 0 {
				text += fmt.Sprintf(" + %d", kernels)
			}
			fmt.Fprintf(out, " %s |", text)
		}
		fmt.Fprintln(out)
	}
	for i := 0; i < len(found); {
		f, count := &found[i], map[kind]int{}
		for ; i < len(found) && found[i].Name == f.Name; i++ {
			k := kind{found[i].Verdict, found[i].By}
			if k.verdict == Open {
				k.verdict = Missed
			}
			count[k]++
			all[k]++
		}
		line(fmt.Sprintf("%s | %s | [%s](#%s)", f.Name, f.System, f.Strategy, f.Strategy), count)
	}
	line("**all** | |", all)
}

// writeMetrics are the figures of a strategy's claims, with the notes on those that do
// not hold.
func writeMetrics(out io.Writer, found []Finding, strategy string) {
	cell := func(text string) string {
		return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
	}
	var mine []Finding
	for i := range found {
		if found[i].Strategy == strategy {
			mine = append(mine, found[i])
		}
	}
	if len(mine) > 0 {
		fmt.Fprint(out, "\n| Figure | By | Published | Ours | Band | Band from | Verdict |\n|---|---|---|---|---|---|---|\n")
	}
	for i := range mine {
		f := &mine[i]
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s |\n", cell(f.Metric), f.By, cell(f.Published), f.Ours(), f.Band(), f.BandFrom, f.Verdict)
	}
	for _, note := range Notes(mine) {
		fmt.Fprintf(out, "\n%s\n", cell(note))
	}
}

func (s Shown) markdown(out io.Writer) {
	fmt.Fprintf(out, "\n### %s\n\n", s.Name)
	for _, f := range s.facts() {
		fmt.Fprintf(out, "- **%s**: %s\n", f[0], f[1])
	}
	if len(s.Options) > 0 {
		fmt.Fprint(out, "\n| Option | Default |\n|---|---|\n")
		for _, o := range s.Options {
			fmt.Fprintf(out, "| `%s` | `%s` |\n", o.Name, o.Default)
		}
	}
}
