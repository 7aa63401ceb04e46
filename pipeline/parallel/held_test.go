package parallel

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/pipeline"
)

// TestHeld: of random plans, of measured layers and of planners, some devices are lost. What is left is whole just
// where each part is on somebody; a smaller run finds places just where as many hold each part as it has copies, on
// different devices that are left and hold what it puts there.
func TestHeld(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		ranks, copies, each := rapid.IntRange(1, 4).Draw(t, "ranks"), rapid.IntRange(1, 4).Draw(t, "copies"), rapid.IntRange(1, 3).Draw(t, "each")
		measured := rapid.Bool().Draw(t, "measured")
		held := func(copies int) (Held, []string) {
			var text []byte
			if measured {
				text, _ = json.Marshal(&pipeline.Plan{Stages: int32(ranks), Orders: make([][]pipeline.Op, ranks)})
			} else {
				apart := 0
				if copies%2 == 0 {
					apart = 2
				}
				text, _ = json.Marshal(&Shape{Samples: 1, Microbatches: 1, Tensor: each, Ranks: ranks, Copies: copies, Apart: apart})
			}
			h := HeldBy(text, measured, copies*ranks*each, each, true)
			return h, h.Pieces()
		}
		was, pieces := held(copies)
		if len(pieces) != copies*ranks*each || len(was.Copies) != copies {
			t.Fatalf("%d devices hold %q in %d copies", copies*ranks*each, pieces, len(was.Copies))
		}
		gone := rapid.SliceOfN(rapid.Bool(), len(pieces), len(pieces)).Draw(t, "gone")
		// A rank's devices go together, as its slices are of one pass.
		least := copies
		for rank := range ranks {
			n := 0
			for _, stages := range was.Copies {
				if !slices.ContainsFunc(stages[rank], func(d int32) bool { return gone[d] }) {
					n++
				}
			}
			least = min(least, n)
		}
		if was.Whole(gone) != (least > 0) {
			t.Fatalf("whole %v, %d of a rank are left", was.Whole(gone), least)
		}
		for n := 1; n <= copies; n++ {
			to, wants := held(n)
			places := was.Smaller(&to, gone)
			if (places != nil) != (n <= least) {
				t.Fatalf("%d copies find %v where %d of a rank are left", n, places, least)
			}
			seen := map[int32]bool{}
			for i, place := range places {
				if gone[place] || seen[place] || pieces[place] != wants[i] {
					t.Fatalf("place %d: device %d, lost %v, taken %v, holds %q, expected %q", i, place, gone[place], seen[place], pieces[place], wants[i])
				}
				seen[place] = true
			}
		}
	})
	if h := HeldBy([]byte(`{`), false, 4, 1, true); h.Whole(make([]bool, 4)) || h.Pieces() != nil {
		t.Errorf("what is no plan holds %+v", h)
	}
}
