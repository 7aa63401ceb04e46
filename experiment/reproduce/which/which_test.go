package which

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
)

// TestStudy runs two draws, and a history that is not there: it is left out, and every other has a row for
// each choice in every table, the same when it is asked again.
func TestStudy(t *testing.T) {
	works := []Work{Works[0], {Name: "Nowhere", Trace: "philly:nowhere", Cluster: "philly"}}
	write := func() string {
		s := Study{Seeds: 2, Data: t.TempDir()}
		if err := s.run(works); err != nil {
			t.Fatal(err)
		}
		for i, c := range Choices {
			all, some := &s.Histories[0].Compared.Rows[i], &s.Histories[0].Never.Rows[i]
			if stops := all.Preemptions > 0; stops != (all.AvgJCTSec != some.AvgJCTSec) {
				t.Errorf("%s: %d preemptions, and a mean JCT of %g s where all save and %g where one in three never does", c.Strategy, all.Preemptions, all.AvgJCTSec, some.AvgJCTSec)
			}
		}
		s.Histories[1].Absent = strings.ReplaceAll(s.Histories[1].Absent, s.Data, "DATA")
		var b bytes.Buffer
		if err := s.Write(&b, false); err != nil {
			t.Fatal(err)
		}
		var plot bytes.Buffer
		if err := s.Plot(&plot); err != nil || !strings.Contains(plot.String(), "RW-A") {
			t.Errorf("the plot: %v, %d bytes", err, plot.Len())
		}
		return b.String()
	}
	got := write()
	if again := write(); got != again {
		t.Errorf("another run says otherwise:\n%s\n%s", got, again)
	}
	if !strings.Contains(got, "Nowhere: left out, DATA/nowhere is not there") || !strings.Contains(got, "RW-A: 960 jobs in 2 draws on gpus:15x4") {
		t.Errorf("the histories are not told:\n%s", got)
	}
	for _, c := range Choices {
		if n := strings.Count(got, "\n"+c.Strategy+" "); n != len(figures) {
			t.Errorf("%s has %d rows, expected %d:\n%s", c.Strategy, n, len(figures), got)
		}
	}
}

// TestPageIsOfToday holds the page's column of drawn histories, which needs no data, to what the
// choices come to now.
func TestPageIsOfToday(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("runs all choices twenty times: set MUSTER_LONG=1")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "which.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := Study{Seeds: 20}
	if err := s.run(Works[:1]); err != nil {
		t.Fatal(err)
	}
	for i := range figures {
		for _, row := range s.table(&figures[i])[1:] {
			if line := "| " + strings.Join(row, " | ") + " | "; !strings.Contains(string(text), line) {
				t.Errorf("docs/which.md does not have %q: make it anew as its first line says", line)
			}
		}
	}
}

// TestPage writes the page without a history, and says which figure of a claim is missing.
func TestPage(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "docs", "claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := catalogue.ReadFindings(f)
	if err != nil {
		t.Fatal(err)
	}
	p := Page{&Study{Choices: Choices, Histories: []History{{Name: "Venus", Absent: "no data"}}}, found}
	var b bytes.Buffer
	if err := p.Write(&b, false); err != nil || !strings.Contains(b.String(), "left out, no data") {
		t.Errorf("%v:\n%s", err, &b)
	}
	if _, err := claimed(found, "gavel", "nothing"); err == nil || !strings.Contains(err.Error(), "muster reproduce gavel") {
		t.Errorf("a figure that nobody measured: %v", err)
	}
}
