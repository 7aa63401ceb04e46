package trainer

import (
	"context"
	"net"
	"sync"
	"time"
)

// guest is a connection that has introduced itself.
type guest struct {
	conn  net.Conn
	hello hello
}

// guests accepts connections and hands out those that introduce themselves. Each is
// heard in a goroutine of its own: a port scanner that says nothing delays nobody.
type guests struct {
	ctx    context.Context
	door   net.Listener
	queue  chan guest
	cancel context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]bool // to be closed with the guests
}

func newGuests(ctx context.Context, door net.Listener) *guests {
	g := &guests{door: door, queue: make(chan guest), conns: map[net.Conn]bool{}}
	g.ctx, g.cancel = context.WithCancel(ctx)
	go g.accept()
	return g
}

func (g *guests) accept() {
	for {
		conn, err := g.door.Accept()
		if err != nil {
			return // the door was closed
		}
		g.mu.Lock()
		g.conns[conn] = true
		closed := g.ctx.Err() != nil
		g.mu.Unlock()
		if closed {
			conn.Close()
			return
		}
		go g.hear(conn)
	}
}

func (g *guests) hear(conn net.Conn) {
	var h hello
	if recvLine(conn, &h) != nil {
		conn.Close()
		return
	}
	select {
	case g.queue <- guest{conn, h}:
	case <-g.ctx.Done():
		conn.Close()
	}
}

// next returns a guest who introduced himself, or why no more come.
func (g *guests) next() (guest, error) {
	select {
	case v := <-g.queue:
		return v, nil
	case <-g.ctx.Done():
		return guest{}, g.ctx.Err()
	}
}

// keep excepts a guest from close.
func (g *guests) keep(v guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, v.conn)
	v.conn.SetDeadline(time.Time{})
}

// close shuts the door behind all guests but those kept.
func (g *guests) close() {
	g.cancel()
	g.door.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		conn.Close()
	}
}
