package liquid

import (
	"cmp"
	"slices"
)

// Site is a node as the cost sees it.
type Site struct {
	Rack, Domain int32
	Room         int32 // tasks it could take
	Busy         int32 // devices in use
	Devices      int32
}

// Gang is a job as the cost sees it: so many tasks, the first of them parameter servers
// that talk to each other task; with none, or nothing else, every task talks to every
// other. Gbps is what one such pair exchanges.
type Gang struct {
	Tasks, Servers int32
	Gbps           float64
}

// server reports whether a task serves.
func (g *Gang) server(task int32) bool { return task < g.Servers }

// peers reports whether all tasks are alike.
func (g *Gang) peers() bool { return g.Servers <= 0 || g.Servers >= g.Tasks }

// Weights are what a pair of tasks costs, for each Gbps, that is apart by more than a
// node, more than a rack, more than a domain.
type Weights struct{ Node, Rack, Domain float64 }

// published are those of the paper's code.
var published = Weights{Node: 1, Rack: 4, Domain: 40}

// sides counts the tasks of a gang, servers and others, at one place.
type sides [2]int32

func side(server bool) int {
	if server {
		return 0
	}
	return 1
}

// spot is a gang while it is placed: how many of its tasks are where. It is used again
// from gang to gang.
type spot struct {
	sites   []Site
	weights Weights
	node    []sides
	rack    []sides
	domain  []sides
	all     sides
	gang    *Gang
	used    int32
}

func newSpot(sites []Site, weights Weights) *spot {
	s := new(spot)
	s.reset(sites, weights)
	return s
}

// reset makes the spot one of these sites.
func (s *spot) reset(sites []Site, weights Weights) {
	racks, domains := int32(0), int32(0)
	for i := range sites {
		racks, domains = max(racks, sites[i].Rack+1), max(domains, sites[i].Domain+1)
	}
	s.sites, s.weights = sites, weights
	s.node, s.rack, s.domain = zeros(s.node, len(sites)), zeros(s.rack, int(racks)), zeros(s.domain, int(domains))
}

func zeros(list []sides, n int) []sides { return append(list[:0], make([]sides, n)...) }

// begin empties the spot for a gang.
func (s *spot) begin(g *Gang) {
	clear(s.node)
	clear(s.rack)
	clear(s.domain)
	s.all, s.gang, s.used = sides{}, g, 0
}

// taken is how many tasks of the gang are on a site.
func (s *spot) taken(site int32) int32 { return s.node[site][0] + s.node[site][1] }

// add puts a task on a site.
func (s *spot) add(task, site int32) {
	if s.taken(site) == 0 {
		s.used++
	}
	k, at := side(s.gang.server(task)), &s.sites[site]
	s.node[site][k]++
	s.rack[at.Rack][k]++
	s.domain[at.Domain][k]++
	s.all[k]++
}

// network is what a task on a site would add to the network cost: the bandwidth times
// 1 (W_rack - W_node) + 4 (W_domain - W_rack) + 40 (W - W_domain), where W counts the
// partners placed so far at each level.
func (s *spot) network(task, site int32) float64 {
	at, g := &s.sites[site], s.gang
	partners := func(c *sides) float64 {
		if g.peers() {
			return float64(c[0] + c[1])
		}
		return float64(c[1-side(g.server(task))])
	}
	node, rack, domain, all := partners(&s.node[site]), partners(&s.rack[at.Rack]), partners(&s.domain[at.Domain]), partners(&s.all)
	return g.Gbps * (s.weights.Node*(rack-node) + s.weights.Rack*(domain-rack) + s.weights.Domain*(all-domain))
}

// total adds to the network cost what the rest of the placement costs: the load of the
// node, which servers avoid and others seek, and the nodes used for each task.
func (s *spot) total(task, site int32) float64 {
	at := &s.sites[site]
	load := float64(1+at.Busy+s.taken(site)+1) / float64(max(1, at.Devices))
	if !s.gang.server(task) {
		load = -load
	}
	used := s.used
	if s.taken(site) == 0 {
		used++
	}
	return s.network(task, site) + load + float64(used)/float64(s.gang.Tasks)
}

