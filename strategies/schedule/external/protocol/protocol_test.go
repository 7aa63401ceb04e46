package protocol_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/strategies/schedule/external/protocol"
)

// TestMistakes: a reply that cannot be used is refused with the field that is wrong.
func TestMistakes(t *testing.T) {
	q := protocol.Question{Models: []protocol.Model{{Name: "v100"}, {Name: "k80"}}, Jobs: []protocol.Job{{ID: 2, Sizes: []int32{2, 4}, Models: []string{"v100"}}, {ID: 5, Sizes: []int32{1}}}}
	for line, want := range map[string]string{
		`{}`:                                         "expected either order or wishes",
		`{"order": [], "wishes": []}`:                "expected either order or wishes",
		`{"order": [2, 3]}`:                          "order[1] is 3: no job of the question",
		`{"order": [5, 5]}`:                          "order[1] is 5: this job was named before",
		`{"order": ["a"]}`:                           "order is a string: expected",
		`{"order": [5], "agains": 1}`:                `unknown field "agains"`,
		`{"order": [5], "again_s": 0}`:               "again_s is 0",
		`{"order": [5]} {"order": []}`:               "more after the object",
		`loading the model`:                          "standard error",
		`{"wishes": [{"job": 2, "workers": 3}]}`:     "wishes[0].workers is 3: job 2 may have 0 or one of [2 4]",
		`{"wishes": [{"job": 5}, {"job": 7}]}`:       "wishes[1].job is 7: no job of the question",
		`{"wishes": [{"job": 5, "workers": "one"}]}`: "wishes.workers is a string",
		`{"wishes": [{"job": 2, "workers": 2, "models": ["k80"]}]}`: `wishes[0].models[0] is "k80": not a device model that job 2 may use`,
		`{"wishes": [{"job": 5, "workers": 1, "models": ["h9"]}]}`:  `wishes[0].models[0] is "h9"`,
	} {
		if _, err := q.Read([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", line, err, want)
		}
	}
	for _, line := range []string{`{"order": []}`, `{"wishes": []}`, `{"wishes": [{"job": 2, "workers": 4, "models": ["v100"]}], "again_s": 5}`} {
		if _, err := q.Read([]byte(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for hello, want := range map[string]string{`hi`: "first line", `{"hello": "x"}`: "protocol is not 1", `{"protocol": 1}`: "hello is missing", `{"hello": "x", "protocol": 2}`: "protocol is not 1"} {
		if err := protocol.Greeted([]byte(hello)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", hello, err, want)
		}
	}
}
