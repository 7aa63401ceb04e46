package interleaved

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
	"pgregory.net/rapid"
)

// TestOrder is Megatron's for two ranks, two chunks and four microbatches.
func TestOrder(t *testing.T) {
	s, why := New(Default()).Schedule(2, 4, nil)
	if why += s.Check(); why != "" {
		t.Fatal(why)
	}
	for r, want := range []string{
		"0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
		"1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3",
	} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d:\n%s\nwant\n%s", r, got, want)
		}
	}
}

// TestClosedForms: every rank is idle for (p-1)(TF+TB), of one chunk, whatever the number of
// chunks, which is (p-1)T/v; and rank r keeps (v-1)p+2(p-1-r)+1 chunks, or all there are.
func TestClosedForms(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p, v := rapid.IntRange(1, 8).Draw(t, "ranks"), rapid.IntRange(2, 5).Draw(t, "chunks")
		m := p * rapid.IntRange(1, 6).Draw(t, "groups")
		f, b := unit.Duration(rapid.IntRange(1, 50).Draw(t, "forward")), unit.Duration(rapid.IntRange(1, 50).Draw(t, "half"))
		got := pipelinetest.Case{Ranks: p, Microbatches: m, Forward: f, Input: b, Weight: b}.Time(New(Config{Chunks: v}))
		for r := range p {
			if want := unit.Duration(p-1) * (f + 2*b); got.Idle(r) != want {
				t.Fatalf("p=%d m=%d v=%d F=%d B=%d: rank %d is idle for %d, want %d", p, m, v, f, 2*b, r, got.Idle(r), want)
			}
			if want := min((v-1)*p+2*(p-1-r)+1, m*v); got.Peak[r].ActivationKiB != int64(want) {
				t.Fatalf("p=%d m=%d v=%d: rank %d keeps %d chunks, want %d", p, m, v, r, got.Peak[r].ActivationKiB, want)
			}
		}
	})
}

// TestGroups: any group that Megatron takes gives a schedule that runs, those that it refuses
// are refused, and wider groups keep no less.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		p, m, group int
		ok          bool
	}{{4, 8, 0, true}, {4, 8, 8, true}, {4, 13, 8, true}, {4, 9, 0, false}, {4, 8, 3, false}, {4, 8, 9, false}, {4, 3, 0, false}, {1, 3, 2, true}} {
		s, why := New(Config{Chunks: 2, Group: c.group}).Schedule(c.p, c.m, nil)
		if (why == "") != c.ok {
			t.Errorf("%+v: %q", c, why)
		}
		if why != "" {
			continue
		}
		if _, why := s.Time(pipeline.Like(2 * c.p)); why != "" {
			t.Errorf("%+v: %s", c, why)
		}
	}
}
