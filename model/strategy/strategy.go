// Package strategy holds what every strategy says about itself, as data. The
// command line's help, the documentation and the console are made from it.
package strategy

// Description is a strategy's own account of itself.
type Description struct {
	Name string // as a user writes it
	// System is the published system it comes from, empty for the field's folklore.
	System string
	Part   *Part // what it fills in a composition
	// Step is profile, allocate, schedule, pipeline, flow or run. Only a strategy whose
	// part does the work of several steps says it: else it is the part's.
	Step   string
	Source string // paper or code it follows
	Idea   string // one line
	// Challenges are those of the survey it answers (C1 to C14).
	Challenges []string
	// Granularity is what it decides about, where that is not what the survey says of
	// its system or challenge: job, trial group, gradient block, coflow, request, kernel.
	Granularity string
	Goal        string // throughput, cost, deadline, latency or energy
	// KeepsDeadlines says that it promises the jobs that it takes their deadlines, and refuses others.
	KeepsDeadlines bool
	// Inner is the score by which it compares alternatives, which stands for the goal;
	// empty where it has none. Its claim measures how well the two agree.
	Inner string
	Needs string // what it needs from a profile
	Live  string // how it acts on real devices
	// Acts lists what it does with runs beyond starting and stopping them. A driver that
	// cannot do one of them refuses it.
	Acts []Act
	// Status is how faithful it is: read (its source was read), recalled (from
	// memory), after (details are ours), ours (from no paper), null (what one would do without).
	Status string
}
