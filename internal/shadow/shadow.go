// Package shadow runs strategies in the shadow of the one that decides on a live
// cluster. What they would do is noted and scored, and never done.
//
// Two questions are kept apart. Divergence is exact and one step deep: the shadow is asked
// about every batch of events, on a copy of the state as it was before it, what it would
// decide, and that is compared with what was decided; then the copy goes the way that the
// cluster went. Regret (Regrets) is counterfactual: the history's arrivals
// replayed under the shadow from the beginning, in a world fitted to what was observed,
// which is wrong by some error that is told with it.
//
// A shadow remembers what it noted itself (memos, estimates, its memory); who runs where
// is always as it is. All of it happens beside the plane: that hands out its journaled
// batches and, when a shadow has to begin anew, a copy of its state. Who falls behind
// skips batches, and says how many.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Config is a set of shadows of a plane.
type Config struct {
	Plane *plane.Plane
	Log   *slog.Logger
	// Queue is how many batches may wait before some are skipped, by default 256.
	Queue int
}

// Limits that are not settings.
const (
	usualQueue = 256
	mostNamed  = 16  // shadows at once
	kept       = 100 // differences of each
	mostListed = 20  // changes of one difference, on either side
)

// Set is the shadows of one plane. It is safe for concurrent use.
type Set struct {
	config Config
	inbox  chan item
	one    sync.Mutex // replays

	mu      sync.Mutex
	shadows []*shadow
	lost    bool          // the worker has to begin anew
	mirror  *plane.Mirror // to begin with, of the batch at hand
	skipped int64
	waiting int // batches that were handed over and are not followed yet
}

// item is what the worker is handed: a batch, and, where it begins, the state before it.
type item struct {
	mirror *plane.Mirror
	batch  store.Batch
}

// shadow is one strategy. What the worker alone touches is in asking.
type shadow struct {
	composition catalogue.Composition
	asking      asking

	// Guarded by the set's mutex.
	since       unit.Time
	asked       int64
	decisions   int64
	differing   int64
	before      int64 // skipped by the set before it was there
	broken      string
	differences []view.Difference // a ring
	at          int
}

var _ plane.Follower = (*Set)(nil)

// New returns an empty set; nothing happens before Run.
func New(config Config) *Set {
	if config.Queue == 0 {
		config.Queue = usualQueue
	}
	return &Set{config: config, inbox: make(chan item, config.Queue)}
}

// Refused is a request that cannot be met, in words for who asked.
type Refused string

// Error is the refusal in words.
func (r Refused) Error() string { return string(r) }

// Add lets a strategy follow in the shadow.
func (s *Set) Add(c catalogue.Composition, now unit.Time) error {
	live, err := c.Live()
	if err == nil {
		_, err = live.Build(catalogue.Env{}, false)
	}
	if err != nil {
		return Refused(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(c.Name) >= 0 {
		return Refused(fmt.Sprintf("%s is a shadow already", c.Name))
	}
	if len(s.shadows) == mostNamed {
		return Refused(fmt.Sprintf("there are %d shadows already, which is the most: remove one", mostNamed))
	}
	if len(s.shadows) == 0 {
		s.lost, s.mirror = true, nil
	}
	live.Name = c.Name
	s.shadows = append(s.shadows, &shadow{composition: live, since: now, before: s.skipped})
	return nil
}

// Remove ends a shadow.
func (s *Set) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(name)
	if i < 0 {
		return Refused(fmt.Sprintf("there is no shadow %s: muster shadow ls lists them", name))
	}
	s.shadows = slices.Delete(slices.Clone(s.shadows), i, i+1)
	return nil
}

func (s *Set) find(name string) int {
	return slices.IndexFunc(s.shadows, func(x *shadow) bool { return x.composition.Name == name })
}

// List says how the shadows stand.
func (s *Set) List() []view.Shadow {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]view.Shadow, 0, len(s.shadows))
	for _, x := range s.shadows {
		y := view.Shadow{Name: x.composition.Name, Parts: x.composition.Text, SinceUs: int64(x.since), Asked: x.asked, Decisions: x.decisions,
			Differing: x.differing, Skipped: s.skipped - x.before, Broken: x.broken, Differences: []view.Difference{}}
		if x.decisions > 0 {
			part := float64(x.differing) / float64(x.decisions)
			y.Divergence = &part
		}
		for i := range x.differences {
			y.Differences = append(y.Differences, x.differences[(x.at+len(x.differences)-1-i)%len(x.differences)])
		}
		list = append(list, y)
	}
	return list
}

