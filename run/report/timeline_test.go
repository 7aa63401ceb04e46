package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

func striped(rows, each int) *Timeline {
	t := &Timeline{Title: "a step", Kinds: []string{"forward", "backward"}}
	for r := range rows {
		row := TimelineRow{Name: "rank"}
		for i := range each {
			at := unit.Time(1000 * (2*i + r%2))
			row.Stretches = append(row.Stretches, Stretch{From: at, To: at + 1000, Kind: i % 2})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// TestTimeline: the pictures are SVG and PNG, in which something is drawn in each colour.
func TestTimeline(t *testing.T) {
	for _, rows := range []int{1, 4, 200} {
		line := striped(rows, 20)
		var svg, picture bytes.Buffer
		if err := errors.Join(line.SVG(&svg), line.PNG(&picture)); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(&svg); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		drawn, err := png.Decode(&picture)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[[3]uint32]bool{}
		for y := range drawn.Bounds().Dy() {
			for x := range drawn.Bounds().Dx() {
				r, g, b, _ := drawn.At(x, y).RGBA()
				seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
			}
		}
		for _, want := range [][3]uint32{{0x25, 0x63, 0xc9}, {0xd9, 0x68, 0x0f}} {
			if !seen[want] {
				t.Errorf("%d rows: nothing is of colour %x", rows, want)
			}
		}
		if line.every() > 1 != strings.Contains(line.Text(), "One rank of") {
			t.Errorf("%d rows, one of %d drawn: %q", rows, line.every(), line.Text())
		}
	}
}

// TestTogether: stretches too short to be seen are joined, others are not, and gaps that can be
// seen stay.
func TestTogether(t *testing.T) {
	all := []Stretch{{0, 2, 0}, {2, 6, 1}, {6, 7, 0}, {40, 60, 0}, {60, 90, 1}}
	got := together(all, 10, 2)
	want := []Stretch{{0, 7, 1}, {40, 60, 0}, {60, 90, 1}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestPlanPage: the page holds its tables and picture, and asks no one for anything.
func TestPlanPage(t *testing.T) {
	var b bytes.Buffer
	err := HTMLPlan(&b, PlanPage{Title: "Plans of <x>", Tiles: []Tile{{"step", "1 s", "tp1"}}, Step: striped(3, 5),
		Tables: []Table{{Name: "Plans", Head: []string{"plan"}, Rows: [][]string{{"tp1 & more"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Plans of &lt;x&gt;", "tp1 &amp; more", "<svg class=\"plot\"", "--c0:"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, not := range []string{"http://", "https://", "src="} {
		if strings.Contains(strings.ReplaceAll(b.String(), "http://www.w3.org", ""), not) {
			t.Errorf("%q in the page", not)
		}
	}
}
