package trainer

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
)

// mesh is this worker's place among the workers of a job. It stands on three rings: of those
// with the other stages of its pipeline, of those with the same stages for another part of the
// batch, and of those with the other slices of the same layers. Ranks count slices first, then
// parts of the batch, then stages, as Megatron does: who talks most is nearest.
type mesh struct{ tensor, data, pipe *ring }

func newMesh(p place) *mesh {
	tensor, pipe := max(1, p.tensor), max(1, p.pipe)
	data := p.world / (tensor * pipe)
	return &mesh{
		tensor: &ring{rank: p.rank % tensor, world: tensor, stride: 1},
		data:   &ring{rank: p.rank / tensor % data, world: data, stride: tensor},
		pipe:   &ring{rank: p.rank / tensor / data, world: pipe, stride: tensor * data},
	}
}

// world is how many workers the job has, and rank which of them this is.
func (m *mesh) world() int { return m.tensor.world * m.data.world * m.pipe.world }

func (m *mesh) rank() int {
	return (m.pipe.rank*m.data.world+m.data.rank)*m.tensor.world + m.tensor.rank
}

// rings are those on which there is somebody else.
func (m *mesh) rings() []*ring {
	return slices.DeleteFunc([]*ring{m.tensor, m.data, m.pipe}, func(r *ring) bool { return r.world == 1 })
}

// connect dials the successors and awaits the predecessors. No worker is a neighbour on two
// rings, so a predecessor is known by its rank.
func (m *mesh) connect(ctx context.Context, p place, own net.Listener, addrs []string) (err error) {
	rings := m.rings()
	next, came := make([]net.Conn, 0, len(rings)), make([]guest, len(rings))
	defer func() {
		if err != nil {
			for _, conn := range next {
				conn.Close()
			}
		}
	}()
	awaited := map[int]int{}
	for i, r := range rings {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", addrs[r.at(p.rank, 1)])
		if err != nil {
			return err
		}
		next = append(next, conn)
		if err := sendLine(conn, hello{Rank: p.rank, World: p.world, Digest: p.digest}); err != nil {
			return err
		}
		awaited[r.at(p.rank, -1)] = i
	}
	guests := newGuests(ctx, own)
	defer guests.close()
	for len(awaited) > 0 {
		g, err := guests.next()
		if err != nil {
			return fmt.Errorf("ranks %v did not come: %w", slices.Sorted(maps.Keys(awaited)), err)
		}
		if i, is := awaited[g.hello.Rank]; is && g.hello.Digest == p.digest {
			came[i] = g
			delete(awaited, g.hello.Rank)
		}
	}
	for i, r := range rings {
		guests.keep(came[i])
		r.next, r.prev = newLink(next[i], p.patience), newLink(came[i].conn, p.patience)
	}
	for _, l := range m.links() {
		l.all = m.links()
	}
	for _, l := range m.links() {
		l.start()
	}
	return nil
}

// links are the connections to all neighbours.
func (m *mesh) links() (all []*link) {
	for _, r := range m.rings() {
		all = append(all, r.next, r.prev)
	}
	return all
}

// sent is how many bytes this worker has put on the wire so far.
func (m *mesh) sent() (bytes int64) {
	for _, l := range m.links() {
		bytes += l.sent.Load()
	}
	return bytes
}

// sum replaces x by its sum over all workers of the job.
func (m *mesh) sum(x []float32) error {
	for _, r := range m.rings() {
		if err := r.allReduce(x); err != nil {
			return err
		}
	}
	return nil
}

// barrier returns when all workers have reached it.
func (m *mesh) barrier() error { return m.sum(make([]float32, 1)) }

// leave ends a mesh whose workers all finished; drop one in which something failed.
func (m *mesh) leave() {
	var all sync.WaitGroup
	for _, l := range m.links() {
		all.Go(l.close) // at once: the neighbours wait too
	}
	all.Wait()
}

func (m *mesh) drop() {
	for _, l := range m.links() {
		l.abort()
	}
}
