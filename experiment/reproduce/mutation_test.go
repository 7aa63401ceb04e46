package reproduce

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
)

// TestClaimsNoticeABrokenStrategy takes the deciding method of each strategy away, one at a
// time, and runs its claim with one seed: at least one figure that lay in its band must lie
// outside. testdata/unnoticed.txt lists the claims that do not notice, with the reason; it may
// only shrink. Without MUSTER_LONG=1 three claims are tried.
func TestClaimsNoticeABrokenStrategy(t *testing.T) {
	claims, err := Claims("", "")
	if err != nil {
		t.Fatal(err)
	}
	unnoticed := reasoned(t, filepath.Join("testdata", "unnoticed.txt"))
	quick := map[string]bool{"mps": true, "philly": true, "tiresias": true}
	for _, c := range claims {
		t.Run(c.Name, func(t *testing.T) {
			if c.Entry.Part == nil {
				t.Skip("no strategy decides it")
			}
			if os.Getenv("MUSTER_LONG") != "1" && !quick[c.Name] {
				t.Skip("every claim is tried with MUSTER_LONG=1")
			}
			held, lost := 0, []string(nil)
			for _, c := range byTrace(few(c)) { // the first trace mostly tells
				whole, broken := points(t, c, false), points(t, c, true)
				for name, in := range whole {
					if held++; in && !broken[name] { // also where it is no number any more
						lost = append(lost, name)
					}
				}
				if len(lost) > 0 {
					break
				}
			}
			t.Logf("of %d figures in their bands these are lost: %q", held, lost)
			switch {
			case held > 0 && len(lost) == 0 && !unnoticed[c.Name]:
				t.Error("every figure that holds still holds although the strategy decides no longer")
			case len(lost) > 0 && unnoticed[c.Name]:
				t.Error("it notices: take it out of testdata/unnoticed.txt")
			}
		})
	}
}

// few is a claim with ten of its figures that have bands, where there are many without those
// over many stands.
func few(c *Claim) *Claim {
	less := *c
	less.Metrics = nil
	many := len(c.Metrics) > 20
	for _, m := range c.Metrics {
		if (m.Low != nil || m.High != nil) && !m.Long && !(many && strings.Contains(m.Figure, "*")) && len(less.Metrics) < 10 {
			less.Metrics = append(less.Metrics, m)
		}
	}
	return &less
}

// byTrace is a claim once for each trace of its figures, in their order.
func byTrace(c *Claim) (all []*Claim) {
	at := map[string]*Claim{}
	for _, m := range c.Metrics {
		one := at[m.over.trace]
		if one == nil {
			less := *c
			less.Metrics = nil
			one = &less
			at[m.over.trace], all = one, append(all, one)
		}
		one.Metrics = append(one.Metrics, m)
	}
	return all
}

// points says of every figure with a band whether one seed puts it inside.
func points(t *testing.T, c *Claim, broken bool) map[string]bool {
	t.Helper()
	list, err := ClaimRun{Data: sharedData(), Quick: true, Seeds: 1, Break: broken}.Run(c)
	if broken && errors.Is(err, errForever) {
		t.Log(err)
		return nil
	}
	if err != nil {
		t.Fatalf("broken %t: %v", broken, err)
	}
	in := map[string]bool{}
	for i := range list {
		f := &list[i]
		if f.Verdict == catalogue.Skipped {
			t.Skip(f.Note)
		}
		if f.Low != nil || f.High != nil {
			in[f.Metric] = (f.Low == nil || *f.Measured >= *f.Low) && (f.High == nil || *f.Measured <= *f.High)
		}
	}
	return in
}

// reasoned are the names of a file of lines NAME | REASON.
func reasoned(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " | ")
		if !ok || len(reason) < 10 {
			t.Errorf("%s: %q: expected NAME | REASON", file, line)
		}
		names[name] = true
	}
	return names
}
