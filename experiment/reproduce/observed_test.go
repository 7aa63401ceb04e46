package reproduce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run/report"
)

// TestBadPairIsParted: two one-hour jobs that keep .17 of their speed beside each other on
// one device are tried together once and then take turns, as anybody simulates.
func TestBadPairIsParted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.jsonl")
	text := `{"name":"a","submit_s":0,"duration_s":3600,"class":"recommendation/512","memory_mib":4096,"checkpoint_on_request":true}
{"name":"b","submit_s":1,"duration_s":3600,"class":"recommendation/512","memory_mib":4096,"checkpoint_on_request":true}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Defaults()
	s.Trace, s.Strategy = "muster:"+file, "gandiva"
	s.Cluster = "name: one\nmodels: [{name: V100, memory: 16GiB}]\nracks: [{nodes: [{name: n, count: 1, devices: 1}]}]\n"
	o, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	if r := o.Result; r.Finished != 2 || r.AvgJCTSec > 7300 {
		t.Errorf("%d finished, mean JCT %.0f s: the pair is not parted", r.Finished, r.AvgJCTSec)
	}
}

// TestNobodyIsClairvoyantUnasked: no strategy is told true run times unless its name says
// so, and a comparison says what each went by.
func TestNobodyIsClairvoyantUnasked(t *testing.T) {
	for _, e := range catalogue.All {
		c, err := catalogue.Resolve(e.Name)
		if err != nil || e.Part == profile.EstimatePart {
			continue
		}
		if built, err := c.Build(catalogue.Env{Seed: 1}, false); err == nil && built.TellTruth {
			t.Errorf("%s is told the truth", e.Name)
		}
	}
	got, err := Compare(comparison("gen:rw-a?jobs=20", "srtf", "srtf+oracle", "srtf+history"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.WriteComparison(&b, got.ReportRows(), report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"knows declared times: srtf", "knows true times (oracle): srtf+oracle", "knows history: srtf+history"} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("the comparison does not say %q:\n%s", line, &b)
		}
	}
}
