package jahani

import (
	"math"
	"testing"
)

// TestPack: a problem comes back as it went out, but for less than a microsecond; a text
// that is cut or goes on is none.
func TestPack(t *testing.T) {
	p := draw(1, 20, 5, 3)
	b := pack(p.Jobs)
	other := Problem{Machines: p.Machines}
	if err := other.unpack(b, len(p.Jobs)); err != nil {
		t.Fatal(err)
	}
	for i := range p.Jobs {
		same := other.Jobs[i].Weight == p.Jobs[i].Weight && math.Abs(other.Jobs[i].DueSec-p.Jobs[i].DueSec) < 1e-6
		for m := range p.Machines {
			for g := range p.Machines[m].Devices {
				same = same && math.Abs(other.Jobs[i].Seconds[m][g]-p.Jobs[i].Seconds[m][g]) < 1e-6
			}
		}
		if !same {
			t.Fatalf("job %d came back as %+v, was %+v", i, other.Jobs[i], p.Jobs[i])
		}
	}
	if other.unpack(b[:len(b)-1], len(p.Jobs)) == nil || other.unpack(append(b, 0), len(p.Jobs)) == nil {
		t.Error("a text of another length is taken for the problem")
	}
}

// TestSearchOnMany: where a job is tried on some nodes only, the plan is one, costs at
// most a quarter more than with all nodes tried, and going on from it makes it no dearer.
func TestSearchOnMany(t *testing.T) {
	p := draw(1, 260, mostNodes+1, 3)
	q := draw(1, 260, mostNodes, 3) // every node is tried
	plan := Search(p, Plan{})
	got, all := p.Cost(plan), q.Cost(Search(q, Plan{}))
	again := p.Cost(Search(p, plan))
	t.Logf("cost %.2f, with every node tried %.2f (one node less), going on %.2f", got, all, again)
	if math.IsInf(got, 1) || got > 1.25*all || again > got+1e-6 {
		t.Errorf("cost %.2f, with every node tried %.2f, going on %.2f", got, all, again)
	}
}