// order is that in which the tasks of a gang are placed: servers and others in turn, as
// their numbers have it.
func (g *Gang) order(into []int32) []int32 {
	into = into[:0]
	server, other := int32(0), max(0, g.Servers)
	for server < g.Servers || other < g.Tasks {
		if other >= g.Tasks || server < g.Servers && server*(g.Tasks-g.Servers) <= (other-g.Servers)*g.Servers {
			into = append(into, server)
			server++
		} else {
			into = append(into, other)
			other++
		}
	}
	return into
}

// greedy places a gang task by task, each where the total cost grows least, among the
// candidate sites in their order; site by task goes into where. It reports false, and
// where is of no use, if they do not hold all.
func (s *spot) greedy(g *Gang, candidates []int32, where []int32) bool {
	s.begin(g)
	for _, task := range g.order(make([]int32, 0, g.Tasks)) {
		best, least := int32(-1), 0.0
		for _, site := range candidates {
			if s.taken(site) >= s.sites[site].Room {
				continue
			}
			if c := s.total(task, site); best < 0 || c < least {
				best, least = site, c
			}
		}
		if best < 0 {
			return false
		}
		where[task] = best
		s.add(task, best)
	}
	return true
}

// cost is that of a whole placement of a gang, by the counts of its spot: the network,
// the mean load of the sites of its servers less that of the others', and the sites for
// each task.
func (s *spot) cost(g *Gang, where []int32) float64 {
	s.begin(g)
	network := 0.0
	for task, site := range where {
		network += s.network(int32(task), site)
		s.add(int32(task), site)
	}
	loads, count := [2]float64{}, [2]float64{}
	for task, site := range where {
		k := side(g.server(int32(task)))
		loads[k] += float64(1+s.sites[site].Busy+s.taken(site)) / float64(max(1, s.sites[site].Devices))
		count[k]++
	}
	return network + loads[0]/max(1, count[0]) - loads[1]/max(1, count[1]) + float64(s.used)/float64(g.Tasks)
}

// candidates are the sites that a gang of so many tasks looks at, at most 3*tasks+5 of
// them: those of the smallest place that holds it whole, a node, a rack or a domain, the
// tightest of equals; else all with room. Those that hold most of it come first, of
// equals the fuller, then the lower id.
func candidates(sites []Site, tasks int32, into []int32) []int32 {
	into = into[:0]
	for id := range sites {
		if sites[id].Room > 0 {
			into = append(into, int32(id))
		}
	}
	for _, place := range []func(id int32) int32{
		func(id int32) int32 { return id },
		func(id int32) int32 { return sites[id].Rack },
		func(id int32) int32 { return sites[id].Domain },
	} {
		if best, ok := tightest(sites, into, tasks, place); ok {
			into = slices.DeleteFunc(into, func(id int32) bool { return place(id) != best })
			break
		}
	}
	slices.SortFunc(into, func(i, j int32) int {
		a, b := &sites[i], &sites[j]
		return cmp.Or(cmp.Compare(min(b.Room, tasks), min(a.Room, tasks)),
			cmp.Compare(a.Devices-a.Busy, b.Devices-b.Busy), cmp.Compare(i, j))
	})
	return into[:min(len(into), int(3*tasks+5))]
}

// tightest is the place with the least room among those that hold so many tasks.
func tightest(sites []Site, ids []int32, tasks int32, place func(id int32) int32) (best int32, ok bool) {
	var room []int64
	for _, id := range ids {
		p := int(place(id))
		if p >= len(room) {
			room = append(room, make([]int64, p+1-len(room))...)
		}
		room[p] += int64(sites[id].Room)
	}
	for p, r := range room {
		if r >= int64(tasks) && (!ok || r < room[best]) {
			best, ok = int32(p), true
		}
	}
	return best, ok
}
