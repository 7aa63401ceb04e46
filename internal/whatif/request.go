package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Request says what is different. Its parts can be combined.
type Request struct {
	// Strategy names another one, several joined by +, or is the text of a file.
	Strategy string `json:"strategy,omitempty"`
	// AddNodes nodes come in addition, with so many devices each of a model; 0 and "" are
	// as the first node's. Speed is that of a model that the cluster does not have.
	AddNodes   int      `json:"add_nodes,omitempty"`
	AddDevices int      `json:"add_devices,omitempty"`
	Model      string   `json:"model,omitempty"`
	Speed      float64  `json:"speed,omitempty"`
	Remove     []string `json:"remove_nodes,omitempty"`
	// Queue gets another guarantee, of all models together.
	Queue *Share `json:"queue,omitempty"`
	// Job is one or more jobs as a file has them, which are submitted now.
	Job string `json:"job,omitempty"`
	// LastS goes back so many seconds and lets the jobs come that came.
	LastS    float64 `json:"last_s,omitempty"`
	HorizonS float64 `json:"horizon_s,omitempty"`
}

// Share is a queue's guarantee.
type Share struct {
	Name             string  `json:"name"`
	GuaranteeDevices float64 `json:"guarantee_devices"`
}

// Bounds of what may be added.
const (
	mostNodes   = 10_000
	mostDevices = 1024 // of a node
)

// MostAdded is how many devices anybody may add in all; fewer are the base's to say.
const MostAdded = 100_000

// wrong is a mistake of who asks.
type wrong struct{ text string }

// Error is the mistake in words.
func (w wrong) Error() string { return w.text }

// IsWrong reports whether an error is a mistake of who asked.
func IsWrong(err error) bool {
	var w wrong
	return errors.As(err, &w)
}

// rank puts errors that say more first.
func rank(err error) int {
	switch {
	case err == nil:
		return 2
	case errors.Is(err, context.Canceled):
		return 1
	}
	return 0
}

// Check says what is wrong with a request, whatever it is asked of.
func (q *Request) Check() error {
	switch {
	case q.Strategy == "" && q.AddNodes == 0 && len(q.Remove) == 0 && q.Queue == nil && q.Job == "":
		return wrong{"nothing is different: name a strategy, nodes, a queue's guarantee or a job"}
	case q.AddNodes < 0 || q.AddNodes > mostNodes || q.AddDevices < 0 || q.AddDevices > mostDevices:
		return wrong{fmt.Sprintf("add_nodes is %d of %d devices: expected at most %d of at most %d", q.AddNodes, q.AddDevices, mostNodes, mostDevices)}
	case q.AddNodes == 0 && (q.AddDevices > 0 || q.Model != "" || q.Speed != 0):
		return wrong{"a model is named and no nodes: say how many are added"}
	case !(q.Speed >= 0 && q.Speed <= 1000):
		return wrong{"speed is negative or too large: expected how many times as fast as the reference"}
	case !(q.HorizonS >= 0 && q.HorizonS <= MostHorizon.Seconds()):
		return wrong{fmt.Sprintf("horizon_s is not between 0 and %.0f", MostHorizon.Seconds())}
	case !(q.LastS >= 0 && q.LastS <= MostHorizon.Seconds()):
		return wrong{fmt.Sprintf("last_s is not between 0 and %.0f", MostHorizon.Seconds())}
	case q.LastS > 0 && q.Job != "":
		return wrong{"a job is submitted now, not in the past: leave last_s or the job out"}
	case q.Queue != nil && !(q.Queue.GuaranteeDevices >= 0 && q.Queue.GuaranteeDevices <= mostNodes*mostDevices):
		return wrong{"guarantee_devices is negative or too large"}
	}
	return nil
}

// Last is how far to go back; 0 is not at all.
func (q *Request) Last() unit.Duration { return unit.Seconds(q.LastS) }

// horizon is how far to look: of a past by default as far as it is known.
func (q *Request) horizon(base *Base) unit.Duration {
	switch {
	case q.HorizonS > 0:
		return unit.Seconds(q.HorizonS)
	case q.LastS > 0 && base.Past.To > base.State.Now:
		return base.Past.To.Sub(base.State.Now)
	}
	return DefaultHorizon
}

