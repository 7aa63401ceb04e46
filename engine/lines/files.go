package lines

import (
	"iter"
	"slices"
)

// files are the classes by what they ask for.
type files struct {
	alike   []*alike // by shape: its classes
	blocked []int32  // by shape: how many of those are
	owners  []owned
	some    marks   // scratch
	keptOut []*file // those in which claims keep somebody out in this pass, without a try
}

// owned is what an owner has that is worth a try.
type owned struct {
	leaf int32
	open int32 // classes
}

// alike are the classes of one shape, in files of those whose jobs take about as long.
type alike struct {
	files   []*file
	opened  int64   // changes of those that are worth a try
	crowded crowded // when they were last blocked together
	takers  takers
}

// file is the classes of one shape and one step, at most one for each owner. Those that have jobs are marked by their
// places: to block all of them costs a word for 64.
type file struct {
	of      *alike
	shape   int32
	step    int32
	classes []*Class
	owners  []int32 // whose they are
	open    marks   // those worth a try
	blocked marks   // those whose best job is not worth a try
	keptOut marks   // those of them that claims keep out in this pass, without a try
}

// fileOf returns the file for a shape and a step.
func (f *files) fileOf(shape, step int32) *file {
	for int(shape) >= len(f.alike) {
		f.alike, f.blocked = append(f.alike, &alike{}), append(f.blocked, 0)
	}
	of := f.alike[shape]
	if at := slices.IndexFunc(of.files, func(x *file) bool { return x.step == step }); at >= 0 {
		return of.files[at]
	}
	x := &file{of: of, shape: shape, step: step}
	of.files = append(of.files, x)
	return x
}

// copyOf returns marks that may be changed until it is called again.
func (f *files) copyOf(m marks) marks {
	f.some = append(f.some[:0], m...)
	return f.some
}

// BlockedShapes are the shapes of which a class is blocked.
func (f *files) BlockedShapes() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for shape, blocked := range f.blocked {
			if blocked > 0 && !yield(int32(shape)) {
				return
			}
		}
	}
}

// ForgetKeptOut keeps those blocked whom claims keep out, until somebody else opens them.
func (f *files) ForgetKeptOut() {
	for _, x := range f.keptOut {
		clear(x.keptOut)
	}
	f.keptOut = f.keptOut[:0]
}
