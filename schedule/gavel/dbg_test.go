package gavel
import ("testing";"math/rand/v2")
func TestDbg(t *testing.T) {
	open := data(t)
	tab, _ := tables(open)
	for _, n := range []int{60,100,150,250} {
		jobs := continuous(tab, n, .9, []int{36,36,36}, 3)
		p := Problem{Policy: MaxMin, Room: []float64{36,36,36}}
		r := rand.New(rand.NewPCG(1,1)); _ = r
		for _, j := range jobs { p.Rate = append(p.Rate, j.rate); p.Gang = append(p.Gang, 1) }
		a := p.normalised()
		_, unit, _ := pour(p, a, false)
		f := filling{p: p, a: a, floor: make([]float64, len(a)), unit: unit}
		for j := range a { f.floor[j] = -1; f.cap = append(f.cap, max(a[j][0],a[j][1],a[j][2])); f.free++ }
		for f.free > 0 { b := f.free; l, err := f.raise(); t.Log(n, l, b-f.free, err) }
	}
}
