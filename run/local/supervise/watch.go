package supervise

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/trainer/progress"
)

// saveSample is the interval at which progress is read while stopping waits for a checkpoint.
const saveSample = 50 * unit.Millisecond

// boundEvery is how often the size of the progress file is looked at, and what a guest's host
// reports: between two looks a worker that floods it writes as much as the disk takes.
const boundEvery = 250 * time.Millisecond

// arm sets the timers of a worker that has begun.
func (s *supervisor) arm() {
	s.summaryAt = time.Now()
	s.sampleNext = time.NewTimer(pause(s.spec.SampleEvery, 0))
	s.stopping.next, s.limit.timer = stoppedTimer(), stoppedTimer()
	if !s.suspended {
		s.runLimit()
	}
}

// watch runs the worker until it ends.
func (s *supervisor) watch() syscall.WaitStatus {
	full := time.NewTicker(boundEvery)
	defer full.Stop()
	for {
		select {
		case status := <-s.reaper.exited:
			return status
		case o := <-s.orders:
			s.obey(o)
		case <-s.signals:
			s.stop(Preempted, "the supervisor was told to end")
		case <-s.limit.timer.C:
			s.stop(TimeLimit, fmt.Sprintf("its time limit of %s", s.spec.TimeLimit))
		case <-s.stopping.next.C:
			s.escalate()
		case <-full.C:
			s.sampler.bound()
			s.law.host.readSteps()
		case <-s.sampleNext.C:
			before := threadTime()
			s.observe()
			every := s.spec.SampleEvery
			if s.stopping.saving {
				every = min(every, saveSample)
			}
			s.sampleNext.Reset(pause(every, threadTime()-before))
		}
	}
}

// runLimit lets the time limit run, if there is one.
func (s *supervisor) runLimit() {
	if s.limit.from = time.Now(); s.spec.TimeLimit > 0 {
		s.limit.timer.Reset(max(s.limit.left, 0))
	}
}

// haltLimit halts it.
func (s *supervisor) haltLimit() {
	s.limit.timer.Stop()
	s.limit.left -= time.Since(s.limit.from)
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// note records what is good to know; the worker goes on if it cannot be.
func (s *supervisor) note(r Record) {
	if err := s.record.add(r); err != nil {
		s.say(fmt.Errorf("%s: %w", r.Kind, err))
	}
}

// observe takes a sample, and records and hands on what is new.
func (s *supervisor) observe() {
	said := s.sampler.read()
	s.sampler.measure()
	s.stepLaw()
	for _, r := range said {
		s.note(r)
	}
	if now := time.Now(); now.Sub(s.summaryAt) >= summaryPause(s.spec.SummaryEvery, now.Sub(s.startedAt)) {
		s.summaryAt = now
		s.note(Record{Kind: Progress, Report: s.sampler.report, Blocks: s.sampler.blocks, Usage: s.sampler.usage})
		s.sampler.blocks = nil
	}
	if s.stopping.saving && s.sampler.checkpoints > s.stopping.saveAfter {
		s.terminate()
	}
}

// obey carries out an order. What makes no sense now is no harm: orders may come twice.
func (s *supervisor) obey(o Order) {
	switch o {
	case Save:
		s.ask(progress.Command{Verb: progress.Save})
	case Halt:
		s.stop(Preempted, "asked to")
	case Leave:
		if s.stopping.saving {
			s.terminate()
		}
	case Kill:
		s.stop(Preempted, "asked to at once")
		s.kill()
	case Suspend:
		s.suspend()
	case Resume:
		s.resume()
	default:
		if l, ok := o.granted(); ok {
			s.grant(l)
		} else if c, ok := progress.ParseCommand(string(o)); ok && (c.Verb == progress.Batch || c.Verb == progress.Plan) {
			s.ask(c)
		}
	}
}

// grant holds the worker to other limits. A law goes on within them.
func (s *supervisor) grant(l cgroup.Limits) {
	s.spec.Limits, s.law.set = l, 0
	if err := s.group.SetLimits(l); err != nil {
		s.say(fmt.Errorf("other limits: %w", err))
	}
}

// ask writes to the worker's control file.
func (s *supervisor) ask(c progress.Command) {
	if err := progress.Send(ControlPath(s.dir), c); err != nil {
		s.say(err)
	}
}

// stop begins to stop the worker; the first reason counts.
func (s *supervisor) stop(why Class, text string) {
	if s.stopping.why != "" {
		return
	}
	s.stopping.why = why
	if s.spec.Stop.CheckpointWait > 0 {
		s.observe() // so that only a checkpoint made from now on counts
	}
	s.note(Record{Kind: StopRequested, Class: why, Why: text})
	s.resume()
	s.haltLimit()
	if s.spec.Stop.CheckpointWait == 0 {
		s.terminate()
		return
	}
	s.stopping.saving, s.stopping.saveAfter = true, s.sampler.checkpoints
	s.ask(progress.Command{Verb: progress.Save})
	s.stopping.next.Reset(time.Duration(s.spec.Stop.CheckpointWait) * time.Microsecond)
	s.sampleNext.Reset(pause(min(s.spec.SampleEvery, saveSample), 0))
}

// escalate takes the next step of stopping.
func (s *supervisor) escalate() {
	if s.stopping.saving {
		s.terminate()
		return
	}
	s.kill()
}

// terminate asks the worker's process group to end.
func (s *supervisor) terminate() {
	s.stopping.saving = false
	s.ask(progress.Command{Verb: progress.Stop})
	_ = unix.Kill(-s.worker.pid, unix.SIGTERM) // it may have ended meanwhile
	s.stopping.next.Reset(time.Duration(s.spec.Stop.Grace) * time.Microsecond)
}

// kill ends the worker's process group; what else there is ends after it.
func (s *supervisor) kill() {
	s.stopping.killed = true
	_ = unix.Kill(-s.worker.pid, unix.SIGKILL)
}

// suspend stops the worker and all its children until resume. Time spent so does
// not count against its limit.
func (s *supervisor) suspend() {
	if s.suspended || s.stopping.why != "" {
		return
	}
	if !s.group.CanFreeze() {
		signalAll(unix.SIGSTOP)
	} else if err := s.group.Freeze(); err != nil {
		s.say(fmt.Errorf("suspend: %w", err))
		return
	}
	s.suspended = true
	s.haltLimit()
	s.note(Record{Kind: Suspended})
}

// resume lets a suspended worker go on.
func (s *supervisor) resume() {
	if !s.suspended {
		return
	}
	if !s.group.CanFreeze() {
		signalAll(unix.SIGCONT)
	} else if err := s.group.Thaw(); err != nil {
		s.say(fmt.Errorf("resume: %w", err))
		return
	}
	s.suspended = false
	s.sampler.pace.Again()
	s.runLimit()
	s.note(Record{Kind: Resumed})
}
