package gandiva

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// task is one job as the planner sees it.
type task struct {
	id      int32
	kind    int32 // tasks of a kind may be on the same nodes while they are on none; 0 is its own
	gang    int32 // devices
	memory  int32 // MiB per device, while it computes
	keeps   int32 // MiB of it that it does not give up between turns
	busy    int32 // how much it keeps its devices busy, in any unit; the least is packed first
	devices []int32
	active  bool  // computes in this slice
	last    int64 // the slice it last computed in; 0 is never
	partner *task // packed with it

	moved     bool  // in this decision
	soloMicro int64 // the rate at which it was last seen by itself; 0 is never
}

// planner keeps who is resident where and whose turn it is. Devices are numbered node
// by node.
type planner struct {
	config    Config
	allows    func(t *task, node int32) bool // nil is any
	first     []int32                        // by node: its first device, and at the end the number of devices
	memory    []int32                        // by node: MiB of a device; 0 takes no job
	residents [][]*task                      // by device
	closed    []bool                         // by device: lost, or taken by who is not planned here
	placed    []int32                        // by node: residents, counted once per device
	below     []int32                        // by node and number up to MaxResidents: open devices with fewer residents
	tasks     []*task                        // resident, by id
	ids       []int32                        // theirs
	held      []int32                        // devices of those that have runs, one after another
	tried     map[[2]int32]bool
	slice     int64
	on        []int32  // by device: its node
	ranks     ranks    // of nodes
	sizes              // of nodes, where they are ranked
	kinds     [][]int8 // by kind and node: what takes found
	found     []int32  // of gather, kept for its memory
}

// sizes are the fewest devices of a node and the most.
type sizes struct{ smallest, largest int32 }

func newPlanner(c Config) *planner {
	p := &planner{config: c, tried: map[[2]int32]bool{}, ranks: newRanks()}
	p.reset()
	return p
}

// reset forgets all but the memory that it took.
func (p *planner) reset() {
	p.allows, p.slice = nil, 0
	p.first, p.memory, p.residents, p.closed = append(p.first[:0], 0), p.memory[:0], p.residents[:0], p.closed[:0]
	p.placed, p.below, p.on = p.placed[:0], p.below[:0], p.on[:0]
	p.tasks, p.ids, p.held = p.tasks[:0], p.ids[:0], p.held[:0]
	p.ranks.forget()
	for kind := range p.kinds {
		p.kinds[kind] = p.kinds[kind][:0]
	}
	clear(p.tried)
}

// addNode adds a node of so many devices with so much memory each.
func (p *planner) addNode(devices, memory int32) {
	p.memory = append(p.memory, memory)
	p.placed = append(p.placed, 0)
	p.below = append(p.below, 0)
	for range p.config.MaxResidents {
		p.below = append(p.below, devices)
	}
	for range devices {
		if n := len(p.residents); n < cap(p.residents) { // with the memory of a device before
			p.residents = p.residents[:n+1]
			p.residents[n] = p.residents[n][:0]
		} else {
			p.residents = append(p.residents, nil)
		}
		p.on, p.closed = append(p.on, p.nodes()-1), append(p.closed, false)
	}
	p.first = append(p.first, int32(len(p.residents)))
}

func (p *planner) nodes() int32 { return int32(len(p.memory)) }

// size is how many devices a node has, node which one a device is on.
func (p *planner) size(node int32) int32   { return p.first[node+1] - p.first[node] }
func (p *planner) node(device int32) int32 { return p.on[device] }

// room counts the devices of a node that are open and have fewer residents than most,
// which is MaxResidents at most.
func (p *planner) room(node, most int32) int32 {
	return p.below[node*(p.config.MaxResidents+1)+most]
}

// free counts the devices of a node that nobody is resident on.
func (p *planner) free(node int32) int32 { return p.room(node, 1) }

// close keeps tasks away from a device.
func (p *planner) close(device int32) {
	if p.closed[device] {
		return
	}
	for most := int32(len(p.residents[device])) + 1; most <= p.config.MaxResidents; most++ {
		p.below[p.node(device)*(p.config.MaxResidents+1)+most]--
	}
	if p.closed[device] = true; p.ranks.kept {
		p.ranks.forget()
	}
}

// height is how many residents a node has per device, in thousandths.
func (p *planner) height(node int32) int32 { return p.placed[node] * 1000 / max(1, p.size(node)) }

// affinity is the size class of what is on a node: the gang of its first resident.
func (p *planner) affinity(node int32) int32 {
	for d := p.first[node]; d < p.first[node+1]; d++ {
		if len(p.residents[d]) > 0 {
			return p.residents[d][0].gang
		}
	}
	return 0
}

