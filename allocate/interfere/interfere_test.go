package interfere_test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/interfere"
)

func tenant(t *rapid.T) interfere.Tenant {
	return interfere.Tenant{Demand: interfere.Demand{SM: rapid.Float64Range(0, 1).Draw(t, "sm"), Bandwidth: rapid.Float64Range(0, 1).Draw(t, "bandwidth")},
		Ceiling: rapid.SampledFrom([]float64{0, .25, .5, 1}).Draw(t, "ceiling")}
}

// One tenant without a ceiling runs as if alone, resources are never used beyond
// what there is, and nobody gains from a neighbour that comes or wants more.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := interfere.Proportional{Friction: rapid.Float64Range(0, 1).Draw(t, "friction")}
		all := rapid.SliceOfN(rapid.Custom(tenant), 1, 6).Draw(t, "tenants")
		alone := all[0]
		alone.Ceiling = 0
		if r := model.Rates([]interfere.Tenant{alone}, nil); r[0] != 1 {
			t.Fatalf("alone at rate %v", r)
		}
		rates := model.Rates(all, nil)
		sm, bandwidth := 0.0, 0.0
		for i, r := range rates {
			if !(r > 0 && r <= 1) {
				t.Fatalf("rate %g", r)
			}
			sm, bandwidth = sm+r*all[i].SM, bandwidth+r*all[i].Bandwidth
		}
		if sm > 1+1e-9 || bandwidth > 1+1e-9 {
			t.Fatalf("%g of the SMs and %g of the bandwidth are used", sm, bandwidth)
		}
		noSlower := func(what string, more []interfere.Tenant, except int) {
			for i, r := range model.Rates(more, nil)[:len(all)] {
				if i != except && r > rates[i]+1e-12 {
					t.Fatalf("%s: tenant %d goes from %g to %g", what, i, rates[i], r)
				}
			}
		}
		noSlower("one more", append(slices.Clone(all), tenant(t)), -1)
		more, who := slices.Clone(all), rapid.IntRange(0, len(all)-1).Draw(t, "who")
		more[who].SM = rapid.Float64Range(more[who].SM, 1).Draw(t, "more sm")
		if more[who].Ceiling == 0 { // under a ceiling, wanting more compute slows one's own use of bandwidth
			more[who].Bandwidth = rapid.Float64Range(more[who].Bandwidth, 1).Draw(t, "more bandwidth")
			noSlower("wants more", more, who)
		}
	})
}

// The acceptance of the catalogue's A1, and what a mixed pair gains.
func TestPairs(t *testing.T) {
	rates := func(a, b interfere.Tenant) (float64, float64) {
		r := interfere.Default().Rates([]interfere.Tenant{a, b}, nil)
		return r[0], r[1]
	}
	of := func(sm, bandwidth, ceiling float64) interfere.Tenant {
		return interfere.Tenant{Demand: interfere.Demand{SM: sm, Bandwidth: bandwidth}, Ceiling: ceiling}
	}
	if a, b := rates(of(.4, .2, .5), of(.4, .2, .5)); a < .95 || a != b {
		t.Errorf("two small ones run at %g and %g", a, b)
	}
	if a, b := rates(of(.9, .45, .5), of(.9, .45, .5)); a < .5 || a > .62 || a != b {
		t.Errorf("two large ones run at %g and %g", a, b)
	}
	same, _ := rates(of(.6, .1, 0), of(.6, .1, 0))
	mixed, _ := rates(of(.6, .1, 0), of(.1, .6, 0))
	if mixed != 1 || same > .84 {
		t.Errorf("beside its like %g, beside its opposite %g", same, mixed)
	}
	rough := interfere.Proportional{Friction: .5}
	like, unlike := rough.Rates([]interfere.Tenant{of(.5, .1, 0), of(.5, .1, 0)}, nil), rough.Rates([]interfere.Tenant{of(.5, .1, 0), of(.1, .5, 0)}, nil)
	if like[0] >= unlike[0] || unlike[0] >= 1 {
		t.Errorf("with friction, beside its like %g, beside its opposite %g", like[0], unlike[0])
	}
}

// read returns the rows of a table by their columns' names.
func read(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "lucid", name))
	if err != nil {
		t.Skipf("the data set lucid is not here: %v", err)
	}
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, column := range all[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// On the pairs that Lucid's authors measured, with the utilisation of SMs and of memory
// alone as demands, the model is closer than the mean of all is, and friction does not
// help. Utilisation is busy time and not a part of the SMs, so it is a coarse demand.
func TestMeasuredPairs(t *testing.T) {
	number := func(row map[string]string, column string) float64 {
		x, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	alone := map[string]interfere.Tenant{}
	for _, row := range read(t, "single_data.csv") {
		alone[row["model"]+row["dataset"]+row["batchsize"]+row["amp"]] = interfere.Tenant{Demand: interfere.Demand{SM: number(row, "gpu_util") / 100, Bandwidth: number(row, "gmem_util") / 100}}
	}
	var pairs [][]interfere.Tenant
	var measured []float64
	sum := 0.0
	for _, row := range read(t, "colocate_info_dev.csv") {
		var pair []interfere.Tenant
		for _, k := range []string{"1", "2"} {
			pair = append(pair, alone[row["model"+k]+row["dataset"+k]+row["batchsize"+k]+row["amp"+k]])
			measured = append(measured, min(1, number(row, "speed"+k)))
			sum += measured[len(measured)-1]
		}
		pairs = append(pairs, pair)
	}
	off := func(model interfere.Proportional) (mean float64) {
		for i, pair := range pairs {
			for k, r := range model.Rates(pair, nil) {
				mean += math.Abs(r-measured[2*i+k]) / float64(len(measured))
			}
		}
		return mean
	}
	constant := 0.0
	for _, m := range measured {
		constant += math.Abs(m-sum/float64(len(measured))) / float64(len(measured))
	}
	model, rough := off(interfere.Default()), off(interfere.Proportional{Friction: .1})
	t.Logf("%d pairs: off by %.3f, with friction %.3f, the mean %.3f", len(pairs), model, rough, constant)
	if model > .9*constant || rough < model {
		t.Errorf("off by %.3f, with friction %.3f, the mean %.3f", model, rough, constant)
	}
}

func TestMatrix(t *testing.T) {
	m := interfere.Matrix{{.5, .9}, {.8, 1}}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	got := m.Rates([]int{0, 1, 1}, nil)
	for i, want := range []float64{.81, .8, .8} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("got %v", got)
		}
	}
	if got := m.Rates([]int{0}, nil); got[0] != 1 {
		t.Errorf("alone at %v", got)
	}
	for _, bad := range []interfere.Matrix{{{1, 1}}, {{0}}, {{1.1}}, {{math.NaN()}}} {
		if bad.Validate() == nil {
			t.Errorf("%v is not a matrix of rates", bad)
		}
	}
	if interfere.Default().Validate() != nil || (interfere.Proportional{Friction: -1}).Validate() == nil {
		t.Error("validation of friction")
	}
}
