package envelope_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

func table(t testing.TB, model string, memory unit.MiB) *envelope.Table {
	t.Helper()
	tab, ok := envelope.MIG(model, memory)
	if !ok {
		t.Fatalf("%s has no profiles", model)
	}
	return tab
}

// The profile names of every model in mig-parted's configuration, and how many of
// each fill a device, follow from the memory of the device.
func TestTablesAgreeWithMigParted(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "gpu-specs", "mig_geometries.csv"))
	if err != nil {
		t.Skipf("the data set gpu-specs is not here: %v", err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.LazyQuotes = true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	read := map[string][]int{} // profile: how many fill a device; a name may belong to two models
	for _, r := range rows[1:] {
		if strings.HasPrefix(r[0], "all-") && r[0] != "all-balanced" {
			n, _ := strconv.Atoi(r[4])
			read[r[3]] = append(read[r[3]], n)
		}
	}
	for model, gb := range map[string]int{"A100": 40, "H100": 80, "A30": 24, "H200": 141, "GH200": 96, "GB200": 186} {
		tab := table(t, model, unit.MiB(gb)<<10)
		for p, profile := range tab.Profiles {
			if got := tab.Most(p, tab.All()); !slices.Contains(read[profile.Name], got) {
				t.Errorf("%s: %s fits %d times, mig-parted says %v", model, profile.Name, got, read[profile.Name])
			}
		}
	}
}

// NVIDIA's user guide lists 18 ways to fill an A100 without the double-memory
// profile, one of them twice by which half has 3g; it counts 7g as well.
func TestLayouts(t *testing.T) {
	all := table(t, "A100", 0).Layouts()
	plain := slices.DeleteFunc(slices.Clone(all), func(l envelope.Layout) bool {
		return slices.ContainsFunc(l, func(i envelope.Instance) bool { return i.Profile == 1 })
	})
	if len(all) != 78 || len(plain) != 19 {
		t.Errorf("an A100 has %d layouts, %d without 1g.10gb, want 78 and 19", len(all), len(plain))
	}
	if n := len(table(t, "A30", 0).Layouts()); n != 5 {
		t.Errorf("an A30 has %d layouts, want 5", n)
	}
	for _, none := range []string{"V100", "A40", "T4", "L40S", "RTX A3000"} {
		if _, ok := envelope.MIG(none, 0); ok {
			t.Errorf("%s cannot be partitioned", none)
		}
	}
	if name := table(t, "NVIDIA-A100-SXM4-80GB", 81559).Profiles[3].Name; name != "3g.40gb" {
		t.Errorf("3g of an A100 with 80 GB is called %s", name)
	}
	h200 := table(t, "H200", 0)
	for _, g := range h200.Geometries()[1:] {
		var l envelope.Layout
		for _, part := range g.Parts {
			in, ok := h200.Instance(part)
			if l = append(l, in); !ok {
				t.Errorf("%s: a part of %v is unknown", g.Name, part)
			}
		}
		if ok, why := h200.Legal(l); !ok {
			t.Errorf("%s: %s", g.Name, why)
		}
	}
}

// Over every sequence of at most seven profiles, placing each at its best start
// never yields an illegal layout, and what is refused has no start: brute force over
// the slots agrees.
func TestNeverIllegal(t *testing.T) {
	for _, model := range []string{"A100", "A30"} {
		tab := table(t, model, 0)
		weights := make([]int64, len(tab.Profiles))
		for p := range weights {
			weights[p] = int64(p + 1)
		}
		var walk func(l envelope.Layout, free envelope.Slots, depth int)
		walk = func(l envelope.Layout, free envelope.Slots, depth int) {
			for p := range tab.Profiles {
				start, loss, ok := tab.Best(p, free, weights)
				if ok != (legalStarts(tab, l, p) > 0) {
					t.Fatalf("%v: %s: room is %v", l, tab.Profiles[p].Name, ok)
				}
				if !ok {
					continue
				}
				next := append(slices.Clone(l), envelope.Instance{Profile: p, Start: start})
				if legal, why := tab.Legal(next); !legal || loss < weights[p] {
					t.Fatalf("%v is illegal: %s (loss %d)", next, why, loss)
				}
				if depth > 1 {
					walk(next, free&^tab.Slots(next[len(next)-1]), depth-1)
				}
			}
		}
		walk(nil, tab.All(), 7)
	}
}

// legalStarts counts the starts at which a profile can be added to a layout.
func legalStarts(tab *envelope.Table, l envelope.Layout, p int) (n int) {
	for start := range tab.Slices {
		if ok, _ := tab.Legal(append(slices.Clone(l), envelope.Instance{Profile: p, Start: start})); ok {
			n++
		}
	}
	return n
}

// A single small instance goes to the slot that no larger one can use.
func TestGradient(t *testing.T) {
	tab := table(t, "A100", 0)
	equal := []int64{1, 0, 1, 1, 0, 0}
	for profile, want := range map[int]int{0: 6, 2: 0, 3: 4} {
		if got, _, _ := tab.Best(profile, tab.All(), equal); got != want {
			t.Errorf("%s goes to %d, want %d", tab.Profiles[profile].Name, got, want)
		}
	}
}

func TestLegal(t *testing.T) {
	tab := table(t, "A100", 0)
	for _, c := range []struct {
		layout envelope.Layout
		why    string
	}{
		{envelope.Layout{{Profile: 3, Start: 0}, {Profile: 3, Start: 4}}, ""},
		{envelope.Layout{{Profile: 3, Start: 0}, {Profile: 4, Start: 0}}, "4g.20gb@0 overlaps another instance"},
		{envelope.Layout{{Profile: 3, Start: 2}}, "3g.20gb@2 cannot begin there"},
	} {
		if ok, why := tab.Legal(c.layout); ok != (c.why == "") || why != c.why {
			t.Errorf("%+v: got %v, %q, want %q", c.layout, ok, why, c.why)
		}
	}
}

// Cutting half of a device another way leaves the other half alone.
func TestRecutTime(t *testing.T) {
	tab := table(t, "A100", 0)
	halves := tab.Geometry(envelope.Layout{{Profile: 3, Start: 0}, {Profile: 3, Start: 4}}).Parts
	mixed := tab.Geometry(envelope.Layout{{Profile: 3, Start: 0}, {Profile: 2, Start: 4}, {Profile: 0, Start: 6}}).Parts
	for _, c := range []struct {
		was, will []cluster.Part
		want      unit.Duration
	}{{halves, mixed, 15 * unit.Second}, {halves, halves, 0}, {nil, halves, 10 * unit.Second}} {
		if got := envelope.RecutTime(c.was, c.will); got != c.want {
			t.Errorf("from %v to %v takes %s, want %s", c.was, c.will, got, c.want)
		}
	}
}
