package plane

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Kinds of records in a batch besides events, which go by their own kind.
const (
	recordCommit = "commit" // the canonical line
	recordAsides = "asides"
	recordNotes  = "notes" // of the dossier
)

// journal makes a batch durable.
func (p *Plane) journal(now unit.Time, events []engine.Event, out *engine.Out, keys []store.Key) error {
	b, err := encodeBatch(now, events, out, p.engine.View())
	if err != nil || len(b.Events)+len(b.Commits) == 0 {
		return err
	}
	b.Keys = keys
	began := time.Now()
	if b.Seq, err = p.config.Journal.Append(b); err != nil {
		return err
	}
	p.stats.commitTook(time.Since(began))
	p.sinceSnap++
	if p.follower != nil {
		p.follower.Follow(b)
	}
	return nil
}

// encodeBatch writes the records of a batch.
func encodeBatch(now unit.Time, events []engine.Event, out *engine.Out, v plan.View) (b store.Batch, err error) {
	for i := range events {
		data, err := json.Marshal(&events[i])
		if err != nil {
			return b, fmt.Errorf("encoding an event: %w", err)
		}
		b.Events = append(b.Events, store.Record{Kind: events[i].Kind.String(), At: now, Data: data})
	}
	if out.Commit != nil {
		b.Commits = append(b.Commits, store.Record{Kind: recordCommit, At: now, Data: out.Commit.AppendJSON(nil, v)})
		if len(out.Commit.Notes) > 0 {
			notes, err := json.Marshal(out.Commit.Notes)
			if err != nil {
				return b, fmt.Errorf("encoding notes: %w", err)
			}
			b.Commits = append(b.Commits, store.Record{Kind: recordNotes, At: now, Data: notes})
		}
	}
	if len(out.Asides) > 0 {
		asides, err := json.Marshal(out.Asides)
		if err != nil {
			return b, fmt.Errorf("encoding asides: %w", err)
		}
		b.Commits = append(b.Commits, store.Record{Kind: recordAsides, At: now, Data: asides})
	}
	return b, nil
}

func (s *Stats) commitTook(d time.Duration) {
	s.Batches++
	s.CommitSumSec += d.Seconds()
	if len(s.CommitSec) < 1024 {
		s.CommitSec = append(s.CommitSec, d.Seconds())
		return
	}
	s.CommitSec[s.Batches%1024] = d.Seconds()
}

// took keeps what the engine does not: specs, losses and dossiers.
func (p *Plane) took(now unit.Time, events []engine.Event, out *engine.Out) {
	p.stats.Events += int64(len(events))
	for i := range events {
		e := &events[i]
		switch {
		case e.Kind == engine.Assembled:
			p.jobs, p.arrays = nil, nil
			p.keep(withSpecs(e.Image.Specs))
		case e.Kind == engine.Submit:
			p.keep(copies(e.Spec))
		case e.Kind == engine.Observed && e.Loss != 0 && int(e.Job) < len(p.jobs):
			info := &p.jobs[e.Job]
			if info.FirstLoss == 0 {
				info.FirstLoss = e.Loss
			}
			info.LastLoss = e.Loss
		case e.Kind == engine.Observed && e.Goes != nil && int(e.Job) < len(p.jobs):
			p.jobs[e.Job].note(Entry{At: now, Verb: Declined, Attempt: e.Attempt, Words: "goes on by another plan than it was told: " + e.Goes.Why})
		case (e.Kind == engine.Exited || e.Kind == engine.NotStarted) && e.Class != plan.NoFailure && int(e.Job) < len(p.jobs):
			p.jobs[e.Job].note(Entry{At: now, Verb: Fail, Attempt: e.Attempt, Words: e.Class.String()})
			if e.Failure != nil {
				f := *e.Failure
				f.Attempt, f.Class = e.Attempt, e.Class
				p.jobs[e.Job].Failure = &f
			}
		}
	}
	if out.Commit == nil {
		return
	}
	p.stats.Commits++
	v := p.engine.View()
	for i := range out.Commit.Changes {
		c := &out.Commit.Changes[i]
		if c.Job == plan.None {
			continue
		}
		entry := Entry{At: now, Verb: c.Verb.String(), Attempt: c.Attempt, Words: c.Reason.Words(v)}
		for _, n := range out.Commit.Notes {
			if n.Change == c.ID {
				entry.Notes = append(entry.Notes, n)
			}
		}
		p.jobs[c.Job].note(entry)
	}
}

// note adds an entry to a job's dossier.
func (j *JobInfo) note(e Entry) {
	if j.Dossier = append(j.Dossier, e); len(j.Dossier) > maxDossier {
		j.Dossier = append(j.Dossier[:0], j.Dossier[len(j.Dossier)-maxDossier:]...)
	}
}

// maxDossier bounds what is kept of a job's decisions at hand; the journal has all.
const maxDossier = 64

// image is what a snapshot holds.
type image struct {
	State   []byte
	Jobs    []JobInfo
	Setting []byte
	Before  []string // strategies that decided before
}

