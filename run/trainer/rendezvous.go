package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// place is a worker's place in the world, as torchrun's variables give it.
type place struct {
	rank, world int
	// pipe is how many workers one pipeline has in a row, tensor how many share a layer; 0 is 1.
	pipe, tensor int
	master       string // host:port where rank 0 listens
	// digest stands for everything that must be equal on all workers.
	digest   string
	patience patience
}

// hello opens every connection between workers.
type hello struct {
	Rank   int    `json:"rank"`
	World  int    `json:"world"`
	Digest string `json:"digest"`
	Addr   string `json:"addr,omitempty"` // where the worker awaits its predecessor
}

// welcome is rank 0's answer once all have come.
type welcome struct {
	Addrs []string `json:"addrs,omitempty"` // by rank
	Error string   `json:"error,omitempty"`
}

const (
	helloBytes = 1 << 16
	// Retries begin fast, for workers started together on one machine, and slow down
	// before a thousand of them become a burden to rank 0.
	retryFirst = 10 * time.Millisecond
	retryMost  = 500 * time.Millisecond
)

// errMismatch marks workers that were started with different options.
var errMismatch = errors.New("the workers of this job do not agree")

// join meets the other workers before ctx ends and returns the mesh.
func join(ctx context.Context, p place) (*mesh, error) {
	m := newMesh(p)
	if p.world == 1 {
		return m, nil
	}
	meet := visit
	if p.rank == 0 {
		meet = host
	}
	own, addrs, err := meet(ctx, p)
	if own != nil {
		defer own.Close()
	}
	if err == nil {
		err = m.connect(ctx, p, own, addrs)
	}
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, errMismatch):
		return nil, err
	}
	return nil, fmt.Errorf("%w: rendezvous of rank %d at %s: %w", errPeer, p.rank, p.master, err)
}

// host is rank 0's side: it collects the workers and tells everybody the addresses.
func host(ctx context.Context, p place) (own net.Listener, addrs []string, err error) {
	door, err := listen(ctx, p.master)
	if err != nil {
		return nil, nil, err
	}
	defer door.Close()
	name, _, err := net.SplitHostPort(p.master)
	if err != nil {
		return nil, nil, err
	}
	if own, err = listen(ctx, net.JoinHostPort(name, "0")); err != nil {
		return nil, nil, err
	}
	guests := newGuests(ctx, door)
	defer guests.close()
	addrs = make([]string, p.world)
	addrs[0] = own.Addr().String()
	conns := make([]net.Conn, p.world)
	for missing := p.world - 1; missing > 0; {
		g, err := guests.next()
		if err != nil {
			return own, nil, fmt.Errorf("%d of %d workers are missing: %w", missing, p.world, err)
		}
		if err := p.check(g.hello); err != nil {
			answer := welcome{Error: err.Error()}
			sendLine(g.conn, answer)
			for _, c := range conns[1:] {
				if c != nil {
					sendLine(c, answer)
				}
			}
			return own, nil, err
		}
		if conns[g.hello.Rank] == nil {
			missing--
		}
		conns[g.hello.Rank], addrs[g.hello.Rank] = g.conn, g.hello.Addr // a worker started again replaces itself
	}
	for _, c := range conns[1:] {
		if err := sendLine(c, welcome{Addrs: addrs}); err != nil {
			return own, nil, err
		}
	}
	return own, addrs, nil
}

func (p place) check(h hello) error {
	if h.World != p.world || h.Rank < 1 || h.Rank >= p.world {
		return fmt.Errorf("%w: rank %d of %d came to a world of %d", errMismatch, h.Rank, h.World, p.world)
	}
	if h.Digest != p.digest {
		return fmt.Errorf("%w: rank %d was started with other options, text or plan than rank 0", errMismatch, h.Rank)
	}
	return nil
}

// visit is the side of the other ranks. Rank 0 may not be there yet, or be the last
// attempt's on its way out: until ctx ends every failure is tried again.
func visit(ctx context.Context, p place) (own net.Listener, addrs []string, err error) {
	var dialer net.Dialer
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, "tcp", p.master); err == nil {
			own, addrs, err = introduce(ctx, p, conn)
			conn.Close()
			if err == nil || errors.Is(err, errMismatch) {
				return own, addrs, err
			}
		}
		if !sleep(ctx, pause) {
			return nil, nil, err
		}
	}
}

func introduce(ctx context.Context, p place, conn net.Conn) (net.Listener, []string, error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// The address on which this worker reaches rank 0 is one at which it can be reached.
	name, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return nil, nil, err
	}
	own, err := listen(ctx, net.JoinHostPort(name, "0"))
	if err != nil {
		return nil, nil, err
	}
	var w welcome
	err = sendLine(conn, hello{p.rank, p.world, p.digest, own.Addr().String()})
	if err == nil {
		err = recvLine(conn, &w)
	}
	switch {
	case err == nil && w.Error != "":
		err = fmt.Errorf("%w: %s", errMismatch, w.Error)
	case err == nil && len(w.Addrs) != p.world:
		err = fmt.Errorf("rank 0 sent %d addresses for %d workers", len(w.Addrs), p.world)
	}
	if err != nil {
		own.Close()
		return nil, nil, err
	}
	return own, w.Addrs, nil
}

// listen retries until ctx ends: the last attempt may still hold the port.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	for {
		l, err := config.Listen(ctx, "tcp", addr)
		if err == nil || !sleep(ctx, retryMost) {
			return l, err
		}
	}
}

// sleep returns false if ctx ended instead.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func sendLine(conn net.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(b, '\n'))
	return err
}

// recvLine reads byte by byte: what follows the line belongs to someone else.
func recvLine(conn net.Conn, v any) error {
	var line []byte
	var b [1]byte
	for len(line) < helloBytes {
		if _, err := conn.Read(b[:]); err != nil {
			return err
		}
		if b[0] == '\n' {
			return json.Unmarshal(line, v)
		}
		line = append(line, b[0])
	}
	return errors.New("greeting longer than " + strconv.Itoa(helloBytes) + " bytes")
}