// find chooses devices as the paper's Algorithm 1 does: free ones on the least loaded
// node of the job's size class, then on one without, then on any; else it lets the job
// take turns with others of its class, then of any. None where that is not allowed.
func (p *planner) find(t *task) []int32 {
	last := int32(1)
	if p.config.Oversubscribe {
		last = p.config.MaxResidents
	}
	if !p.ranks.kept {
		p.rank()
	}
	if p.largest == 0 {
		return nil
	}
	least := int32(1) // devices that it takes of any node
	if p.smallest == p.largest || t.gang <= p.smallest {
		least = (t.gang-1)%p.smallest + 1
	}
	for most := int32(1); most <= last; most++ {
		if p.ranks.none(room{most, min(t.gang, p.smallest)}) {
			continue // nobody has room for the first of it
		}
		if devices := p.gather(t, p.ranks.inOrder(t.gang, room{most, least}), most); devices != nil {
			return devices
		}
	}
	return nil
}

// rank begins to keep the nodes in order.
func (p *planner) rank() {
	p.smallest, p.largest = math.MaxInt32, 0
	for n := range p.nodes() {
		if size := p.size(n); size > 0 {
			p.smallest, p.largest = min(p.smallest, size), max(p.largest, size)
		}
	}
	p.ranks.begin(p.nodes(), p.largest, p.config.MaxResidents)
	for n := range p.nodes() {
		p.ranks.add(n, p.rankOf(n))
		for most := range p.config.MaxResidents + 1 {
			for devices := range p.room(n, most) + 1 {
				p.ranks.with(room{most, devices}).Add(n)
			}
		}
	}
}

func (p *planner) rankOf(node int32) rank { return rank{p.affinity(node), p.height(node)} }

// takes reports whether a task may be on a node at all.
func (p *planner) takes(node int32, t *task) bool {
	if t.kind == 0 || len(t.devices) > 0 {
		return p.mayBe(node, t)
	}
	for int(t.kind) >= len(p.kinds) {
		p.kinds = append(p.kinds, nil)
	}
	if len(p.kinds[t.kind]) == 0 {
		p.kinds[t.kind] = append(p.kinds[t.kind], make([]int8, p.nodes())...)
	}
	known := &p.kinds[t.kind][node]
	if *known == 0 {
		if *known = -1; p.mayBe(node, t) {
			*known = 1
		}
	}
	return *known > 0
}

func (p *planner) mayBe(node int32, t *task) bool {
	return p.memory[node] != 0 && t.memory <= p.memory[node] && (p.allows == nil || p.allows(t, node))
}

// gather picks a gang's devices from the first node that holds it, or from whole nodes
// where one is too small, of devices that will have at most so many residents.
func (p *planner) gather(t *task, order iter.Seq[int32], most int32) []int32 {
	var all []int32
	for n := range order {
		want := min(t.gang-int32(len(all)), p.size(n))
		if p.room(n, most) < want || !p.takes(n, t) {
			continue
		}
		devices := p.found[:0]
		for d := p.first[n]; d < p.first[n+1]; d++ {
			if int32(len(p.residents[d])) < most && !p.closed[d] {
				devices = append(devices, d)
			}
		}
		// Beside one of its own size, so that the two take turns and leave the other
		// devices of the node alone.
		slices.SortStableFunc(devices, func(a, b int32) int {
			return cmp.Or(cmp.Compare(len(p.residents[a]), len(p.residents[b])), cmp.Compare(p.alien(a, t.gang), p.alien(b, t.gang)))
		})
		all, p.found = append(all, devices[:want]...), devices
		if int32(len(all)) >= t.gang {
			slices.Sort(all)
			return all[:t.gang]
		}
	}
	return nil
}

// alien is 1 for a device whose residents are of another size.
func (p *planner) alien(device, gang int32) int {
	if r := p.residents[device]; len(r) > 0 && r[0].gang != gang {
		return 1
	}
	return 0
}

// add makes a task resident where there is room for it, and reports whether.
func (p *planner) add(t *task) bool {
	devices := p.find(t)
	if devices == nil {
		return false
	}
	p.seat(t, devices)
	at, _ := slices.BinarySearch(p.ids, t.id)
	p.tasks, p.ids = slices.Insert(p.tasks, at, t), slices.Insert(p.ids, at, t.id)
	return true
}

func byID(a, b *task) int { return cmp.Compare(a.id, b.id) }

// seat puts a task on devices.
func (p *planner) seat(t *task, devices []int32) {
	t.devices = devices
	for _, d := range devices {
		p.change(d, 1, func(residents []*task) []*task { return append(residents, t) })
	}
}

// change gives a device one resident more or less.
func (p *planner) change(device, more int32, residents func([]*task) []*task) {
	n := p.node(device)
	if p.ranks.kept {
		p.ranks.remove(n, p.rankOf(n))
	}
	most := int32(len(p.residents[device])) + max(0, more) // that it has fewer than without
	p.residents[device] = residents(p.residents[device])
	p.placed[n] += more
	if p.ranks.kept {
		p.ranks.add(n, p.rankOf(n))
	}
	if most <= p.config.MaxResidents && !p.closed[device] {
		p.below[n*(p.config.MaxResidents+1)+most] -= more
		switch is := (room{most, p.room(n, most) + max(0, more)}); {
		case !p.ranks.kept:
		case more > 0:
			p.ranks.with(is).Remove(n)
		default:
			p.ranks.with(is).Add(n)
		}
	}
}

