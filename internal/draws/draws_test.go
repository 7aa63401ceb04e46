package draws_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// drawn are the numbers that cases draw.
func drawn(t *testing.T, c draws.Cases) (numbers []int) {
	c.Check(t, func(t *rapid.T) { numbers = append(numbers, rapid.IntRange(0, 1_000_000).Draw(t, "n")) })
	return numbers
}

// TestSameEveryTime: a round draws the same in every run, another round another, few cases are the first of
// many, and a hunt draws anew; also while other tests draw beside it.
func TestSameEveryTime(t *testing.T) {
	t.Setenv("MUSTER_HUNT", "")
	t.Setenv("MUSTER_LONG", "")
	first := drawn(t, draws.Cases{})
	t.Run("beside each other", func(t *testing.T) {
		for round := range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				if got := drawn(t, draws.Cases{Round: round}); slices.Equal(got, first) != (round == 0) {
					t.Errorf("round %d drew %v, the first one %v", round, got, first)
				}
				for want, c := range map[int]draws.Cases{7: {Few: 7, All: 20}, 20: {All: 20}, 1: draws.Once} {
					if got := drawn(t, c); !slices.Equal(got, first[:want]) {
						t.Errorf("%+v are %v, expected %v", c, got, first[:want])
					}
				}
			})
		}
	})
	if seed := draws.Seed(t); seed != 1 {
		t.Errorf("seed %d", seed)
	}
	t.Setenv("MUSTER_HUNT", "1")
	if slices.Equal(drawn(t, draws.Cases{}), first) || draws.Seed(t) == 1 {
		t.Error("a hunt drew what was drawn before")
	}
}

// recorder is a test that fails without failing this one.
type recorder struct {
	*testing.T
	said []string
}

func (r *recorder) Errorf(format string, args ...any) { r.said = append(r.said, format) }
func (r *recorder) FailNow()                          {}

// TestFailureLeavesNoFile: what a property finds is said with its seed, and nothing is written beside it.
func TestFailureLeavesNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	r := &recorder{T: t}
	draws.Check(r, func(t *rapid.T) {
		if rapid.IntRange(0, 1000).Draw(t, "n") > 10 {
			t.Fatal("more than ten")
		}
	})
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v was written, %v", left, err)
	}
	if len(r.said) == 0 || !strings.Contains(r.said[0], "To reproduce") {
		t.Errorf("said %q", r.said)
	}
	// The flags are rapid's own again.
	if a, b := drawn(t, draws.Cases{}), drawn(t, draws.Cases{}); !slices.Equal(a, b) {
		t.Errorf("%v, then %v", a, b)
	}
}
