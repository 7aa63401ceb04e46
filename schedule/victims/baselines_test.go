package victims_test

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
)

// Jobs of 4, 2 and 2 devices on one node, of 4 and 4 on another.
func TestBaselines(t *testing.T) {
	for _, test := range []struct {
		name         string
		need         plan.Shape
		newest, rank string
	}{
		{"until there is room", whole(4, 1), "[4]", "[3]"},
		{"two", whole(6, 1), "[1 4]", "[2 3]"},
		{"what is not needed is spared by rank only", whole(2, 4), "[1 3 4]", "[3 4]"},
		{"if sparing does not do, all go", whole(1, 5), "[1 3 4]", "[2 3 4]"},
		{"too large", whole(17, 1), "[] false", "[] false"},
	} {
		for _, c := range []struct {
			chooser victims.Chooser
			want    string
		}{{new(victims.Newest), test.newest}, {new(victims.LowestRank), test.rank}} {
			t.Run(fmt.Sprintf("%s/%T", test.name, c.chooser), func(t *testing.T) {
				s := full(2, 4, 2, 2, 4, 4)
				for i, began := range []unit.Time{1, 4, 2, 3, 5} {
					s.state.Runs[s.input.Candidates[i].Run].Began = began
					s.input.Candidates[i].Key = schedule.Key{[]int64{1, 2, 4, 5, 3}[i]}
				}
				s.wants(test.need)
				got, ok := c.chooser.Choose(s.input, s.try)
				text := fmt.Sprint(got)
				if !ok {
					text += " false"
				}
				if text != c.want {
					t.Errorf("displaces %s, want %s", text, c.want)
				}
			})
		}
	}
}