// Wants is called by the plane: whether the set needs a copy of the state. It asks for
// one only when it has caught up, so that copies do not pile up.
func (s *Set) Wants() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shadows) > 0 && s.lost && s.waiting == 0
}

// Begin is called by the plane.
func (s *Set) Begin(m *plane.Mirror) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mirror = m
}

// Follow is called by the plane; it never waits.
func (s *Set) Follow(b store.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.mirror
	s.mirror = nil
	switch {
	case len(s.shadows) == 0:
		return
	case s.lost && m == nil:
		s.skipped++
		return
	}
	select {
	case s.inbox <- item{m, b}:
		s.lost = false
		s.waiting++
	default:
		s.lost = true
		s.skipped++
	}
}

// Run follows the plane until the context ends.
func (s *Set) Run(ctx context.Context) {
	if err := s.config.Plane.Follow(ctx, s); err != nil {
		if !errors.Is(err, plane.ErrClosed) && ctx.Err() == nil {
			s.config.Log.Error("nothing follows in the shadow", "error", err)
		}
		return
	}
	var mirror *plane.Mirror
	for {
		select {
		case <-ctx.Done():
			return
		case i := <-s.inbox:
			mirror = s.next(mirror, i)
			s.mu.Lock()
			s.waiting--
			s.mu.Unlock()
		}
	}
}

// next follows one batch and returns what to follow the one after with, nil where that
// has to begin anew.
func (s *Set) next(mirror *plane.Mirror, i item) *plane.Mirror {
	if i.mirror != nil {
		mirror = i.mirror
	}
	if mirror == nil {
		return nil // behind one that could not be followed
	}
	err := s.follow(mirror, i.batch)
	if err == nil {
		return mirror
	}
	s.config.Log.Error("what follows in the shadow begins anew", "batch", i.batch.Seq, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
	s.skipped++
	return nil
}

// follow asks all shadows about a batch, and then lets it happen.
func (s *Set) follow(mirror *plane.Mirror, b store.Batch) error {
	next, err := mirror.Next(b)
	if err != nil {
		return err
	}
	s.mu.Lock()
	shadows := s.shadows // Remove replaces the list, Add appends behind it
	s.mu.Unlock()
	would, asked := make([][]string, len(shadows)), make([]bool, len(shadows))
	for i, x := range shadows {
		if x.broken != "" {
			continue
		}
		if would[i], asked[i], err = x.asking.ask(x.composition, mirror, &next); err != nil {
			s.breaks(x, err)
		}
	}
	out, err := mirror.Take(next)
	if err != nil || !worthAsking(next.Events, b.Commits) {
		return err
	}
	did := deeds(out.Commit, mirror.State().View())
	for i, x := range shadows {
		if !asked[i] {
			would[i] = did
		}
		s.compare(x, did, would[i], view.Difference{AtUs: int64(next.At), Batch: int64(b.Seq)})
	}
	return nil
}

// breaks ends a shadow that cannot be asked: what is wrong with it is nobody else's harm.
func (s *Set) breaks(x *shadow, err error) {
	s.config.Log.Error("a shadow is not asked any more", "shadow", x.composition.Name, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	x.broken = err.Error()
}

// compare notes what the shadow would have done otherwise.
func (s *Set) compare(x *shadow, did, would []string, d view.Difference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.broken != "" {
		return
	}
	x.asked++
	if len(did)+len(would) == 0 {
		return
	}
	x.decisions++
	if d.Active, d.Shadow = apart(did, would); len(d.Active)+len(d.Shadow) == 0 {
		return
	}
	x.differing++
	s.config.Log.Info("a shadow would decide otherwise", "shadow", x.composition.Name, "batch", d.Batch, "it", d.Shadow, "active", d.Active)
	if len(x.differences) < kept {
		x.differences = append(x.differences, d)
		return
	}
	x.differences[x.at] = d
	x.at = (x.at + 1) % kept
}

// apart are what is in one sorted list alone, and in the other.
func apart(a, b []string) (onlyA, onlyB []string) {
	onlyA, onlyB = []string{}, []string{}
	add := func(list *[]string, text string) {
		if len(*list) < mostListed {
			*list = append(*list, text)
		}
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			add(&onlyA, a[0])
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			add(&onlyB, b[0])
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return onlyA, onlyB
}

// deeds are what a commit does to jobs, in words, sorted.
func deeds(c *plan.Commit, v plan.View) (list []string) {
	if c == nil {
		return nil
	}
	for i := range c.Changes {
		if change := &c.Changes[i]; change.Verb.OfRun() {
			list = append(list, deed(change, v))
		}
	}
	slices.Sort(list)
	return list
}