// snapshot saves the state as of the last batch, beside the work: the copy takes
// milliseconds, encoding it much longer. One is under way at a time. One that fails is
// no harm, the journal has everything: the next is tried as if it had not been.
func (p *Plane) snapshot() {
	if p.saving.takeDone(p.config.Log); p.saving.done != nil {
		return
	}
	seq := p.config.Journal.Last()
	if seq == 0 {
		return
	}
	p.sinceSnap = 0
	img := image{Jobs: slices.Clone(p.jobs), Setting: p.decide.current, Before: slices.Clone(p.decide.before)}
	for i := range img.Jobs {
		img.Jobs[i].Dossier = slices.Clone(img.Jobs[i].Dossier)
	}
	state := p.engine.State().Copy()
	p.saving.begin(func() error { return save(p.config.Journal, seq, state, img) })
}

// Keep saves the state as of now, so that a start needs nothing of what was journaled before.
func (p *Plane) Keep(ctx context.Context) {
	_ = p.Query(ctx, func(plan.View) { p.snapshot() }) // a plane that ends keeps it by itself
}

// saving is a snapshot under way beside the work.
type saving struct{ done chan error } // nil is none

// begin saves one.
func (s *saving) begin(save func() error) {
	done := make(chan error, 1)
	s.done = done
	go func() { done <- save() }()
}

// takeDone takes in how one went that is done; one still under way stays.
func (s *saving) takeDone(log *slog.Logger) {
	select {
	case err := <-s.done: // never of nil
		s.saved(err, log)
	default:
	}
}

// await waits until none is under way.
func (s *saving) await(log *slog.Logger) {
	if s.done != nil {
		s.saved(<-s.done, log)
	}
}

// saved takes in how a snapshot went.
func (s *saving) saved(err error, log *slog.Logger) {
	s.done = nil
	if err != nil {
		log.Warn("no snapshot was saved; the next start takes longer", "error", err)
	}
}

// lastSnapshot saves the state before the plane ends.
func (p *Plane) lastSnapshot() {
	p.saving.await(p.config.Log)
	p.snapshot()
	p.saving.await(p.config.Log)
}

func save(journal *store.Store, seq store.Seq, s *plan.State, img image) error {
	var state, b bytes.Buffer
	if err := s.Save(&state); err != nil {
		return err
	}
	img.State = state.Bytes()
	if err := gob.NewEncoder(&b).Encode(img); err != nil {
		return fmt.Errorf("encoding a snapshot: %w", err)
	}
	if err := journal.SaveSnapshot(seq, b.Bytes()); err != nil {
		return fmt.Errorf("saving a snapshot: %w", err)
	}
	return nil
}

// recover builds the engine from the newest snapshot and folds what follows.
func (p *Plane) recover() error {
	p.engine, p.jobs, p.arrays, p.decide = nil, nil, nil, decider{}
	last, passed, err := p.loadLast()
	if err != nil {
		return err
	}
	err = p.config.Journal.Replay(last+1, func(b store.Batch) error {
		if err := p.fold(b); err != nil {
			return fmt.Errorf("batch %d: %w", b.Seq, err)
		}
		return nil
	})
	switch {
	case err != nil:
	case p.config.Image != nil && p.engine != nil:
		err = errors.New("there is a journal already: what another store kept needs an empty one")
	case p.config.Image != nil:
		err = p.begins(p.config.Image)
	case p.engine == nil:
		err = p.restore(plan.NewState(p.config.Cluster), "", p.config.Policy) // nothing has happened yet
	}
	if err != nil && passed != nil {
		err = fmt.Errorf("%w; without it: %w", passed, err)
	}
	if err != nil {
		return err
	}
	if err := p.engine.State().Check(); err != nil {
		return fmt.Errorf("the recovered state is not legal: %w", err)
	}
	p.starting, err = p.starts()
	return err
}

// loadLast restores what the newest snapshot holds and returns the batch that it stands
// for, 0 without one. One of another format is passed over: the journal has everything,
// unless it was compacted.
func (p *Plane) loadLast() (at store.Seq, passed, err error) {
	last, ok, err := p.config.Journal.LatestSnapshot()
	if err != nil || !ok {
		return 0, nil, err
	}
	if err = p.load(last); err != nil {
		err = fmt.Errorf("the snapshot of batch %d: %w", last.Seq, err)
	}
	if errors.Is(err, plan.ErrFormat) {
		p.config.Log.Warn("the state is made from the journal alone, which takes longer", "why", err)
		return 0, err, nil
	}
	return last.Seq, nil, err
}

// begins takes over a state from another store.
func (p *Plane) begins(img *engine.Image) error {
	state, err := plan.Load(img.State)
	if err != nil {
		return err
	}
	p.keep(withSpecs(img.Specs))
	p.decide.strategy.Text = img.Strategy
	return p.restore(state, img.Strategy, p.config.Policy)
}

// copies are the jobs that a submission made.
func copies(spec *workload.Job) []JobInfo {
	if spec.Array <= 1 {
		return []JobInfo{{Spec: spec}}
	}
	all := spec.Copies()
	list := make([]JobInfo, len(all))
	for i := range all {
		list[i].Spec = &all[i]
	}
	return list
}

