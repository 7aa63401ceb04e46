package trainer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// fast notices a silent peer within half a second.
var fast = patience{tick: 50 * time.Millisecond, ticks: 10}

func TestAllReduceSums(t *testing.T) {
	for _, world := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			all := meshes(t, world, defaultPatience)
			draws.Check(t, func(rt *rapid.T) {
				n := rapid.IntRange(0, 40).Draw(rt, "floats")
				in, want := make([][]float32, world), make([]float32, n)
				for r := range in {
					// Integers: their sums are exact in any order.
					for _, v := range rapid.SliceOfN(rapid.IntRange(-1000, 1000), n, n).Draw(rt, "x") {
						in[r] = append(in[r], float32(v))
					}
					for i, v := range in[r] {
						want[i] += v
					}
				}
				together(t, world, func(rank int) error { return all[rank].sum(in[rank]) })
				for r := range in {
					for i, v := range in[r] {
						if v != want[i] {
							rt.Fatalf("rank %d element %d is %g, want %g", r, i, v, want[i])
						}
					}
				}
			})
			together(t, world, func(rank int) error { all[rank].leave(); return nil })
		})
	}
}

// Roundings depend on the order of the sum, so all ranks must take the result of one.
func TestAllReduceGivesEverybodyTheSameBits(t *testing.T) {
	const world, n = 4, 1001
	all := meshes(t, world, defaultPatience)
	x := make([][]float32, world)
	for r := range x {
		for i := range n {
			x[r] = append(x[r], 1/float32(1+(i*7+r*13)%97))
		}
	}
	together(t, world, func(rank int) error { return all[rank].sum(x[rank]) })
	for r := range x {
		for i := range n {
			if x[r][i] != x[0][i] {
				t.Fatalf("element %d is %v on rank %d and %v on rank 0", i, x[r][i], r, x[0][i])
			}
		}
	}
	together(t, world, func(rank int) error { all[rank].leave(); return nil })
}

func TestAPeerThatLeavesOrDiesIsNoticedAtOnce(t *testing.T) {
	for name, end := range map[string]func(*mesh){"leaves": (*mesh).leave, "dies": (*mesh).drop} {
		t.Run(name, func(t *testing.T) {
			all := meshes(t, 3, defaultPatience)
			begin := time.Now()
			together(t, 3, func(rank int) error {
				if rank == 1 {
					end(all[1])
					return nil
				}
				defer all[rank].drop()
				if err := all[rank].sum(make([]float32, 100)); !errors.Is(err, errPeer) {
					return fmt.Errorf("got %w, want %w", err, errPeer)
				}
				return nil
			})
			if waited := time.Since(begin); waited > 5*time.Second {
				t.Errorf("noticed after %s", waited)
			}
		})
	}
}

// Rank 0 receives from rank 2, which computes; that its successor is dead must not
// wait until rank 2 looks up.
func TestADeadSuccessorIsNoticed(t *testing.T) {
	all := meshes(t, 3, defaultPatience)
	all[1].drop()
	if err := all[0].sum(make([]float32, 100)); !errors.Is(err, errPeer) {
		t.Errorf("got %v, want %v", err, errPeer)
	}
	all[0].drop()
	all[2].drop()
}

