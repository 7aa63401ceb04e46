package spec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

// FormatQueues writes a tree as a file that Queues reads back as the same tree, with
// each queue followed by those below it. Fields at their default are left out. What
// a file has no word for is left out too: a guarantee, weight or priority of the root.
func FormatQueues(t queue.Tree) []byte {
	children := map[int32][]int32{}
	for i := range t.Queues {
		if i > 0 {
			p := t.Queues[i].Parent
			children[p] = append(children[p], int32(i))
		}
	}
	f := queuesFile{HalfLife: t.HalfLife, Protect: t.Protect, Disruptions: t.Disruptions, Queues: nest(&t, children, 0)}
	if len(t.Queues) > 0 {
		root := &t.Queues[0]
		f.Limit, f.UserLimit, f.MaxRun, f.Preempt = root.Limit, root.UserLimit, root.MaxRun, root.Preempt
	}
	var w writer
	unsaid := queuesFile{HalfLife: queue.DefaultHalfLife, Protect: queue.DefaultProtect}
	if t.ProtectRank > 0 {
		unsaid.Protect = 0 // it was said, and is written
	}
	w.nested("", "", reflect.ValueOf(f), reflect.ValueOf(unsaid))
	if w.Len() == 0 {
		w.WriteString("queues: []\n")
	}
	return w.Bytes()
}

// nest turns the queues below one into what a file has.
func nest(t *queue.Tree, children map[int32][]int32, parent int32) []queueFile {
	var all []queueFile
	for _, c := range children[parent] {
		q := &t.Queues[c]
		all = append(all, queueFile{Name: q.Name[strings.LastIndexByte(q.Name, '/')+1:], Weight: unit.Milli(q.Weight), Priority: q.Priority,
			Guarantee: q.Guarantee, Limit: q.Limit, Keep: q.Keep, Borrow: q.Borrow, UserLimit: q.UserLimit,
			MaxRun: q.MaxRun, Preempt: q.Preempt, MaxPriority: q.MaxPriority, Queues: nest(t, children, c)})
	}
	return all
}

// nested writes the fields of v that differ from those of start, and lists of
// structs as blocks; mark stands before the first line in place of its indent.
func (w *writer) nested(mark, indent string, v, start reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		x := v.FieldByIndex(f.index)
		if reflect.DeepEqual(x.Interface(), start.FieldByIndex(f.index).Interface()) || x.Kind() == reflect.Slice && x.Len() == 0 {
			continue
		}
		before := indent
		if mark != "" {
			before, mark = mark, ""
		}
		fmt.Fprintf(w, "%s%s:", before, f.name)
		switch all := x.Interface().(type) {
		case amounts:
			fmt.Fprintf(w, " %s\n", all.text())
		case []queueFile:
			w.WriteByte('\n')
			for i := range all {
				w.nested(indent+"  - ", indent+"    ", x.Index(i), starts[x.Type().Elem()])
			}
		default:
			fmt.Fprintf(w, " %s\n", plain(f.form, reflect.Indirect(x)))
		}
	}
}

// text writes amounts as a file has them.
func (a amounts) text() string {
	if len(a) == 1 && a[0].Model == "" {
		return unit.Milli(a[0].Milli).String()
	}
	parts := make([]string, len(a))
	for i, x := range a {
		name := x.Model
		if name == "" {
			name = everyModel
		}
		parts[i] = text(name) + ": " + unit.Milli(x.Milli).String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
