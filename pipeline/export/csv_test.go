package export_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/export"
	"github.com/musterdl/muster/strategies/pipeline/dualpipe"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

func comms(s *pipeline.Schedule) (string, error)   { return export.Comms(s, false) }
func reduced(s *pipeline.Schedule) (string, error) { return export.Comms(s, true) }

// TestPublished are files as PyTorch reads and writes them.
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		ord   pipeline.Ordering
		m     int
		write func(*pipeline.Schedule) (string, error)
		want  string
	}{
		{onefoneb.Ordering{}, 4, export.CSV, "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"},
		{onefoneb.Ordering{}, 2, comms, "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n"},
		{onefoneb.Ordering{}, 2, reduced, "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n"},
		{dualpipe.V{}, 4, export.CSV, "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n" +
			"1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n"},
	} {
		s, _ := c.ord.Schedule(2, c.m, nil)
		if got, err := c.write(&s); err != nil || got != c.want {
			t.Errorf("%T: %v\n%s\nwant\n%s", c.ord, err, got, c.want)
		}
	}
}

// TestEveryScheduleLowers: whatever the order, all rows can be run to their ends by ranks that
// take their cells one by one, each send waiting for its receive and each receive for its
// send; no cell is blank, and all passes are there.
func TestEveryScheduleLowers(t *testing.T) {
	for _, ord := range []pipeline.Ordering{gpipe.Ordering{}, onefoneb.Ordering{}, zerobubble.H1{}, zerobubble.H2{}, dualpipe.V{}} {
		for _, p := range []int{1, 2, 4, 8} {
			for _, m := range []int{2 * p, 3 * p, 4 * p} {
				s, why := ord.Schedule(p, m, nil)
				if why != "" {
					t.Fatal(why)
				}
				lowers(t, &s)
			}
		}
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		p := 1 + r.IntN(5)
		s, c := pipeline.NewSchedule(p, 1+r.IntN(8), pipeline.Folded(p, p*(1+r.IntN(3)), r.IntN(2) == 0)), pipeline.Costs{}
		c = pipeline.Like(s.Stages())
		if why := s.List(&c, r.IntN(2) == 0, func(_ *pipeline.Chooser, ready []pipeline.Choice) int { return r.IntN(len(ready)) }); why != "" {
			t.Fatal(why)
		}
		lowers(t, &s)
	}
}

var cell = regexp.MustCompile(`^(\d+)(SEND_F|RECV_F|SEND_B|RECV_B|F|B|I|W)(\d+)$`)

func lowers(t *testing.T, s *pipeline.Schedule) {
	t.Helper()
	text, err := comms(s)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	at, passes := make([]int, len(rows)), 0
	cells := make([][]string, len(rows))
	for r := range rows {
		cells[r] = strings.Split(rows[r], ",")
	}
	// The rows are in one order of time where a blocking exchange between each two ranks comes to its
	// end: a send and its receive are the next of their ranks on that pair, first come first served.
	sent := map[[2]int][]string{}
	for moved := true; moved; {
		moved = false
		for r := range cells {
			for ; at[r] < len(cells[r]); at[r]++ {
				text := cells[r][at[r]]
				parts := cell.FindStringSubmatch(text)
				if parts == nil && !strings.HasSuffix(text, ")OVERLAP_F_B") {
					t.Fatalf("rank %d has a cell %q", r, text)
				}
				if parts == nil {
					passes += 2
				} else if kind := parts[2]; len(kind) == 1 {
					passes++
				} else {
					stage, _ := strconv.Atoi(parts[1])
					by := 1
					if (kind == "SEND_B") || kind == "RECV_F" {
						by = -1
					}
					peer := int(s.Routes[0][stage+by])
					if strings.HasPrefix(kind, "SEND") {
						sent[[2]int{r, peer}] = append(sent[[2]int{r, peer}], fmt.Sprintf("%dRECV_%s%s", stage+by, kind[5:], parts[3]))
					} else if way := [2]int{peer, r}; len(sent[way]) == 0 {
						break // it waits
					} else if sent[way][0] != text {
						t.Fatalf("rank %d receives %s where %s comes", r, text, sent[way][0])
					} else {
						sent[way] = sent[way][1:]
					}
				}
				moved = true
			}
		}
	}
	want := 0
	for r := range cells {
		want += len(s.Orders[r])
		if at[r] < len(cells[r]) {
			t.Fatalf("rank %d waits for ever at %s", r, cells[r][at[r]])
		}
	}
	if passes != want {
		t.Fatalf("%d passes, want %d", passes, want)
	}
}

// TestInexpressible: what PyTorch cannot run is refused with what it can.
func TestInexpressible(t *testing.T) {
	both, _ := dualpipe.Both{}.Schedule(2, 4, nil)
	waves, _ := onefoneb.Ordering{}.Schedule(2, 4, nil)
	waves.Wave = 1
	again := pipeline.Schedule{Microbatches: 1, Routes: [][]int32{{0}}, Orders: [][]pipeline.Op{{{Kind: pipeline.Forward}, {Kind: pipeline.Recompute}, {Kind: pipeline.Backward}}}}
	circle := pipeline.Schedule{Microbatches: 2, Routes: [][]int32{{0, 1}}}
	for r, text := range []string{"0F1 0B1 0F0 0B0", "1F0 1B0 1F1 1B1"} {
		circle.Orders = append(circle.Orders, nil)
		for _, word := range strings.Fields(text) {
			var op pipeline.Op
			if err := op.UnmarshalText([]byte(word)); err != nil {
				t.Fatal(err)
			}
			circle.Orders[r] = append(circle.Orders[r], op)
		}
	}
	halves := pipeline.Schedule{Microbatches: 1, Routes: [][]int32{{0}}, Orders: [][]pipeline.Op{{{Kind: pipeline.FirstHalf}, {Kind: pipeline.SecondHalf}, {Kind: pipeline.Backward}}}}
	for want, s := range map[string]*pipeline.Schedule{"half a forward pass (0G0): 1f1b": &halves, "dualpipe-v does what": &both, "1f1b is the same": &waves, "torch.utils.checkpoint": &again, "in a circle": &circle} {
		if _, err := comms(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