// mute connects a link to a peer that accepts and then says nothing.
func mute(t *testing.T, p patience) (*link, net.Conn) {
	t.Helper()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	conn, err := net.Dial("tcp", door.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := door.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	l := newLink(conn, p)
	l.start()
	return l, peer
}

func TestASilentPeerIsGivenUp(t *testing.T) {
	l, _ := mute(t, fast)
	err := l.recv(tag{kind: kindReduce}, make([]float32, 1))
	if !errors.Is(err, errPeer) || !strings.Contains(err.Error(), "silent for 500ms") {
		t.Errorf("got %v", err)
	}
	l.abort()
}

func TestAPeerThatTakesNothingIsGivenUp(t *testing.T) {
	l, _ := mute(t, fast)
	for range 20 { // more than the buffers of the connection hold
		l.send(tag{kind: kindReduce}, make([]float32, 1<<19))
	}
	if err := l.recv(tag{kind: kindReduce}, nil); !errors.Is(err, errPeer) {
		t.Errorf("got %v", err)
	}
	l.abort()
}

func TestAPeerThatComputesForLongIsNotGivenUp(t *testing.T) {
	all := meshes(t, 2, patience{tick: 20 * time.Millisecond, ticks: 10})
	together(t, 2, func(rank int) error {
		if rank == 0 {
			time.Sleep(600 * time.Millisecond) // three times the patience
		}
		defer all[rank].leave()
		return all[rank].sum(make([]float32, 1000))
	})
}

func TestGarbageOnALink(t *testing.T) {
	l, peer := mute(t, fast)
	if _, err := peer.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.recv(tag{kind: kindReduce}, nil); !errors.Is(err, errPeer) {
		t.Errorf("got %v", err)
	}
	l.abort()
}

func TestFramesOfTheWrongSize(t *testing.T) {
	l, peer := mute(t, fast)
	if _, err := peer.Write(frame(tag{kindForward, 3}, make([]float32, 5))); err != nil {
		t.Fatal(err)
	}
	if err := l.recv(tag{kindForward, 3}, make([]float32, 4)); err == nil || !strings.Contains(err.Error(), "5 floats where 4") {
		t.Errorf("got %v", err)
	}
	l.abort()
}

func meet(t *testing.T, within time.Duration, places ...place) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() {
			p.patience = fast
			var m *mesh
			if m, errs[i] = join(ctx, p); m != nil {
				m.drop()
			}
		})
	}
	all.Wait()
	return errs
}

func TestRendezvousWithoutTheOthers(t *testing.T) {
	master := net.JoinHostPort("127.0.0.1", freePort(t))
	for rank := range 2 {
		err := meet(t, 300*time.Millisecond, place{rank: rank, world: 2, master: master})[0]
		if !errors.Is(err, errPeer) {
			t.Errorf("rank %d alone: %v, want %v", rank, err, errPeer)
		}
	}
}

func TestRendezvousOfWorkersThatDisagree(t *testing.T) {
	master := net.JoinHostPort("127.0.0.1", freePort(t))
	for _, other := range []place{
		{rank: 1, world: 2, master: master, digest: "b"},
		{rank: 1, world: 3, master: master, digest: "a"},
	} {
		for i, err := range meet(t, 10*time.Second, place{rank: 0, world: 2, master: master, digest: "a"}, other) {
			if !errors.Is(err, errMismatch) {
				t.Errorf("%+v: side %d: %v, want %v", other, i, err, errMismatch)
			}
		}
	}
}

// Strangers who are silent, rude or gone, and a worker that was started twice,
// do not keep a job from meeting.
func TestRendezvousAmongStrangers(t *testing.T) {
	master := net.JoinHostPort("127.0.0.1", freePort(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	errs := make([]error, 3)
	var all sync.WaitGroup
	start := func(rank int) {
		all.Go(func() {
			var m *mesh
			if m, errs[rank] = join(ctx, place{rank: rank, world: 3, master: master, digest: "a", patience: fast}); m != nil {
				errs[rank] = m.barrier()
				m.leave()
			}
		})
	}
	start(0)
	for _, greeting := range []string{"", "GET / HTTP/1.1\r\n\r\n", `{"rank":1,"world":3,"digest":"a","addr":"127.0.0.1:1"}` + "\n"} {
		var conn net.Conn
		for err := errors.New("not yet"); err != nil; time.Sleep(10 * time.Millisecond) {
			conn, err = net.Dial("tcp", master)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(greeting)); err != nil {
			t.Fatal(err)
		}
	}
	const moment = 300 * time.Millisecond // the first rank 1, then its successor, then the last guest
	time.Sleep(moment)
	start(1)
	time.Sleep(moment)
	start(2)
	all.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
