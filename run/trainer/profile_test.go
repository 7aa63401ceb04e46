package trainer

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// What the profile counts is what a stage really allocates.
func TestProfileCountsWhatIsAllocated(t *testing.T) {
	c := tiny()
	c.Dim, c.Seq = 32, 16 // every tensor fills whole cache lines: the arena adds no padding
	const parts = 2
	layers := Profile(c, Speed{Microbatches: parts, GFLOPS: 0.01})
	if len(layers) != c.depth() {
		t.Fatalf("%d layers, want %d", len(layers), c.depth())
	}
	microbatch := share(draw(corpus, c, 1), 0, parts)
	var x []float32
	for i, l := range layers {
		s := newStage(c, i, i+1, &ring{world: 1})
		m := s.begin(microbatch, 1)
		x = s.forward(m, x)
		if got, want := l.ActivationKiB, floatsKiB(m.arena.used); got != want {
			t.Errorf("%s keeps %d KiB, the profile says %d", l.Name, want, got)
		}
		if got, want := l.ParamKiB, floatsKiB(len(s.w)); got != want {
			t.Errorf("%s has %d KiB of parameters, the profile says %d", l.Name, want, got)
		}
		if got, want := l.OutputKiB, floatsKiB(len(x)); got != want {
			t.Errorf("%s sends %d KiB, the profile says %d", l.Name, want, got)
		}
	}
}

func TestProfileTimes(t *testing.T) {
	c := Default() // dim 64, 2 blocks, 4 heads, seq 32, batch 16, vocabulary 256
	layers := Profile(c, Speed{Microbatches: 4, GFLOPS: 1})
	// 128 tokens: 12 d^2 weights and two 32-wide attention products, 2 operations each.
	const flop = 2 * 128 * (12*64*64 + 2*32*64)
	block := unit.Seconds(flop / 1e9)
	head := unit.Seconds(2 * 128 * 64 * 256 / 1e9)
	for i, want := range []struct {
		name    string
		forward unit.Duration
	}{{"embedding", 8}, {"block1", block}, {"block2", block}, {"head", head}} {
		if l := layers[i]; l.Name != want.name || l.Forward != want.forward || l.Backward != 2*want.forward {
			t.Errorf("layer %d is %+v, want %+v", i, l, want)
		}
	}
	if again := Profile(c, Speed{Microbatches: 4, GFLOPS: 2}); again[1].Forward != unit.Seconds(flop/2e9) {
		t.Errorf("at twice the speed a block takes %s, before %s", again[1].Forward, block)
	}
}
