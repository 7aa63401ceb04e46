package spec

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

// Limits of a file of queues.
const (
	maxQueues      = 10_000
	maxWeight      = 1_000_000 * unit.Whole
	maxDisruptions = 1_000_000
)

// everyModel is what a file calls all models together, beside models by name.
const everyModel = "all"

// amounts are devices as a file has them: a number, of all models together, or
// numbers by model.
type amounts []queue.Amount

// queuesFile is a tree of queues as an operator writes it. What stands beside the
// queues holds for the root, which all jobs are below.
type queuesFile struct {
	HalfLife    unit.Duration `yaml:"half_life"`
	Protect     unit.Duration
	Disruptions int32
	Limit       amounts
	UserLimit   amounts       `yaml:"user_limit"`
	MaxRun      unit.Duration `yaml:"max_run"`
	Preempt     bool
	MaxPriority *int32 `yaml:"max_priority"`
	Queues      []queueFile
}

type queueFile struct {
	Name        string
	Weight      unit.Milli
	Priority    int32
	Guarantee   amounts
	Limit       amounts
	Keep        amounts
	Borrow      amounts
	UserLimit   amounts       `yaml:"user_limit"`
	MaxRun      unit.Duration `yaml:"max_run"`
	Preempt     bool
	MaxPriority *int32 `yaml:"max_priority"`
	Queues      []queueFile
}

// Queues reads a file of queues for a cluster, or for any where c is nil: the root
// first and each queue followed by those below it. An error is of type Problems.
func Queues(file string, data []byte, c *cluster.Cluster) (queue.Tree, error) {
	d := newDecoder(file)
	const unsaid = -1
	f := queuesFile{HalfLife: queue.DefaultHalfLife, Protect: unsaid}
	d.document(data, reflect.ValueOf(&f).Elem())
	rank := f.Protect // who says nothing protects from claims alone
	if f.Protect == unsaid {
		f.Protect, rank = queue.DefaultProtect, 0
	}
	root := queue.Root()
	root.Limit, root.UserLimit, root.MaxRun, root.Preempt = list(f.Limit), list(f.UserLimit), f.MaxRun, f.Preempt
	root.MaxPriority = f.MaxPriority
	r := queueReader{decoder: d, cluster: c, paths: []string{""}}
	r.tree = queue.Tree{Queues: []queue.Queue{root}, HalfLife: f.HalfLife, Protect: f.Protect, ProtectRank: rank, Disruptions: f.Disruptions}
	between(d, "disruptions", f.Disruptions, 0, maxDisruptions)
	r.checkQueue(0)
	r.add("queues", 0, f.Queues)
	r.checkClaims()
	if err := d.problems.err(); err != nil {
		return queue.Tree{}, err
	}
	// What a file can say wrong is reported above, with its place; this is the last word.
	if err := r.tree.Check(func(string) bool { return true }); err != nil {
		return queue.Tree{}, fmt.Errorf("check the queues of %s: %w", file, err)
	}
	return r.tree, nil
}

func list(a amounts) []queue.Amount {
	if len(a) == 0 {
		return nil
	}
	return a
}

// amounts reads a number of devices, or several by model.
func (d *decoder) amounts(n ast.Node, path string, v reflect.Value) {
	var all amounts
	read := func(n ast.Node, path, model string) {
		var milli unit.Milli
		d.value(n, path, reflect.ValueOf(&milli).Elem())
		if milli > maxDevices*unit.Whole {
			d.wrong(path, milli.String(), fmt.Sprintf("at most %d devices", maxDevices), "")
		}
		all = append(all, queue.Amount{Model: model, Milli: int64(milli)})
	}
	switch n.(type) {
	case ast.MapNode:
		for _, e := range d.entries(n, path) {
			p, model := join(path, e.name), e.name
			d.checkName(p, model, "/")
			if model == everyModel {
				model = ""
			}
			read(e.value, p, model)
		}
	case *ast.SequenceNode:
		d.wrong(path, "a list", "a number of devices, or one for each model", "write 64 or {V100: 64, A100: 16}")
	default:
		read(n, path, "")
	}
	v.Set(reflect.ValueOf(all))
}

// queueReader turns what was read into a tree and checks it.
type queueReader struct {
	*decoder
	cluster *cluster.Cluster // nil where it is not known
	tree    queue.Tree
	paths   []string // of each queue in the file; the root's is empty
}

// add appends the queues of a list, each followed by those below it.
func (r *queueReader) add(path string, parent int32, queues []queueFile) {
	taken := map[string]bool{}
	for i := range queues {
		f := &queues[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		if len(r.tree.Queues) > maxQueues {
			r.wrong(at, "one queue more", fmt.Sprintf("at most %d", maxQueues), "")
			return
		}
		q := queue.Queue{Name: f.Name, Parent: parent, Weight: int32(min(f.Weight, maxWeight)), Priority: f.Priority,
			Guarantee: list(f.Guarantee), Limit: list(f.Limit), Keep: list(f.Keep), Borrow: list(f.Borrow),
			UserLimit: list(f.UserLimit), MaxRun: f.MaxRun, Preempt: f.Preempt, MaxPriority: f.MaxPriority}
		if above := r.tree.Queues[parent].Name; above != "" {
			q.Name = above + "/" + f.Name
		}
		r.checkQueueName(at+".name", f.Name, q.Name)
		if taken[f.Name] && f.Name != "" {
			r.wrong(at+".name", "the queue "+quote(q.Name)+" a second time", "names that differ among those below one queue", "rename it, or put the two together")
		}
		taken[f.Name] = true
		between(r.decoder, at+".weight", f.Weight, 1, maxWeight)
		id := int32(len(r.tree.Queues))
		r.tree.Queues, r.paths = append(r.tree.Queues, q), append(r.paths, at)
		r.checkQueue(id)
		r.add(at+".queues", id, f.Queues)
	}
}

func (r *queueReader) checkQueueName(path, name, full string) {
	switch {
	case name == "" && !r.has(path):
		r.wrong(path, "nothing", "a name", "give the queue one; jobs name it as their tenant")
	case slices.Contains([]byte(name), '/'):
		r.wrong(path, quote(name), "one word", "list the queue under the queues of the one above it, without the slash")
	case len(full) > maxName:
		r.wrong(path, fmt.Sprintf("a name of %d bytes with those above it", len(full)), fmt.Sprintf("at most %d, which is what a job's tenant may have", maxName), "shorten it")
	}
	r.checkName(path, name, "@")
}

// checkQueue checks what can be said of one queue alone.
func (r *queueReader) checkQueue(i int32) {
	q, path := &r.tree.Queues[i], r.paths[i]
	r.checkPositive(join(path, "max_run"), q.MaxRun)
	if r.cluster == nil {
		return
	}
	names := make([]string, len(r.cluster.Models))
	for m := range r.cluster.Models {
		names[m] = r.cluster.Models[m].Name
	}
	for name, all := range fieldsOfAmounts(q) {
		for _, a := range all {
			if a.Model != "" && !slices.Contains(names, a.Model) {
				r.wrong(join(path, name)+"."+a.Model, "the model "+quote(a.Model), "one that the cluster has", didYouMean(a.Model, names))
			}
		}
	}
}

// fieldsOfAmounts yields the amounts of a queue by the names of their fields.
func fieldsOfAmounts(q *queue.Queue) iter.Seq2[string, []queue.Amount] {
	return func(yield func(string, []queue.Amount) bool) {
		_ = yield("guarantee", q.Guarantee) && yield("limit", q.Limit) && yield("keep", q.Keep) &&
			yield("borrow", q.Borrow) && yield("user_limit", q.UserLimit)
	}
}
