package engine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// TestEventsAreWritten: whatever part a member of an event belongs to, it is written by
// its own name, in the order of the journals that there are, and comes back.
func TestEventsAreWritten(t *testing.T) {
	ev := engine.Event{Kind: engine.Exited, Job: 1, Attempt: 2, Node: 3, Device: 4, Spec: &workload.Job{Name: "a"}, Change: 5, Ending: engine.Ending{Kept: 6, Class: 7, Alive: true}, Span: 8,
		Observation: engine.Observation{Progress: 9, Saved: 10, Loss: 11, RateMicro: 12, RateOff: plan.Off{Less: 18, More: 19}, Stood: 13, Timed: engine.Timed{Stages: []unit.Duration{17}, Slow: []float64{1.5}, Links: []float64{2.5}}, Goes: &engine.Going{Plan: 18, Why: "e"}}, By: "b", Answer: strategy.Answer{Asker: "c", Reply: []byte{14}},
		Queues: &queue.Tree{}, Bounds: engine.Bounds{From: 15, To: 16}, Moves: []engine.Move{{Job: 17}},
		Outside: engine.Outside{Nodes: &cluster.Cluster{}, Use: &engine.Use{CPU: 18}, Set: 19, Within: []uint64{20}}, Image: &engine.Image{Strategy: "d"}, Setting: []byte{21}}
	b, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	d := json.NewDecoder(strings.NewReader(string(b)))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		default:
			if name, ok := token.(string); ok && depth == 1 {
				names = append(names, name)
				var value json.RawMessage
				if err := d.Decode(&value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const want = "kind job attempt node device spec change kept class alive span progress saved loss rate_micro rate_off stood stages_us slow links goes by asker reply queues from_us to_us moves nodes use set within image setting"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the members are\n%s, want\n%s", got, want)
	}
	var back engine.Event
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, ev) {
		t.Errorf("%s comes back as %+v, %v", b, back, err)
	}
	if b, err := json.Marshal(engine.Event{Kind: engine.Tick, Job: plan.JobID(0)}); err != nil || string(b) != `{"kind":0}` {
		t.Errorf("a tick is %s, %v", b, err)
	}
}
