package planning

import "github.com/musterdl/muster/pipeline/parallel"

// crossing is what a plan sends from site to site: what goes on to the next stage, or the gradients
// of those that hold the same layers; empty where there is one site.
func crossing(on *parallel.Devices, layers int32, c *parallel.Candidate) string {
	if len(on.Sites) < 2 {
		return ""
	}
	site := func(d int32) int32 { return on.Nodes[on.NodeOf(d)].Site }
	holds := map[int32]int32{} // the first site that holds a layer
	stages, copies := false, false
	for i, part := range c.Result.Parts {
		if part == nil || i >= len(c.Plan.Pipelines) {
			continue
		}
		one := &c.Plan.Pipelines[i]
		for _, route := range part.Schedule.Routes {
			for stage, rank := range route {
				first := int32(0)
				if stage > 0 {
					first = one.Cuts[stage-1]
					stages = stages || site(one.Ranks[rank].Devices[0]) != site(one.Ranks[route[stage-1]].Devices[0])
				}
				end := layers
				if stage < len(one.Cuts) {
					end = one.Cuts[stage]
				}
				for _, d := range one.Ranks[rank].Devices {
					for layer := first; layer < end; layer++ {
						if at, held := holds[layer]; held {
							copies = copies || at != site(d)
						} else {
							holds[layer] = site(d)
						}
					}
				}
			}
		}
	}
	switch {
	case stages && copies:
		return "stages and copies"
	case stages:
		return "stages"
	case copies:
		return "copies"
	}
	return "nothing"
}
