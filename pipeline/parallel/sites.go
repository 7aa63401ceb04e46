package parallel

import "github.com/musterdl/muster/model/unit"

// What is done where devices stand at several sites: copies may be kept together or put apart, and a link
// between sites may be what a pipeline waits for.

// slowestLink is how long a microbatch keeps the busiest link of a pipeline, in each direction.
func slowestLink(part *Part) (longest unit.Duration) {
	for _, route := range part.Schedule.Routes {
		for stage, from := range route[:len(route)-1] {
			if to := route[stage+1]; from != to {
				link := part.Costs.Links[from][to]
				longest = max(longest, link.Takes(part.Costs.Stages[stage].OutputKiB)-link.Latency)
			}
		}
	}
	return longest
}

// Apart are the numbers of groups into which copies on so many first devices can be put so that fewer
// pipelines go from site to site, or none: groups that end where sites do.
func (d *Devices) Apart(devices, copies int) (all []int) {
	// Sites of 16 and 48 devices end where groups of 16 do, and of 32 where groups of 16 of the first
	// end: what divides all is the smallest group.
	smallest, at := devices, 0
	for i, n := range d.Nodes {
		if at >= devices {
			break
		}
		if i > 0 && n.Site != d.Nodes[i-1].Site {
			smallest = divisor(smallest, at)
		}
		at += int(n.Count)
	}
	for groups := 2; groups <= devices/smallest; groups++ {
		if devices/smallest%groups == 0 && copies%groups == 0 {
			all = append(all, groups)
		}
	}
	return all
}

// divisor is the greatest common one.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
