package plan

import (
	"fmt"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
)

// Terms are the settings of a run besides its grants: a part for each step that sets
// them. Who sets a part leaves the others as they are.
type Terms struct {
	Share   ShareTerms
	Plan    PlanTerms
	Traffic TrafficTerms
}

// ShareTerms say how a run uses its devices, and beside whom. Step 2 sets them.
type ShareTerms struct {
	Batch   int32 // global batch; 0 is the job's own
	Turn    int32 // time slice it takes turns in; 0 is none
	Milli   int32 // thousandths of each device it holds; 0 is what its slots or its job say
	Swap    int32 // MiB per device that it gives up while suspended
	Guest   JobID // the job on whose devices it lives, reserving nothing; None
	Ceiling int32 // thousandths of each device it may use at most; 0 is all
	Bond    Bond  // how a guest lives with its host
	Fence   Fence // what keeps those who share a device apart
}

// PlanTerms say how a run is cut into stages, and its layers into groups to be brought.
// Step 4 sets them, the second where a switcher of step 2 says so.
type PlanTerms struct {
	ID int32 // pipeline plan, an index into State.Plans; None without
	// Keeps is how many of its workers are processes of the run before, which lost others and goes on in this
	// one: they stay where they were, with what they hold. 0 is none: all begin anew.
	Keeps int32
}

// TrafficTerms say what a run gets of the network. Step 5 sets them.
type TrafficTerms struct {
	Shift    unit.Duration // delay of its communication phase
	Class    int32         // strict network class, 0 first
	Weight   int32         // share within the class, 0 counts as 1000
	Reserved int32         // Mbps reserved per worker; 0 shares what is left
}

// Bond says how a guest lives with its host.
type Bond uint8

// The bonds.
const (
	InGaps  Bond = iota // in the host's gaps, held back by a law
	AsEqual             // beside it, with equal rights
	InOne               // in one process with it
)

// Fence says what keeps the work of several runs on one device apart.
type Fence uint8

// The fences.
const (
	TimeSliced Fence = iota // they alternate, each with its own context
	MPS                     // they compute side by side: a crash of one takes all
	Partition               // each has a part of its own in hardware
)

// DefaultTerms are those of a run that nothing has been decided about.
func DefaultTerms() Terms { return Terms{Share: ShareTerms{Guest: None}, Plan: PlanTerms{ID: None}} }

// NewShare is the part of step 2 of a run that has its devices as its job asks.
func NewShare() *ShareTerms { return &ShareTerms{Guest: None} }

// WithShare returns the terms with another part of step 2; nil is the one that they have.
func (t Terms) WithShare(s *ShareTerms) Terms {
	if s != nil {
		t.Share = *s
	}
	return t
}

// WithTraffic returns the terms with another part of step 5.
func (t Terms) WithTraffic(s TrafficTerms) Terms {
	t.Traffic = s
	return t
}

// sameGrants reports whether a run would hold the same of its devices under other terms.
func (t ShareTerms) sameGrants(other ShareTerms) bool {
	t.Batch, t.Bond, t.Fence = other.Batch, other.Bond, other.Fence
	return t == other
}

// termNames is the one list of how terms are written down, for commits, moves and
// records. Its order is that of the lines which decisions are compared by: what is new
// goes to the end.
var termNames = figures.Named[Terms]{
	figures.By("batch", 0, func(t *Terms) *int32 { return &t.Share.Batch }),
	figures.By("plan", None, func(t *Terms) *int32 { return &t.Plan.ID }),
	figures.By("class", 0, func(t *Terms) *int32 { return &t.Traffic.Class }),
	figures.By("weight", 0, func(t *Terms) *int32 { return &t.Traffic.Weight }),
	figures.By("shift_us", 0, func(t *Terms) *unit.Duration { return &t.Traffic.Shift }),
	figures.By("turn", 0, func(t *Terms) *int32 { return &t.Share.Turn }),
	figures.By("guest", None, func(t *Terms) *JobID { return &t.Share.Guest }),
	figures.By("bond", 0, func(t *Terms) *Bond { return &t.Share.Bond }),
	figures.By("ceiling", 0, func(t *Terms) *int32 { return &t.Share.Ceiling }),
	figures.By("fence", 0, func(t *Terms) *Fence { return &t.Share.Fence }),
	figures.By("share", 0, func(t *Terms) *int32 { return &t.Share.Milli }),
	figures.By("swap_mib", 0, func(t *Terms) *int32 { return &t.Share.Swap }),
	figures.By("reserved_mbps", 0, func(t *Terms) *int32 { return &t.Traffic.Reserved }),
	figures.By("keeps", 0, func(t *Terms) *int32 { return &t.Plan.Keeps }),
}

// AppendMembers appends terms to the members of a JSON object. Terms that nobody decided
// about are not written.
func (t *Terms) AppendMembers(b []byte) []byte {
	if *t == (Terms{}) {
		return b
	}
	return termNames.Append(b, t)
}

// TakeMember reads a member that AppendMembers wrote. Others are not its business.
func (t *Terms) TakeMember(name []byte, value *figures.Text) bool {
	return termNames.Take(name, value, t)
}

// MarshalJSON writes terms as an object of their own.
func (t Terms) MarshalJSON() ([]byte, error) { return termNames.Object(&t), nil }

// UnmarshalJSON reads terms that are an object of their own.
func (t *Terms) UnmarshalJSON(b []byte) error {
	text := figures.ReadText(b)
	termNames.Clear(t)
	for name := range text.Members {
		if !t.TakeMember(name, text) {
			return fmt.Errorf("the terms of a run have a member %q, which this program does not know: use the one that wrote them", name)
		}
	}
	if err := text.End(); err != nil {
		return fmt.Errorf("reading the terms of a run: %w", err)
	}
	return nil
}
