package catalogue_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/schedule"
)

// TestAll: every entry says what it is, under a name of its own, and can be built in
// a composition that consists of it and defaults.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range catalogue.All {
		if e.Name == "" || e.Idea == "" || e.Source == "" || seen[e.Name] || !slices.Contains(catalogue.Steps, e.Step) ||
			!slices.Contains([]string{"null", "read", "recalled", "after", "ours"}, e.Status) {
			t.Errorf("entry %q: name, step, source, idea or status is missing, unknown or used twice", e.Name)
		}
		seen[e.Name] = true
		c, err := catalogue.Resolve(e.Name)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if _, err := c.Build(catalogue.Env{Seed: 1}, true); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}

// TestFile: a composition file is read strictly and names the place of a mistake.
func TestFile(t *testing.T) {
	c, err := catalogue.Read("my.yaml", []byte("name: mine\norder: tiresias\nplace: fgd\noptions:\n  tiresias:\n    queues-device-s: [10, 20]\n    gittins: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := c.Build(catalogue.Env{}, false); err != nil || b.Composition.Choices[schedule.OrderPart] != "tiresias" || b.Composition.Choices[flow.PolicyPart] != "max-min" {
		t.Errorf("%+v, %v", b.Composition, err)
	}
	for text, want := range map[string]string{
		"order: tiresia\n": `my.yaml: order: there is no order strategy named "tiresia": choose one of ` + sorted(schedule.OrderPart),
		"place: fifo\n":    `my.yaml: place: there is no place strategy named "fifo": choose one of ` + sorted(allocate.PlacePart),
	} {
		if _, err := catalogue.Read("my.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := catalogue.Read("my.yaml", []byte("options:\n  tiresias:\n    queues: [1]\n")); err == nil {
		t.Error("an option that does not exist was read")
	}
	bad, err := catalogue.Read("my.yaml", []byte("order: tiresias\noptions:\n  tiresias:\n    queues-device-s: [20, 10]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Build(catalogue.Env{}, false); err == nil {
		t.Error("descending bounds were accepted")
	}
}

func sorted(part *strategy.Part) string {
	names := catalogue.Names(part)
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// TestLive: nobody tells the truth live.
func TestLive(t *testing.T) {
	for ref, want := range map[string]string{"srtf": "", "srtf+history": "history", "fifo": ""} {
		c, err := catalogue.Resolve(ref)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = c.Live(); err != nil || c.Choices[profile.EstimatePart] != want {
			t.Errorf("%s: estimate %q, want %q, %v", ref, c.Choices[profile.EstimatePart], want, err)
		}
		if again, err := catalogue.Parse("journal", c.Text); err != nil || again.Choices[profile.EstimatePart] != want {
			t.Errorf("%s read back from a journal: %q, %v", ref, again.Choices[profile.EstimatePart], err)
		}
	}
	c, err := catalogue.Read("my.yaml", []byte("order: srtf\nestimate: oracle\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Live(); err == nil {
		t.Error("a file that wants the truth was accepted live")
	}
}

// TestWithout puts the null of a step in its place.
func TestWithout(t *testing.T) {
	c, err := catalogue.Resolve("tiresias+fgd")
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[string]func(catalogue.Composition) bool{
		"schedule": func(c catalogue.Composition) bool {
			return c.Choices[schedule.OrderPart] == "fifo" && c.Choices[allocate.PlacePart] == "fgd"
		},
		"allocate": func(c catalogue.Composition) bool {
			return c.Choices[schedule.OrderPart] == "tiresias" && c.Choices[allocate.PlacePart] == "first-fit"
		},
		"run": func(c catalogue.Composition) bool { return c.Choices[run.RestartPart] == "last-checkpoint" },
	} {
		got, err := c.Without(step)
		if err != nil || !want(got) {
			t.Errorf("without %s: %+v, %v", step, got, err)
		}
	}
	if _, err := c.Without("sleep"); err == nil {
		t.Error("a step that does not exist was left out")
	}
}

// TestNameBeforeFile: a strategy's name means that strategy, also in a folder with a file that is called
// so, as this program is where it was built.
func TestNameBeforeFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(catalogue.House, []byte("\x7fELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("for-tests", []byte("order: las\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{catalogue.House: catalogue.House, "for-tests": "las"} {
		c, err := catalogue.Resolve(ref)
		if err != nil || c.Choices[schedule.OrderPart] != want {
			t.Errorf("%s: %v, %v", ref, c.Choices, err)
		}
	}
}