// change is the request for a base, with the strategy that decides then.
func (q *Request) change(base *Base) (c ahead.Change, strategy catalogue.Composition, err error) {
	v := base.State.View()
	strategy = base.Strategy
	if q.Strategy != "" {
		if strategy, err = Strategy(q.Strategy); err != nil {
			return c, strategy, err
		}
		c.Scheduler = scheduler(strategy, base.Seed)
	}
	if q.AddNodes > 0 {
		if c.Add, err = q.nodes(v.Cluster(), cmp.Or(base.MostAdded, MostAdded)); err != nil {
			return c, strategy, err
		}
	}
	for _, name := range q.Remove {
		id := slices.IndexFunc(v.Cluster().Nodes, func(n cluster.Node) bool { return n.Name == name })
		if id < 0 {
			return c, strategy, wrong{fmt.Sprintf("there is no node %q: muster nodes lists them", name)}
		}
		if slices.Contains(c.Remove, plan.NodeID(id)) {
			return c, strategy, wrong{fmt.Sprintf("the node %q is named twice", name)}
		}
		c.Remove = append(c.Remove, plan.NodeID(id))
	}
	if len(c.Remove) == v.Nodes() && q.AddNodes == 0 {
		return c, strategy, wrong{"no node would be left: leave one, or add others"}
	}
	if q.Queue != nil {
		tree, err := q.tree(v, devices(v, &c))
		if err != nil {
			return c, strategy, err
		}
		c.First = append(c.First, engine.Event{Kind: engine.Shares, Queues: tree})
	}
	if c.Submit, err = q.submits(v, base.Jobs); err != nil {
		return c, strategy, err
	}
	return c, strategy, nil
}

// submits are jobs to come that an engine would take.
func (q *Request) submits(v plan.View, jobs []workload.Job) (list []ahead.Arrival, err error) {
	taken := map[string]bool{}
	for id := range plan.JobID(v.Jobs()) {
		taken[v.Name(id)] = true
	}
	for _, j := range jobs {
		if taken[j.Name] {
			return nil, wrong{fmt.Sprintf("there is a job named %q: choose another name", j.Name)}
		}
		for _, after := range j.After {
			if name, _ := workload.ParseAfter(after); !taken[name] && !taken[name+"-0"] {
				return nil, wrong{fmt.Sprintf("job %q comes after %q, which does not exist", j.Name, name)}
			}
		}
		for _, m := range j.Models {
			if _, ok := v.Cluster().ModelID(m); !ok && m != q.Model {
				return nil, wrong{fmt.Sprintf("job %q asks for device model %q, which the cluster does not have", j.Name, m)}
			}
		}
		taken[j.Name] = true
		list = append(list, ahead.Arrival{Job: j})
	}
	return list, nil
}

// Strategy reads what a request calls a strategy, for a cluster that does not know true
// running times.
func Strategy(text string) (catalogue.Composition, error) {
	c, err := catalogue.Parse("request", text)
	if err == nil {
		c, err = c.Live()
	}
	if err == nil {
		_, err = c.Build(catalogue.Env{}, false) // options may be wrong
	}
	if err != nil {
		return c, wrong{err.Error()}
	}
	return c, nil
}

// nodes are those to be added, made like the first of their model.
func (q *Request) nodes(c *cluster.Cluster, most int) (list []ahead.NewNode, err error) {
	like := slices.IndexFunc(c.Nodes, func(n cluster.Node) bool { return q.Model == "" || c.Models[n.Model].Name == q.Model })
	if like < 0 && q.Speed == 0 {
		return nil, wrong{fmt.Sprintf("the cluster has no devices of model %q: say how fast one is, or choose from those that muster nodes lists", q.Model)}
	}
	node := c.Nodes[max(0, like)]
	model := c.Models[node.Model]
	if like < 0 {
		model = cluster.Model{Name: q.Model, Memory: model.Memory, Speed: q.Speed}
	}
	taken := map[string]bool{}
	for i := range c.Nodes {
		taken[c.Nodes[i].Name] = true
	}
	count := int(node.Count)
	if q.AddDevices > 0 {
		count = q.AddDevices
	}
	if all := q.AddNodes * count; all > most {
		return nil, wrong{fmt.Sprintf("add_nodes is %d of %d devices, %d in all: expected at most %d in all", q.AddNodes, count, all, most)}
	}
	for i := 1; len(list) < q.AddNodes; i++ {
		if n := node; !taken[fmt.Sprint("added", i)] {
			n.Name = fmt.Sprint("added", i)
			list = append(list, ahead.NewNode{Node: n, Devices: model, Count: count})
		}
	}
	return list, nil
}

