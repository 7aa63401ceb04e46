package strategies_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
)

// decided says one change: when, what, where, on which terms, and why.
func decided(v plan.View, at unit.Time, c *plan.Change) string {
	said := fmt.Sprintf("%s: %s", unit.Duration(at), c.Verb)
	switch c.Verb {
	case plan.Reshape:
		said += " " + device(v, c.Device) + " as " + v.Cluster().Models[v.Cluster().Nodes[v.Device(c.Device).Node].Model].Geometries[c.Shape].Name
	case plan.Rent, plan.Return:
		said += " " + v.Cluster().Nodes[c.Node].Name
	default:
		said += " " + v.Name(c.Job)
	}
	if c.Verb == plan.Start {
		if r := v.Run(c.Run); r.Job == c.Job && r.Attempt == c.Attempt {
			said += where(v, c.Run)
		}
	}
	if c.Verb == plan.Start || c.Verb == plan.Regrant {
		said += terms(v, c.Job, &c.Terms)
	}
	why := c.Reason.Words(v)
	if why == "" {
		why = "NOBODY SAYS WHY"
	}
	return said + " (" + why + ")"
}

// where lists the devices of a run, node by node; nothing where there is one device only.
func where(v plan.View, run plan.RunID) (said string) {
	if len(v.Cluster().Devices) == 1 && len(v.Cluster().Models[0].Geometries) == 0 {
		return ""
	}
	last := plan.DeviceID(plan.None - 1)
	v.GrantsOf(run, func(g plan.Grant) {
		if g.Device == plan.None { // cores alone
			said += " " + v.Cluster().Nodes[g.Node].Name
			return
		}
		switch on := device(v, g.Device); {
		case g.Part > 0:
			said += fmt.Sprintf(" part %d of %s", g.Part, on)
		case g.Device == last+1 && v.Device(last).Node == g.Node:
			said = strings.TrimSuffix(said, fmt.Sprintf("-%d", int32(last)-v.Cluster().Nodes[g.Node].First))
			said += "-" + on[strings.LastIndex(on, "/")+1:]
		default:
			said += " " + on
		}
		last = g.Device
	})
	if said == "" {
		return ""
	}
	return " on" + said
}

// device names a device as NODE/NUMBER.
func device(v plan.View, id plan.DeviceID) string {
	n := &v.Cluster().Nodes[v.Device(id).Node]
	return fmt.Sprintf("%s/%d", n.Name, int32(id)-n.First)
}

// terms are those in which a run differs from one that nothing was decided about.
func terms(v plan.View, job plan.JobID, t *plan.Terms) (said string) {
	for _, x := range []struct {
		name string
		n    int32
	}{{"batch", t.Share.Batch}, {"turn", t.Share.Turn}, {"part", t.Share.Milli}, {"ceiling", t.Share.Ceiling}, {"swap", t.Share.Swap},
		{"class", t.Traffic.Class}, {"weight", t.Traffic.Weight}, {"reserved", t.Traffic.Reserved}} {
		if x.n != 0 {
			said += fmt.Sprintf(" %s=%d", x.name, x.n)
		}
	}
	if t.Traffic.Shift != 0 {
		said += " shift=" + t.Traffic.Shift.String()
	}
	if t.Share.Guest == job {
		said += " as a guest without a host"
	} else if t.Share.Guest != plan.None {
		said += " " + [...]string{"in the gaps of", "as the equal of", "in one with"}[t.Share.Bond] + " " + v.Name(t.Share.Guest)
	}
	if t.Plan.ID != plan.None {
		said += pipelined(v.Pipeline(t.Plan.ID))
	}
	return said
}

// pipelined says where a pipeline is cut, and what its first stage does in which order.
func pipelined(p plan.Pipeline) string {
	if p.Groups != nil {
		return fmt.Sprintf(" with its layers in groups that end at %v", p.Groups)
	}
	var plan pipeline.Plan
	if err := json.Unmarshal(p.JSON, &plan); err != nil {
		return " " + err.Error()
	}
	var order strings.Builder
	for _, op := range plan.Orders[0] {
		if plan.Routes != nil {
			order.WriteString(op.String() + " ")
		} else {
			fmt.Fprintf(&order, "%c%d", op.Kind, op.Micro)
		}
	}
	return fmt.Sprintf(" cut before layers %v, the first stage doing %s, in %s", plan.Cuts, strings.TrimSpace(order.String()), p.Iteration)
}