func withSpecs(specs []*workload.Job) (list []JobInfo) {
	for _, spec := range specs {
		list = append(list, JobInfo{Spec: spec})
	}
	return list
}

// load restores what a snapshot holds.
func (p *Plane) load(snapshot store.Snapshot) error {
	var img image
	if err := gob.NewDecoder(bytes.NewReader(snapshot.Data)).Decode(&img); err != nil {
		return fmt.Errorf("decoding it: %w", err)
	}
	state, err := plan.Load(img.State)
	if err != nil {
		return err
	}
	was, err := parseSetting(img.Setting)
	if err != nil {
		return err
	}
	// A strategy that is not understood any more is no harm where another is named.
	composition, err := catalogue.Parse("journal", was.Strategy)
	if err != nil && p.config.Strategy.Text == "" {
		return err
	}
	composition.Text = was.Strategy
	p.keep(img.Jobs)
	p.decide = decider{current: img.Setting, strategy: composition, before: img.Before}
	return p.restore(state, was.Strategy, was.Policy)
}

// restore builds the engine over a state that a strategy had decided last. The policy is the one that what
// follows was recorded under: ours begins with our first batch, like all else that folding needs.
func (p *Plane) restore(s *plan.State, last string, policy engine.Policy) error {
	chosen, err := p.config.chosen(last)
	if err != nil {
		return err
	}
	built, err := chosen.Build(catalogue.Env{Seed: p.config.Seed}, true)
	if err != nil {
		return err
	}
	p.engine = engine.Restore(s, built.Scheduler, policy)
	return nil
}

// fold applies a recorded batch. The first of all says which devices the history is
// about: not those that the machine happens to have now.
func (p *Plane) fold(b store.Batch) error {
	now, events, line, asides, notes, err := decodeBatch(b)
	if err != nil {
		return err
	}
	if p.engine == nil {
		first, err := firstSetting(events)
		if err != nil {
			return err
		}
		if err := p.restore(plan.NewState(first.Cluster), first.Strategy, first.Policy); err != nil {
			return err
		}
	}
	if err := p.decide.follow(p.engine, events); err != nil {
		return err
	}
	out, err := p.engine.Fold(now, events, line, asides)
	if err != nil {
		return err
	}
	if out.Commit != nil {
		out.Commit.Notes = notes
	}
	p.took(now, events, &out)
	return nil
}

// starts are the events that a plane begins with: it was rebuilt, and the strategy, the
// devices or the queues may be others.
func (p *Plane) starts() ([]engine.Event, error) {
	setting, err := p.setting()
	if err != nil {
		return nil, err
	}
	events := []engine.Event{{Kind: engine.Rebuilt, Setting: setting}}
	now, err := parseSetting(setting)
	if err != nil {
		return nil, err
	}
	another := false // another policy takes nothing back
	if p.decide.current != nil {
		was, err := parseSetting(p.decide.current)
		if err != nil {
			return nil, err
		}
		another = was.Strategy != now.Strategy || was.Seed != now.Seed
	}
	if img := p.config.Image; img != nil {
		events = append(events, engine.Event{Kind: engine.Assembled, Image: img})
		another = img.Strategy != "" && img.Strategy != now.Strategy
	}
	if another {
		events = append(events, engine.Event{Kind: engine.Switched})
	}
	if p.config.Image == nil {
		events = append(events, p.devices()...)
	}
	if p.config.Queues == nil {
		return events, nil
	}
	shares := engine.Event{Kind: engine.Shares, Queues: p.config.Queues}
	if err := p.engine.Accept(&shares); err != nil {
		return nil, fmt.Errorf("the queues: %w", err)
	}
	if same, err := sameQueues(p.config.Queues, p.engine.View().Queues()); err != nil || same {
		return events, err
	}
	return append(events, shares), nil
}

// sameQueues compares trees as they are journaled, where no list and an empty one are
// the same.
func sameQueues(a, b *queue.Tree) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encoding queues: %w", err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encoding queues: %w", err)
	}
	return bytes.Equal(x, y), nil
}

// decodeBatch reads the records of a batch.
func decodeBatch(b store.Batch) (now unit.Time, events []engine.Event, line []byte, asides []plan.Aside, notes []plan.Note, err error) {
	for _, r := range b.Events {
		var e engine.Event
		if err = json.Unmarshal(r.Data, &e); err != nil {
			return now, nil, nil, nil, nil, fmt.Errorf("decoding an event of kind %s: %w", r.Kind, err)
		}
		events, now = append(events, e), r.At
	}
	for _, r := range b.Commits {
		now = r.At
		switch r.Kind {
		case recordCommit:
			line = r.Data
		case recordAsides:
			err = json.Unmarshal(r.Data, &asides)
		case recordNotes:
			err = json.Unmarshal(r.Data, &notes)
		default:
			err = fmt.Errorf("unknown kind %q", r.Kind)
		}
		if err != nil {
			return now, nil, nil, nil, nil, fmt.Errorf("decoding a record of kind %s: %w", r.Kind, err)
		}
	}
	return now, events, line, asides, notes, nil
}
