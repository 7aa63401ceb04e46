package trainer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// errPeer marks failures that another attempt may well survive: a worker is gone,
// silent or never came.
var errPeer = errors.New("a peer of this job is lost")

// patience is how long a silent peer is believed alive: ticks intervals that this
// process itself lived through. Counting intervals instead of asking the clock means
// that a gang that was suspended as a whole, and continued, takes nobody for dead.
type patience struct {
	tick  time.Duration // also the interval of heartbeats
	ticks int
}

// defaultPatience gives up after ten seconds of silence.
var defaultPatience = patience{tick: time.Second, ticks: 10}

// kind is what a frame carries.
type kind uint8

const (
	kindHeartbeat kind = iota // nothing: the peer lives, it computes
	kindReduce                // a chunk of an all-reduce
	kindForward               // a microbatch's activations
	kindBackward              // a microbatch's gradient of activations
	kindLayer                 // a layer that changes its worker
	kindBye                   // the last frame of a peer that finished
)

// tag tells frames of a link apart: kind, and number of the microbatch or layer.
type tag struct {
	kind   kind
	number uint32
}

const (
	headerBytes = 12 // kind, number, floats: 4 bytes each
	frameFloats = 1 << 28
	queueFrames = 64
)

// link is a connection to one neighbour. A goroutine of its own drains it at all
// times, so a peer never blocks because this side is computing, and another one
// sends heartbeats, so a peer that computes for minutes is not taken for dead.
type link struct {
	conn     net.Conn
	patience patience
	out      chan []byte
	written  chan struct{} // closed when the writer is done
	drained  chan struct{} // closed when the reader is done
	// all are this link and the worker's others, which fail together: who waits for a
	// neighbour that computes for minutes learns at once that the job is lost.
	all  []*link
	sent atomic.Int64 // bytes written to the wire

	mu    sync.Mutex
	ready sync.Cond
	in    map[tag][][]float32
	err   error
}

func newLink(conn net.Conn, p patience) *link {
	l := &link{conn: conn, patience: p, out: make(chan []byte, queueFrames),
		written: make(chan struct{}), drained: make(chan struct{}), in: map[tag][][]float32{}}
	l.ready.L, l.all = &l.mu, []*link{l}
	return l
}

func (l *link) start() {
	go l.read()
	go l.write()
}

// send queues x for the peer and returns; x may be changed afterwards. A failure
// shows in the next recv or drain.
func (l *link) send(t tag, x []float32) {
	select {
	case l.out <- frame(t, x):
	case <-l.written:
	}
}

// recv waits for the frame with this tag and copies it into x.
func (l *link) recv(t tag, x []float32) error {
	y, err := l.next(t)
	if err != nil {
		return err
	}
	if len(y) != len(x) {
		return fmt.Errorf("%s sent %d floats where %d were expected: is it running another job?", l.conn.RemoteAddr(), len(y), len(x))
	}
	copy(x, y)
	return nil
}

func (l *link) next(t tag) ([]float32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.in[t]) == 0 {
		if l.err != nil {
			return nil, l.err
		}
		l.ready.Wait()
	}
	y := l.in[t][0]
	l.in[t] = l.in[t][1:]
	return y, nil
}

// fail ends all links of the worker.
func (l *link) fail(err error) {
	err = fmt.Errorf("%w: %s: %w", errPeer, l.conn.RemoteAddr(), err)
	for _, one := range l.all {
		one.end(err)
	}
}

// end wakes all that wait. The first reason is the one that is told.
func (l *link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.ready.Broadcast()
}

// read receives frames until the peer says goodbye or fails.
func (l *link) read() {
	defer close(l.drained)
	from := patientReader{l.conn, l.patience}
	var header [headerBytes]byte
	for {
		if _, err := io.ReadFull(from, header[:]); err != nil {
			l.fail(err)
			return
		}
		t := tag{kind(header[0]), binary.LittleEndian.Uint32(header[4:])}
		n := binary.LittleEndian.Uint32(header[8:])
		switch {
		case t.kind == kindHeartbeat:
			continue
		case t.kind == kindBye:
			l.end(fmt.Errorf("%w: %s finished", errPeer, l.conn.RemoteAddr()))
			return
		case n > frameFloats:
			l.fail(fmt.Errorf("it sent a frame of %d floats: at most %d are allowed", n, frameFloats))
			return
		}
		b := make([]byte, 4*n)
		if _, err := io.ReadFull(from, b); err != nil {
			l.fail(err)
			return
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		l.mu.Lock()
		l.in[t] = append(l.in[t], x)
		l.mu.Unlock()
		l.ready.Broadcast()
	}
}

// write sends what is queued, and heartbeats while nothing is.
func (l *link) write() {
	defer close(l.written)
	beat := time.NewTicker(l.patience.tick)
	defer beat.Stop()
	for {
		var b []byte
		var more bool
		select {
		case b, more = <-l.out:
			if !more {
				b = frame(tag{kind: kindBye}, nil)
			}
		case <-beat.C:
			b, more = frame(tag{kind: kindHeartbeat}, nil), true
		}
		if err := l.writeAll(b); err != nil {
			l.fail(err)
			return
		}
		if !more {
			return
		}
	}
}

// writeAll writes b as long as the peer takes some of it now and then.
func (l *link) writeAll(b []byte) error {
	for silent := 0; len(b) > 0; {
		if err := l.conn.SetWriteDeadline(time.Now().Add(l.patience.tick)); err != nil {
			return err
		}
		n, err := l.conn.Write(b)
		l.sent.Add(int64(n))
		b = b[n:]
		silent++
		if n > 0 {
			silent = 0
		}
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || silent >= l.patience.ticks) {
			return err
		}
	}
	return nil
}

// close says goodbye and waits for the peer's, so that nothing on the way is lost;
// a peer that has nothing to say is left after one tick per side.
func (l *link) close() {
	close(l.out)
	<-l.written
	select {
	case <-l.drained:
	case <-time.After(l.patience.tick):
	}
	l.conn.Close()
	<-l.drained
}

// abort drops the connection at once: the peer shall notice now, not in ten seconds.
func (l *link) abort() {
	l.conn.Close()
	<-l.drained
	close(l.out)
	<-l.written
}

func frame(t tag, x []float32) []byte {
	b := make([]byte, headerBytes+4*len(x))
	b[0] = byte(t.kind)
	binary.LittleEndian.PutUint32(b[4:], t.number)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(x)))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[headerBytes+4*i:], math.Float32bits(v))
	}
	return b
}

// patientReader reads from a connection until it was silent for too many ticks.
type patientReader struct {
	conn     net.Conn
	patience patience
}

// Read implements io.Reader.
func (r patientReader) Read(b []byte) (n int, err error) {
	for range r.patience.ticks {
		if err = r.conn.SetReadDeadline(time.Now().Add(r.patience.tick)); err != nil {
			return 0, err
		}
		n, err = r.conn.Read(b)
		if n > 0 {
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("silent for %s", time.Duration(r.patience.ticks)*r.patience.tick)
}
