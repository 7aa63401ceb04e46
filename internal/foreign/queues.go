package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/internal/foreign/kube"
	"github.com/musterdl/muster/internal/foreign/slurm"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

const kueueQueues = "Kueue's queues"

// entry is a queue before its place in the tree is known.
type entry struct {
	queue.Queue
	parent string
}

// forest is what a file says of queues.
type forest struct {
	*Found
	all []entry
}

// list is one kind of file of queues: what it is called, how it is known, and who reads it.
type list struct {
	what  string
	looks *regexp.Regexp
	read  func(t *forest, data []byte) error
}

// lists are in the order in which they are looked for. Of Kubernetes is whatever is none of the others.
var lists = []list{
	{"a list of Slurm's accounts", regexp.MustCompile(`^.*(Account.*\||\|.*Account)`), (*forest).accounts},
	{"a list of Slurm's partitions", partition, (*forest).partitions},
	{"a file of Kubernetes objects", regexp.MustCompile(``), (*forest).objects},
}

// Queues reads the queues of another system: Kueue's and Volcano's objects, Slurm's accounts and partitions.
func Queues(file string, data []byte) (queue.Tree, Found, error) {
	t := forest{Found: &Found{}}
	tree, err := t.read(file, data)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return tree, *t.Found, err
}

func (t *forest) read(file string, data []byte) (queue.Tree, error) {
	l := &lists[slices.IndexFunc(lists, func(l list) bool { return l.looks.Match(data) })]
	t.What = l.what
	if err := l.read(t, data); err != nil {
		return queue.Tree{}, err
	}
	if len(t.all) == 0 {
		return queue.Tree{}, t.refuse("expected ClusterQueues and Cohorts of Kueue, Queues of Volcano, what sacctmgr -P show assoc prints, or partitions of slurm.conf")
	}
	tree, err := t.tree()
	if err != nil {
		return tree, err
	}
	if t.What == kueueQueues {
		whole(tree.Queues)
	}
	// Our own reader has the last word.
	if tree, err = spec.Queues(file, spec.FormatQueues(tree), nil); err != nil {
		err = t.refuse("%v", firstOf(err))
	}
	return tree, err
}

// tree puts every queue below the one it names, and those that name none at the top.
func (t *forest) tree() (queue.Tree, error) {
	tree := queue.Flat()
	placed := map[string]int32{"": 0}
	for left := t.all; len(left) > 0; {
		var later []entry
		for _, e := range left {
			above, known := placed[e.parent]
			if !known {
				later = append(later, e)
				continue
			}
			name := named(e.Name)
			if placed[e.Name] > 0 {
				return tree, t.refuse("it has the queue %s twice", e.Name)
			}
			placed[e.Name] = int32(len(tree.Queues))
			e.Parent, e.Name = above, strings.TrimPrefix(tree.Queues[above].Name+"/"+name, "/")
			tree.Queues = append(tree.Queues, e.Queue)
		}
		if len(later) == len(left) {
			return tree, t.refuse("the queue %s is below %s, which is not in it or below itself", later[0].Name, later[0].parent)
		}
		left = later
	}
	return tree, nil
}

// devices is an amount of all models together.
func devices(n float64) []queue.Amount {
	return []queue.Amount{{Milli: int64(n * float64(unit.Whole))}}
}

// accounts reads what sacctmgr -P show assoc prints: an account is a queue.
func (t *forest) accounts(data []byte) error {
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	columns := strings.Split(lines[0], "|")
	for i, line := range lines[1:] {
		cells := strings.Split(line, "|")
		if len(cells) != len(columns) {
			return t.refuse("line %d has %d cells: expected %d, as in the header", i+2, len(cells), len(columns))
		}
		row := map[string]string{}
		for c, name := range columns {
			row[name] = strings.TrimSpace(cells[c])
		}
		if err := t.account(row); err != nil {
			return t.refuse("line %d: %v", i+2, err)
		}
	}
	if !slices.Contains(columns, "ParentName") {
		t.note("without ParentName all accounts are beside each other")
	}
	return nil
}

// single tells what an association of one user has and cannot be said.
func (t *forest) single(row map[string]string) {
	for _, name := range []string{"GrpTRES", "MaxTRES", "Share"} {
		if !slices.Contains([]string{"", "1", "parent"}, row[name]) {
			t.note("%s of single users: user_limit is one for all users of a queue", name)
		}
	}
}

// unsaid tells what an account has and cannot be said.
func (t *forest) unsaid(row map[string]string) {
	for _, name := range []string{"GrpJobs", "GrpSubmit", "GrpTRESMins", "GrpWall", "MaxJobs", "MaxSubmit", "MaxTRES", "MaxTRESMins", "Priority"} {
		if row[name] != "" {
			t.note("%s cannot be said here", name)
		}
	}
}

