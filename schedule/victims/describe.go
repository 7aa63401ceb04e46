package victims

import "github.com/musterdl/muster/model/strategy"

// CheapestDescription, NewestDescription and LowestRankDescription are what the three
// choosers say about themselves.
var (
	CheapestDescription = strategy.Description{
		Name: "cheapest", Part: VictimsPart, Status: "after",
		Source: "ours; the price is the lost work that CheckFreq (FAST 2021) and Gandiva (OSDI 2018) keep small by when to save",
		Idea:   "those whose displacement loses the least device time make way, and of equals the fewest",
		Goal:   "throughput", Needs: "when a run last saved", Live: "as simulated",
	}
	NewestDescription = strategy.Description{
		Name: "newest", Part: VictimsPart, Status: "null",
		Source: "folklore: what most schedulers do", Idea: "those that started last make way first",
		Goal: "throughput", Needs: "nothing", Live: "as simulated",
	}
	LowestRankDescription = strategy.Description{
		Name: "lowest-rank", Part: VictimsPart, Status: "read",
		Source: "Tiresias (Gu et al., NSDI 2019) and other preempting orders", Idea: "those that the order ranks last make way first",
		Goal: "throughput", Needs: "nothing", Live: "as simulated",
	}
)
