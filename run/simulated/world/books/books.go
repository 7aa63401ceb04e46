// Package books counts the time of devices that runs keep busy, wait in and fill. It knows
// neither runs nor devices: who keeps them says how much comes to a book from when on.
package books

import "github.com/musterdl/muster/model/unit"

// Bubbles are the device seconds of runs that go by a plan, up to an instant since the world
// began.
type Bubbles struct {
	// HostSec is what they held while they computed, IdleSec the part of it in which their devices
	// had to wait for a pass by themselves.
	HostSec, IdleSec float64
	// FilledSec is what guests computed in that part, SlowedSec by how much longer the runs held
	// their devices for what they did than by themselves.
	FilledSec, SlowedSec float64
	// OwnedSec is what owners held while guests were on their devices or slowed them, and LostSec the part
	// of it that they would not have had to hold without any.
	OwnedSec, LostSec float64
}

// Paces are how many devices come to each of the Bubbles at this moment, in their order.
type Paces struct{ Host, Idle, Filled, Slowed, Owned, Lost float64 }

// Book is how many devices a run keeps busy now, and the device microseconds it did up
// to when they were booked: of what was before the world began, nothing.
type Book struct {
	pace   float64
	busy   float64
	booked unit.Time
	paces  Paces
	sums   Paces
}

// Open returns a book that begins at an instant.
func Open(at unit.Time) Book { return Book{booked: at} }

// Set has so many devices be kept busy from now on, and those of the bubbles.
func (b *Book) Set(now unit.Time, pace float64, paces Paces) {
	if pace != b.pace || paces != b.paces {
		b.Close(now)
		b.pace, b.paces = pace, paces
	}
}

// Close counts what was kept busy up to now.
func (b *Book) Close(now unit.Time) {
	span := float64(now.Sub(b.booked))
	b.busy += b.pace * span
	b.sums.pass(&b.paces, span)
	b.booked = now
}

// Busy is the device microseconds kept busy up to when they were booked.
func (b *Book) Busy() float64 { return b.busy }

// BusyUntil is the same up to now.
func (b *Book) BusyUntil(now unit.Time) float64 {
	return b.busy + b.pace*float64(now.Sub(b.booked))
}

// Until is the book as it will be at an instant.
func (b Book) Until(now unit.Time) *Book {
	b.sums.pass(&b.paces, float64(now.Sub(b.booked)))
	return &b
}

// Add counts what a run had up to when it was booked.
func (b *Bubbles) Add(of *Book) {
	s := &of.sums
	const sec = float64(unit.Second)
	b.HostSec, b.IdleSec, b.FilledSec = b.HostSec+s.Host/sec, b.IdleSec+s.Idle/sec, b.FilledSec+s.Filled/sec
	b.SlowedSec, b.OwnedSec, b.LostSec = b.SlowedSec+s.Slowed/sec, b.OwnedSec+s.Owned/sec, b.LostSec+s.Lost/sec
}

func (p *Paces) pass(now *Paces, span float64) {
	p.Host, p.Idle, p.Filled = p.Host+now.Host*span, p.Idle+now.Idle*span, p.Filled+now.Filled*span
	p.Slowed, p.Owned, p.Lost = p.Slowed+now.Slowed*span, p.Owned+now.Owned*span, p.Lost+now.Lost*span
}
