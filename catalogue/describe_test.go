package catalogue

import (
	"strings"
	"testing"
)

// TestPage: the page has every strategy once, and the figures of a claim with its strategy.
func TestPage(t *testing.T) {
	measured := 2.5
	var b strings.Builder
	if err := WriteMarkdown(&b, nil, []Finding{{Name: "tiresias", Strategy: "tiresias", Metric: "so many times", By: ByEngine, Measured: &measured, Verdict: Reported}}); err != nil {
		t.Fatal(err)
	}
	for e := range every {
		if strings.Count(b.String(), "\n### "+e.Name+"\n") != 1 {
			t.Errorf("%s is not on the page once", e.Name)
		}
	}
	_, tiresias, _ := strings.Cut(b.String(), "\n### tiresias\n")
	if tiresias, _, _ = strings.Cut(tiresias, "\n### "); !strings.Contains(tiresias, "| so many times | engine |") {
		t.Errorf("tiresias is without its figure:\n%s", tiresias)
	}
}

// TestEverythingIsDescribed keeps the listings complete: an entry without a step or
// a status word would be missing from the page, or unexplained.
func TestEverythingIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All {
		s := e.shown()
		if seen[s.Name] {
			t.Errorf("%s is listed twice", s.Name)
		}
		seen[s.Name] = true
		if stepTitles[s.Step] == "" {
			t.Errorf("%s is of step %q", s.Name, s.Step)
		}
		if statuses[s.Status] == "" {
			t.Errorf("%s has status %q", s.Name, s.Status)
		}
		for what, text := range map[string]string{"idea": s.Idea, "source": s.Source, "goal": s.Goal, "needs": s.Needs, "live": s.Live} {
			if text == "" {
				t.Errorf("%s says nothing of its %s", s.Name, what)
			}
		}
	}
}

// TestShownOptionsAreRead takes what show prints as a composition file: the printed
// names must be the names that are read.
func TestShownOptionsAreRead(t *testing.T) {
	for _, e := range All {
		s := e.shown()
		if len(s.Options) == 0 {
			continue
		}
		var b strings.Builder
		if err := WriteShown(&b, s); err != nil {
			t.Fatal(err)
		}
		_, file, ok := strings.Cut(b.String(), "--strategy:\n\n")
		if !ok {
			t.Fatalf("%s: no file in\n%s", s.Name, b.String())
		}
		file = strings.ReplaceAll("\n"+file, "\n  ", "\n")
		c, err := Read(s.Name+".yaml", []byte(file))
		if err != nil {
			t.Errorf("%v, in%s", err, file)
			continue
		}
		if _, err := c.Build(Env{Seed: 1}, false); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

func TestShow(t *testing.T) {
	if _, err := Show("nobody"); err == nil || !strings.Contains(err.Error(), "muster strategies") {
		t.Errorf("an unknown name: %v", err)
	}
	s, err := Show("tiresias")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Options {
		if o.Name == "queues-device-s" && o.Default != "[36000]" || o.Name == "refresh" && o.Default != "1d" {
			t.Errorf("%s is %s by default", o.Name, o.Default)
		}
	}
	if len(s.Options) < 5 {
		t.Errorf("options %v", s.Options)
	}
}

// TestEverythingIsBuilt finds an entry whose value does not fulfil the contract of
// its part: that is only looked at when it is used.
func TestEverythingIsBuilt(t *testing.T) {
	for _, e := range All {
		c, err := Resolve(e.Name)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if _, err := c.Build(Env{Seed: 1}, false); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}
