package explain

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// kind names the devices a shape may use, as so many thousandths of them are called:
// "8 V100", "1 device", "2 V100 or P100".
func (q *question) kind(milli int64) string { return q.named(milli, q.shape.Models) }

func (s *Site) named(milli int64, models uint64) string {
	list := s.v.Cluster().Models
	all := uint64(1)<<len(list) - 1
	if models&all == all {
		if milli == 1000 {
			return "1 device"
		}
		return plan.Amount(milli) + " devices"
	}
	var names []string
	for m := range list {
		if models&(1<<m) != 0 {
			names = append(names, list[m].Name)
		}
	}
	return plan.Amount(milli) + " " + strings.Join(names, " or ")
}

// wish says what the job wants: "wants 16 V100 as 2 workers, each with 8 on one node".
func (q *question) wish() string {
	shape, n := q.shape, q.n
	least := ""
	if shape.Elastic() {
		least = "at least "
	}
	switch {
	case shape.Devices == 0:
		words := fmt.Sprintf("wants %s%s with %s", least, workers(int64(n)), cores(int64(shape.CPU)))
		if shape.Host > 0 {
			words += fmt.Sprintf(" and %s of host memory", unit.MiB(shape.Host))
		}
		return words
	case shape.Share < 1000 && n == 1:
		return "wants " + least + q.kind(int64(shape.Share))
	case shape.Share < 1000:
		return fmt.Sprintf("wants %s%d parts of %s each", least, n, q.kind(int64(shape.Share)))
	case n == 1 && shape.Devices > 1:
		return fmt.Sprintf("wants %s%s on one node", least, q.kind(q.wants()))
	case shape.Devices > 1:
		return fmt.Sprintf("wants %s%s as %s, each with %d on one node", least, q.kind(q.wants()), workers(int64(n)), shape.Devices)
	}
	return "wants " + least + q.kind(q.wants())
}

func workers(n int64) string { return count(n, "worker") }

func cores(milli int64) string { return plan.Amount(milli) + " cores" }

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}

// away says how long it is until an instant: "in 2h30m", "at any moment".
func (s *Site) away(at unit.Time) string {
	if at <= s.v.Now().Add(unit.Second) {
		return "at any moment"
	}
	return "in " + rough(at.Sub(s.v.Now()))
}

// rough writes a duration in whole seconds, and from an hour on in whole minutes.
func rough(d unit.Duration) string {
	step := unit.Second
	if d >= unit.Hour {
		step = unit.Minute
	}
	if d == unit.Forever || d < unit.Second {
		return d.String()
	}
	return ((d + step/2) / step * step).String()
}

// queueName calls a queue by its name.
func (s *Site) queueName(id int32) string {
	if name := s.v.Queues().Queues[id].Name; name != "" {
		return "queue " + name
	}
	return "the cluster"
}

func (s *Site) nodeName(id plan.NodeID) string { return s.v.Cluster().Nodes[id].Name }

// mostListed is how many names a sentence has, at most.
const mostListed = 3

// names joins names: "a, b and 4 more".
func names(list []string) string {
	if len(list) > mostListed+1 {
		return strings.Join(list[:mostListed], ", ") + " and " + strconv.Itoa(len(list)-mostListed) + " more"
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}

// toEnd says that holders have to end, and by when they are expected to.
func (s *Site) toEnd(holders []Holder) string {
	var list []string
	last := unit.Time(math.MinInt64)
	for _, h := range holders {
		list = append(list, h.Job)
		last = max(last, h.Until)
	}
	switch {
	case last == unit.Never:
		return names(list) + " to end; how long that takes nobody has said"
	case len(holders) == 1:
		return names(list) + " to end, expected " + s.away(last)
	}
	return names(list) + " to end, the last of them expected " + s.away(last)
}