func (p *planner) unsettle(t *task) {
	for _, d := range t.devices {
		p.change(d, -1, func(residents []*task) []*task {
			return slices.DeleteFunc(residents, func(o *task) bool { return o == t })
		})
	}
	t.devices, t.active = nil, false
}

func (p *planner) part(t *task) {
	if t.partner != nil {
		t.partner.partner, t.partner = nil, nil
	}
}

// rotate begins a slice: who has waited longest for a turn goes first, on devices that
// nobody has taken before in this slice; a packed partner goes along.
func (p *planner) rotate() {
	p.slice++
	p.fill(true)
}

// fill gives turns to tasks in order of their last one: to all anew, or only on
// devices that stand idle in the middle of a slice.
func (p *planner) fill(anew bool) {
	taken := make([]bool, len(p.residents))
	for _, t := range p.tasks {
		t.active = t.active && !anew
		for _, d := range t.devices {
			taken[d] = taken[d] || t.active
		}
	}
	order := slices.Clone(p.tasks)
	slices.SortStableFunc(order, func(a, b *task) int { return cmp.Compare(a.last, b.last) })
	for _, t := range order {
		if t.active || slices.ContainsFunc(t.devices, func(d int32) bool { return taken[d] }) {
			continue
		}
		for _, d := range t.devices {
			taken[d] = true
		}
		for _, o := range []*task{t, t.partner} {
			if o != nil {
				o.active, o.last = true, p.slice
			}
		}
	}
}

// try packs, for the slice that begins, one more task beside each that has a turn: the
// least busy first, both on the same devices, never a pair that did badly before.
// It returns the pairs on trial.
func (p *planner) try() (trials [][2]*task) {
	order := slices.Clone(p.tasks)
	slices.SortStableFunc(order, func(a, b *task) int { return cmp.Compare(a.busy, b.busy) })
	for _, t := range order {
		if !t.active || t.partner != nil {
			continue
		}
		for _, o := range p.besides(t) {
			if o.active || o.partner != nil || !slices.Equal(o.devices, t.devices) || p.tried[key(t, o)] {
				continue
			}
			t.partner, o.partner = o, t
			if slices.ContainsFunc(t.devices, func(d int32) bool { return !p.holds(d) }) {
				p.part(t)
				continue
			}
			p.tried[key(t, o)] = true
			o.active, o.last = true, p.slice
			trials = append(trials, [2]*task{t, o})
			break
		}
	}
	return trials
}

// besides are the residents of a task's first device in the order they are packed in.
func (p *planner) besides(t *task) []*task {
	if len(t.devices) == 0 || len(p.residents[t.devices[0]]) == 1 {
		return nil
	}
	order := slices.Clone(p.residents[t.devices[0]])
	slices.SortFunc(order, func(a, b *task) int { return cmp.Or(cmp.Compare(a.busy, b.busy), byID(a, b)) })
	return order
}

// guest reports whether a task is the younger of a pair: it lives in what the other
// leaves, as far as the books go.
func (t *task) guest() bool { return t.partner != nil && t.partner.id < t.id }

// holds reports whether a device has the memory of all its residents: guests keep theirs
// between turns too, of the others one has all of its own at a time.
func (p *planner) holds(device int32) bool {
	kept, most := int32(0), int32(0)
	for _, t := range p.residents[device] {
		if t.guest() {
			kept += t.memory
		} else {
			kept, most = kept+t.keeps, max(most, t.memory-t.keeps)
		}
	}
	return kept+most <= p.memory[p.node(device)]
}

func key(a, b *task) [2]int32 { return [2]int32{min(a.id, b.id), max(a.id, b.id)} }

// judge ends the trial of a pair with the sum of both rates, each as a part of the
// rate by itself, in thousandths: less than one job alone does, and they part for good.
func (p *planner) judge(pair [2]*task, sum unit.Milli) {
	if sum < unit.Whole {
		p.part(pair[0])
		pair[1].active = false
	}
}

// migrate moves one task that would wait for its turn to devices that stand empty, the
// longest waiting first, and returns it; nil when nobody gains any more.
func (p *planner) migrate() *task {
	if !p.config.Migrate {
		return nil
	}
	var nodes []int32
	for n := range p.nodes() {
		if p.free(n) > 0 {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	order := slices.Clone(p.tasks)
	slices.SortStableFunc(order, func(a, b *task) int { return cmp.Compare(a.last, b.last) })
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(p.free(a), p.free(b)) })
	for _, t := range order {
		if t.moved || t.active || t.partner != nil || !slices.ContainsFunc(t.devices, func(d int32) bool { return len(p.residents[d]) > 1 }) {
			continue
		}
		if devices := p.gather(t, slices.Values(nodes), 1); devices != nil {
			p.unsettle(t)
			p.seat(t, devices)
			t.moved = true
			return t
		}
	}
	return nil
}
