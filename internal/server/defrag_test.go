package server_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// saves lets a job be moved.
func saves(j workload.Job) workload.Job {
	j.Checkpoint = workload.Checkpoint{OnRequest: true, Save: 20 * unit.Second, Load: 40 * unit.Second}
	return j
}

// fragmented is a world in which a job of two devices waits for one move.
func fragmented(t *testing.T) *world {
	w := start(t, nil)
	w.submit(saves(job("first", 1)), saves(job("b", 1)), saves(job("c", 1)))
	w.until("c", "active", "running")
	if _, err := w.client.ChangeJob(t.Context(), "first", "cancel"); err != nil {
		t.Fatal(err)
	}
	w.until("first", "cancelled", "")
	w.submit(job("big", 2))
	w.until("big", "waiting", "")
	return w
}

// A plan is shown, changes nothing, and is carried out by its digest: the moved job goes
// on elsewhere and the one that waited starts.
func TestDefrag(t *testing.T) {
	w := fragmented(t)
	plan, err := w.client.Defrag(t.Context(), defrag.Request{Job: "big"})
	if err != nil {
		t.Fatal(err)
	}
	digest := plan.Digest
	plan.Digest = ""
	price := 60.0 / 3600
	want := defrag.Shown{Job: "big", PriceDeviceHours: price,
		Moves:  []defrag.ShownMove{{Job: "c", From: []string{"node1"}, To: []string{"node0"}, Devices: 1, PriceSec: 60, PriceDeviceHours: price}},
		Starts: &defrag.ShownStart{Job: "big", Nodes: []string{"node1"}, Workers: 1, Devices: 2},
		Before: []defrag.ShownNode{{Node: "node0", Devices: []string{"", "b"}}, {Node: "node1", Devices: []string{"c", ""}}},
		After:  []defrag.ShownNode{{Node: "node0", Devices: []string{"c", "b"}}, {Node: "node1", Devices: []string{"big", "big"}}},
		Words:  "1 move makes room for big on node1 (2 devices), at a price of 0.0167 device-hours"}
	if digest == "" || !reflect.DeepEqual(plan, want) {
		t.Errorf("planned %+v\nwant    %+v", plan, want)
	}
	if any, err := w.client.Defrag(t.Context(), defrag.Request{}); err != nil || any.Digest != digest {
		t.Errorf("without a job: %+v (%v)", any, err)
	}
	w.until("big", "waiting", "")
	w.until("c", "active", "running")

	other, err := w.client.Defrag(t.Context(), defrag.Request{Job: "big", Apply: true, Digest: "another"})
	if err != nil || other.Applied || other.Digest != digest || !strings.HasPrefix(other.Words, "nothing was moved, the cluster has changed") {
		t.Errorf("by another digest: %+v (%v)", other, err)
	}
	w.until("big", "waiting", "")

	done, err := w.client.Defrag(t.Context(), defrag.Request{Job: "big", Apply: true, Digest: digest})
	if err != nil || !done.Applied {
		t.Fatalf("applied: %+v (%v)", done, err)
	}
	w.until("big", "active", "running")
	w.until("c", "active", "running")
	c, err := w.client.Job(t.Context(), "c")
	if err != nil || c.Attempt != 2 || c.Preemptions != 1 || len(c.Where) != 1 || c.Where[0].Node != "node0" || c.Reason != "moved to make room for big" {
		t.Errorf("c is %+v (%v)", c, err)
	}
	if b, err := w.client.Job(t.Context(), "b"); err != nil || b.Attempt != 1 {
		t.Errorf("b is %+v (%v)", b, err)
	}
	again, err := w.client.Defrag(t.Context(), defrag.Request{Job: "big", Apply: true, Digest: digest})
	if err != nil || again.Applied || !strings.Contains(again.Words, "big is running") {
		t.Errorf("applied again: %+v (%v)", again, err)
	}
}

// TestDefragAsked: what may be asked, and how the bounds are kept.
func TestDefragAsked(t *testing.T) {
	w := fragmented(t)
	for _, c := range []struct {
		ask    defrag.Request
		status int
		want   string
	}{
		{defrag.Request{Job: "nobody"}, http.StatusNotFound, "nobody"},
		{defrag.Request{MovesMost: -1}, http.StatusBadRequest, "moves_most"},
		{defrag.Request{MovesMost: 1000}, http.StatusBadRequest, "moves_most"},
		{defrag.Request{PriceMostDeviceHours: -1}, http.StatusBadRequest, "price_most_device_hours"},
		{defrag.Request{Apply: true}, http.StatusBadRequest, "digest"},
	} {
		var refused *client.Error
		if _, err := w.client.Defrag(t.Context(), c.ask); !errors.As(err, &refused) || refused.Status != c.status || !strings.Contains(refused.Message, c.want) {
			t.Errorf("%+v: %v", c.ask, err)
		}
	}
	if dear, err := w.client.Defrag(t.Context(), defrag.Request{Job: "big", PriceMostDeviceHours: 0.01}); err != nil || len(dear.Moves) != 0 || !strings.Contains(dear.Words, "0.01 device-hours was found") {
		t.Errorf("a bound that is too low: %+v (%v)", dear, err)
	}
	if plan, err := w.client.Defrag(t.Context(), defrag.Request{Job: "big", PriceMostDeviceHours: 0.02, MovesMost: 1}); err != nil || len(plan.Moves) != 1 {
		t.Errorf("bounds that are enough: %+v (%v)", plan, err)
	}
	if status, answer := w.do("POST", "/v1/defrag", "application/json", `{}`); status != http.StatusOK || !strings.Contains(answer, `"moves":[{"job":"c"`) {
		t.Errorf("%d %s", status, answer)
	}
	if status, _ := w.do("POST", "/v1/defrag", "application/json", `{"dry": true}`); status != http.StatusBadRequest {
		t.Errorf("an unknown field: %d", status)
	}
}