// limit takes how many GPUs the jobs of an account may hold together.
func (t *forest) limit(e *entry, list string) error {
	if list == "" {
		return nil
	}
	n, _, err := slurm.GPUs(list)
	if err != nil {
		return err
	}
	if strings.Contains(list, "gres/gpu") {
		e.Limit = devices(float64(n))
	}
	if rest := strings.Count(list, ",") + 1; rest > 1 || e.Limit == nil {
		t.note("GrpTRES of cores, memory and nodes: limits are of devices")
	}
	return nil
}

func (t *forest) account(row map[string]string) error {
	account := row["Account"]
	if row["User"] != "" {
		t.single(row)
		return nil
	}
	if account == "" || account == "root" {
		return nil
	}
	e := entry{Queue: queue.Queue{Name: account, Weight: 1000}, parent: row["ParentName"]}
	if e.parent == "root" {
		e.parent = ""
	}
	if share := row["Share"]; cmp.Or(share, "parent") != "parent" {
		n, err := strconv.ParseFloat(share, 64)
		if err != nil || !(n > 0 && n <= 1e6) {
			return fmt.Errorf("%s: found %q, expected a number from 1 to 1000000", "Share", share)
		}
		e.Weight = int32(n * 1000)
	}
	if err := t.limit(&e, row["GrpTRES"]); err != nil {
		return err
	}
	span, _, err := slurm.Span(cmp.Or(row["MaxWall"], row["MaxWallDurationPerJob"]))
	if err != nil {
		return err
	}
	e.MaxRun = span
	t.unsaid(row)
	t.all = append(t.all, e)
	return nil
}

var (
	partition    = regexp.MustCompile(`(?m)^\s*PartitionName=`)
	continuation = regexp.MustCompile(`\n\s+|\\\n`)
)

// partitions reads the partitions of slurm.conf or of scontrol show partition: a partition is a queue.
func (t *forest) partitions(data []byte) error {
	for line := range strings.SplitSeq(continuation.ReplaceAllString(string(data), " "), "\n") {
		if !strings.HasPrefix(line, "PartitionName=") {
			continue
		}
		e := entry{Queue: queue.Queue{Weight: 1000}}
		for _, word := range strings.Fields(line) {
			t.option(&e, word)
		}
		t.all = append(t.all, e)
	}
	return nil
}

// unbound are the values of a partition's options that bound nothing.
var unbound = []string{"ALL", "N/A", "NO", "UNLIMITED", "NONE", "OFF"}

// beyond are the options of a partition that a queue has not, with what is said of one that bounds something.
var beyond = map[string]string{
	"Nodes":         "Nodes: a queue is not bound to nodes; guarantee: {MODEL: N} holds devices of a model for it",
	"PreemptMode":   "PreemptMode: between partitions guarantees and preempt: true decide who gives way",
	"AllowAccounts": "AllowAccounts cannot be said here",
	"AllowGroups":   "AllowGroups cannot be said here",
	"AllowQos":      "AllowQos cannot be said here",
	"DenyAccounts":  "DenyAccounts cannot be said here",
	"QOS":           "QOS cannot be said here",
	"MaxNodes":      "MaxNodes cannot be said here",
	"DefaultTime":   "DefaultTime cannot be said here",
	"OverSubscribe": "OverSubscribe cannot be said here",
}

// option takes one NAME=VALUE of a partition.
func (t *forest) option(e *entry, word string) {
	name, value, _ := strings.Cut(word, "=")
	if says := beyond[name]; says != "" && !slices.Contains(unbound, value) {
		t.note("%s", says)
	}
	switch name {
	case "PartitionName":
		e.Name = value
	case "MaxTime":
		e.MaxRun, _, _ = slurm.Span(value)
	case "PriorityTier":
		tier, _ := strconv.ParseInt(value, 10, 32)
		e.Priority = int32(tier)
	}
}

// objects reads the queues among objects.
func (t *forest) objects(data []byte) error {
	all, err := kube.Objects(data)
	if err != nil {
		return t.refuse("%v", oneLine(err))
	}
	cohorts := map[string]bool{}
	for i := range all {
		o := &all[i]
		switch o.Kind {
		case "ClusterQueue", "Cohort":
			t.What = kueueQueues
			if err := t.kueue(o); err != nil {
				return t.refuse("%s %s: %v", o.Kind, o.Metadata.Name, err)
			}
			cohorts[t.all[len(t.all)-1].parent] = true
		case "Queue":
			t.What = "Volcano's queues"
			if err := t.volcano(o); err != nil {
				return t.refuse("Queue %s: %v", o.Metadata.Name, err)
			}
		case "LocalQueue":
			t.note("a LocalQueue is another name for its ClusterQueue: jobs name that one as their tenant")
		case "ResourceFlavor":
		default:
			t.note("%s: left out", article(cmp.Or(o.Kind, "object without a kind")))
		}
	}
	// A cohort need not be there as an object.
	for i := 0; i < len(t.all); i++ {
		name := t.all[i].parent
		if cohorts[name] && name != "" && !slices.ContainsFunc(t.all, func(e entry) bool { return e.Name == name }) {
			t.all = append(t.all, entry{Queue: queue.Queue{Name: name, Weight: 1000}})
		}
	}
	return nil
}

