// Package steady is a clock that does not leap. Where the machine's is set, as by a day ahead and back, time goes on as
// it passed, so that nobody seems to have run for a day; what the machine's clock says is followed by and by.
package steady

import (
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
)

const (
	// follows is in how much time that passes a unit of what the machine's clock is off is followed: nothing that is
	// reckoned in spans is wrong by more than that part.
	follows = 100
	// leap is by how much the machine's clock is set at least for it to be told.
	leap = unit.Second
)

// Reading is what a machine's clock says, and how much time has passed since some moment, however it was set.
type Reading func() (clock unit.Time, passed unit.Duration)

// Machine reads this machine's. The time that it sleeps passes, too.
func Machine() (unit.Time, unit.Duration) {
	var passed unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &passed); err != nil {
		panic(err) // every Linux has it
	}
	return unit.Time(time.Now().UnixMicro()), unit.Duration(passed.Nano() / 1000)
}

// Clock is one that does not leap; several may ask it at once.
type Clock struct {
	read Reading
	log  *slog.Logger

	mu     sync.Mutex
	now    unit.Time
	passed unit.Duration // when it was last read
	off    unit.Duration // by how much the machine's clock was ahead of now then
	unused unit.Duration // of what passed, for following
	file   string        // where it is kept; empty is nowhere
	kept   kept
}

// kept is what a file says of a clock.
type kept struct {
	Boot  string        `json:"boot"`     // of the machine, as its kernel names it
	Ahead unit.Duration `json:"ahead_us"` // of what has passed since then
}

// New begins at what the machine's clock says, and logs its leaps.
func New(read Reading, log *slog.Logger) *Clock {
	c := &Clock{read: read, log: log}
	c.now, c.passed = read()
	return c
}

// Kept goes on as the clock did that was kept in file, where the machine was not started anew since, and is kept there.
// Who removes the file has the next one begin at what the machine's clock says.
func Kept(file string, read Reading, log *slog.Logger) *Clock {
	c := New(read, log)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		log.Warn("a restart begins at what the machine's clock says", "error", err)
		return c
	}
	var was kept
	if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &was) == nil && was.Boot == string(boot) {
		c.now = unit.Time(was.Ahead + c.passed)
	}
	c.file, c.kept.Boot = file, string(boot)
	c.save()
	return c
}

// save writes how the clock stands.
func (c *Clock) save() {
	c.kept.Ahead = unit.Duration(c.now) - c.passed
	data, err := json.Marshal(c.kept)
	if err == nil {
		err = os.WriteFile(c.file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(c.file+".new", c.file)
	}
	if err != nil {
		c.log.Warn("a restart begins at another time, should the machine's clock be set", "error", err)
	}
}

// Now is the time, in microseconds since the Unix epoch.
func (c *Clock) Now() unit.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	clock, since := c.read()
	passed := since - c.passed
	c.now, c.passed = c.now.Add(passed), since
	off := clock.Sub(c.now)
	if by := off - c.off; by > leap || by < -leap {
		c.log.Warn("the machine's clock was set: time goes on as it passed, and follows by and by", "by", by, "off", off, "followed-in", max(off, -off)*follows)
	}
	most := (c.unused + passed) / follows
	c.unused = (c.unused + passed) % follows
	followed := max(-most, min(most, off))
	c.now, c.off = c.now.Add(followed), off-followed
	if by := unit.Duration(c.now) - c.passed - c.kept.Ahead; c.file != "" && (by > leap || by < -leap) {
		c.save()
	}
	return c.now
}
