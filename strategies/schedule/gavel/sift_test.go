package gavel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What is sifted is what the whole program says, of many jobs and of few, whatever is scarce,
// with jobs that are alike and gangs.
func TestSiftIsTheProgram(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 40 {
		jobs, whole, alike := 8+r.IntN(40), 2, 1+r.IntN(4)
		if i%10 == 0 {
			jobs, whole, alike = 150, mostWhole, 10
		}
		p := drawn(r, jobs, float64(jobs)*(.02+.6*r.Float64()))
		p.Room[r.IntN(3)] *= .3 + r.Float64()
		for j := range p.Gang {
			if r.IntN(3) == 0 {
				p.Gang[j] = float64(1 + r.IntN(3))
			}
			if j > 0 && r.IntN(4) == 0 {
				p.Rate[j], p.Gang[j] = p.Rate[j-1], p.Gang[j-1]
			}
			if r.IntN(9) == 0 {
				p.Rate[j] = []float64{0, p.Rate[j][1], p.Rate[j][2]}
			}
		}
		a := p.normalised()
		want, level, err := fillBy(p, a, true, jobs, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, reached, err := fillBy(p, a, true, whole, alike)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(reached-level) > 1e-8*level {
			t.Errorf("%d jobs: level %.12g, the program has %.12g", jobs, reached, level)
		}
		holds(t, p, got)
		for j := range got { // as TestFillIsLexicographic: later levels hang on how far the floors of the first give way
			if has, was := dot(a[j], got[j]), dot(a[j], want[j]); math.Abs(has-was) > 1e-5*was {
				t.Errorf("case %d, job %d of %d has %.12g of its time, the program gives it %.12g", i, j, jobs, has, was)
			}
			for k := range got[j] { // what floors give way shows in the parts of those who have a choice
				if math.Abs(got[j][k]-want[j][k]) > 1e-4 {
					t.Errorf("case %d, job %d of %d: %v, the program has %v", i, j, jobs, got[j], want[j])
					break
				}
			}
		}
	}
}

// A large program is within a second of the processor.
func BenchmarkDivide(b *testing.B) {
	p := drawn(rand.New(rand.NewPCG(1, 200)), 2048, 368)
	p.Policy = MaxMin
	for b.Loop() {
		divided(b, p)
	}
}