// quotas takes what a queue has of devices: by flavor where there are several.
func (t *forest) quotas(e *entry, quotas []kube.Quota) {
	for _, q := range quotas {
		model := q.Flavor
		if len(quotas) == 1 {
			model = ""
		} else {
			t.note("flavors are taken for device models: rename them as muster nodes calls those")
		}
		add := func(to *[]queue.Amount, n float64) {
			*to = append(*to, queue.Amount{Model: model, Milli: int64(n * float64(unit.Whole))})
		}
		add(&e.Guarantee, q.Nominal)
		if q.Borrow != nil {
			add(&e.Borrow, *q.Borrow)
		}
		if q.Lend != nil && *q.Lend < q.Nominal {
			add(&e.Keep, q.Nominal-*q.Lend)
		}
	}
}

// kueue reads a ClusterQueue or a Cohort.
func (t *forest) kueue(o *kube.Object) error {
	s := &o.Spec
	e := entry{Queue: queue.Queue{Name: o.Metadata.Name, Weight: 1000}, parent: cmp.Or(s.CohortName, s.Cohort, s.ParentName, s.Parent)}
	quotas, others, err := s.GPUs()
	if err != nil {
		return err
	}
	t.quotas(&e, quotas)
	if others {
		t.note("quotas of cores, memory and other resources: guarantees and limits are of devices")
	}
	if e.parent == "" && o.Kind == "ClusterQueue" {
		e.Limit = slices.Clone(e.Guarantee) // alone it borrows from nobody
	}
	if f := s.FairSharing; f != nil {
		weight, err := kube.Number(f.Weight, 1)
		if err != nil {
			return err
		}
		e.Weight = int32(max(1, weight*1000))
	}
	if p := s.Preemption; p != nil {
		e.Preempt = slices.Contains([]string{"LowerPriority", "LowerOrNewerEqualPriority"}, p.WithinClusterQueue)
		if cmp.Or(p.ReclaimWithinCohort, "Never") == "Never" {
			t.note("reclaimWithinCohort: Never cannot be said: a guarantee comes back whenever it is asked for")
		}
	}
	if cmp.Or(s.StopPolicy, "None") != "None" {
		t.note("stopPolicy cannot be said here")
	}
	t.all = append(t.all, e)
	return nil
}

// whole gives every cohort at the top what it and those below it have together, and no more: cohorts do not lend to each other.
func whole(queues []queue.Queue) {
	have := make([][]queue.Amount, len(queues))
	for i := len(queues) - 1; i > 0; i-- { // what is below a queue stands behind it
		q := &queues[i]
		have[i] = plus(slices.Clone(q.Guarantee), have[i])
		have[q.Parent] = plus(slices.Clone(have[i]), have[q.Parent])
		if q.Parent == 0 && q.Limit == nil {
			q.Guarantee, q.Limit = have[i], slices.Clone(have[i])
		}
	}
}

// plus adds amounts to others, model by model.
func plus(all, more []queue.Amount) []queue.Amount {
	for _, a := range more {
		if at := slices.IndexFunc(all, func(b queue.Amount) bool { return a.Model == b.Model }); at >= 0 {
			all[at].Milli += a.Milli
		} else {
			all = append(all, a)
		}
	}
	return all
}

// volcano reads a Queue.
func (t *forest) volcano(o *kube.Object) error {
	s := &o.Spec
	e := entry{Queue: queue.Queue{Name: o.Metadata.Name, Priority: s.Priority}, parent: s.Parent}
	if e.Name == "root" {
		return nil
	}
	if e.parent == "root" {
		e.parent = ""
	}
	weight, err := kube.Number(s.Weight, 1)
	if err != nil {
		return err
	}
	e.Weight = int32(max(1, weight*1000))
	others := false
	for _, of := range []struct {
		list map[string]json.RawMessage
		into *[]queue.Amount
	}{{s.Capability, &e.Limit}, {s.Deserved, &e.Guarantee}, {s.Guarantee.Resource, &e.Keep}} {
		n, more, err := kube.Devices(of.list)
		if err != nil {
			return err
		}
		if others = others || more; n > 0 {
			*of.into = devices(n)
		}
	}
	if others {
		t.note("amounts of cores, memory and other resources: guarantees and limits are of devices")
	}
	if e.Guarantee == nil {
		e.Guarantee = slices.Clone(e.Keep)
	}
	if !kube.Given(s.Reclaimable, true) {
		t.note("reclaimable: false cannot be said: what a queue holds above its guarantee may be taken back")
	}
	t.all = append(t.all, e)
	return nil
}