// tree is the tree of queues with another guarantee, on so many thousandths of devices.
func (q *Request) tree(v plan.View, devices int64) (*queue.Tree, error) {
	tree := *v.Queues()
	at := slices.IndexFunc(tree.Queues, func(x queue.Queue) bool { return x.Name == q.Queue.Name })
	if at <= 0 {
		return nil, wrong{fmt.Sprintf("there is no queue %q: muster queues lists them", q.Queue.Name)}
	}
	tree.Queues = slices.Clone(tree.Queues)
	tree.Queues[at].Guarantee = nil
	milli := int64(math.Round(q.Queue.GuaranteeDevices * 1000))
	if milli > devices {
		return nil, wrong{fmt.Sprintf("%s guaranteed to %s of %s that there would be: expected at most as many", plan.Devices(milli), q.Queue.Name, plan.Devices(devices))}
	}
	if milli > 0 {
		tree.Queues[at].Guarantee = []queue.Amount{{Milli: milli}}
	}
	err := tree.Check(func(model string) bool { _, ok := v.Cluster().ModelID(model); return ok })
	if err != nil {
		return nil, wrong{err.Error()}
	}
	return &tree, nil
}

// devices are those that there would be, in thousandths.
func devices(v plan.View, c *ahead.Change) int64 {
	n := 0
	for id := range v.Cluster().Nodes {
		if !slices.Contains(c.Remove, plan.NodeID(id)) {
			n += int(v.Cluster().Nodes[id].Count)
		}
	}
	for i := range c.Add {
		n += c.Add[i].Count
	}
	return int64(n) * 1000
}

// says is the change in words.
func (q *Request) says(sides []side) string {
	var list []string
	if q.Strategy != "" {
		list = append(list, fmt.Sprintf("with %s instead of %s", sides[1].strategy, sides[0].strategy))
	}
	if q.AddNodes > 0 {
		list = append(list, "with "+count(q.AddNodes, "more node"))
	}
	if n := len(q.Remove); n > 0 {
		list = append(list, "without "+count(n, "node"))
	}
	if q.Queue != nil {
		list = append(list, fmt.Sprintf("with %g devices guaranteed to %s", q.Queue.GuaranteeDevices, q.Queue.Name))
	}
	if q.Job != "" {
		list = append(list, "with the job submitted now")
	}
	return strings.Join(list, ", ")
}

// words sum an answer up.
func words(a *Answer, q *Request, sides []side) string {
	var b strings.Builder
	b.WriteString(q.says(sides))
	wait := unit.Seconds(a.Alternative.MeanWaitS - a.Base.MeanWaitS)
	switch {
	case a.alike():
		fmt.Fprintf(&b, " nothing is different: the same %s, at the same times, within %s", a.finish(), span(unit.Seconds(a.HorizonS)))
	case a.Compared == 0:
		b.WriteString(" no job finishes in both futures")
	case wait == 0:
		fmt.Fprintf(&b, " the %s that finish in both futures wait as long on average", count(a.Compared, "job"))
	default:
		fmt.Fprintf(&b, " the %s that finish in both futures wait %s %s on average (%s instead of %s)", count(a.Compared, "job"), span(max(wait, -wait)),
			map[bool]string{true: "longer", false: "less"}[wait > 0], span(unit.Seconds(a.Alternative.MeanWaitS)), span(unit.Seconds(a.Base.MeanWaitS)))
	}
	if !a.alike() {
		fmt.Fprintf(&b, "; %d finish instead of %d, with %s instead of %d, within %s", a.Alternative.Finished, a.Base.Finished,
			count(a.Alternative.Preemptions, "preemption"), a.Base.Preemptions, span(unit.Seconds(a.HorizonS)))
	}
	for i := range a.Submitted {
		b.WriteString("; " + a.Submitted[i].Words)
	}
	for i := range sides {
		if sides[i].future.Ended == ahead.OutOfSteps {
			fmt.Fprintf(&b, "; the future under %s was followed only until %s, then the work allowed was spent", sides[i].strategy, span(sides[i].future.To.Sub(sides[i].future.From)))
		}
	}
	return b.String()
}

// alike reports whether all jobs start and end at the same times in both futures.
func (a *Answer) alike() bool {
	return len(a.Jobs)+a.JobsLeftOut == 0 && a.Alternative.Preemptions == a.Base.Preemptions && len(a.Submitted) == 0
}

func (a *Answer) finish() string {
	if a.Base.Finished == 1 {
		return "job finishes"
	}
	return fmt.Sprintf("%d jobs finish", a.Base.Finished)
}

func span(d unit.Duration) string { return view.Span(d) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
