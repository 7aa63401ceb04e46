package catalogue

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// challenge is one of the fourteen into which the survey (Resource Allocation and
// Workload Scheduling for Large-Scale Distributed Deep Learning, 2024) orders its
// systems.
type challenge struct {
	id, title string
	systems   []surveyed
}

// surveyed are systems that it files together, with what they decide about and what
// they are mostly after. Which goal a system is under is our reading.
type surveyed struct {
	granularity, goal string
	names             []string
}

// goals are the columns of the map.
var goals = []string{"throughput", "cost", "deadline", "latency", "energy"}

// survey is its map. Families of ours that it does not have answer a challenge where
// their description says so.
var survey = []challenge{
	{"C1", "profile representative workloads, so that the profile is true where the job runs", []surveyed{
		{"job", "throughput", []string{"Gandiva", "AntMan", "FGD", "TGS", "MuxFlow"}},
		{"kernel", "latency", []string{"Orion"}}}},
	{"C2", "switch the context of a device at little cost: models and data out and in", []surveyed{
		{"job", "throughput", []string{"Salus"}},
		{"job", "latency", []string{"PipeSwitch", "DistMind"}},
		{"kernel", "throughput", []string{"G-Safe"}}}},
	{"C3", "make the estimated intermediate goal lead to the real one", []surveyed{
		{"job", "throughput", []string{"Optimus", "Harmony", "Horus", "GPARS"}}}},
	{"C4", "when and how much to grow or shrink elastic jobs", []surveyed{
		{"job", "throughput", []string{"Pollux", "Zico", "AFS", "EasyScale", "FlowCon"}}}},
	{"C5", "use devices well for batches of similar tuning jobs", []surveyed{
		{"trial group", "throughput", []string{"Fluid", "Titan", "DISC", "Hydro"}}}},
	{"C6", "allocate bandwidth with knowledge of the workload", []surveyed{
		{"job", "throughput", []string{"Liquid"}},
		{"gradient block", "throughput", []string{"Prophet"}},
		{"coflow", "throughput", []string{"Parrot"}}}},
	{"C7", "keep the objectives of unlike inference services within given resources", []surveyed{
		{"request, spatial", "latency", []string{"GSLICE", "iGniter", "SLO-aware"}},
		{"request, temporal", "latency", []string{"AlpaServe", "Nexus"}},
		{"request, temporal", "cost", []string{"INFaaS"}},
		{"request, hybrid", "cost", []string{"Cocktail"}},
		{"request, hybrid", "latency", []string{"Gpulet", "FaST-GShare"}}}},
	{"C8", "schedule jobs online, over unlike or hidden resources, and in time", []surveyed{
		{"job", "throughput", []string{"Tiresias", "OSDL", "Heet", "FfDL", "Philly", "E-LAS", "CASSINI", "Liu et al.", "AutoSched", "SMD", "Sched2", "MLFS", "Yang et al."}}}},
	{"C9", "balance pipeline stages and order their work: less stall, less memory", []surveyed{
		{"pipeline", "throughput", []string{"GPipe", "PipeDream", "AutoPipe", "HetPipe", "Piper", "MG-WFBP", "DeAR", "ScheMoE", "Chimera", "OOO BackProp", "Hanayo", "MixPipe", "AdaPipe"}}}},
	{"C10", "order flows: more bandwidth used, less latency, less congestion", []surveyed{
		{"job", "throughput", []string{"JPAS", "Tereis"}},
		{"coflow", "throughput", []string{"Geryon", "Beamer"}},
		{"packet", "throughput", []string{"TensorExpress", "Mercury"}}}},
	{"C11", "energy, money and throughput together, for providers and users", []surveyed{
		{"job", "cost", []string{"Cynthia", "FC2", "Jahani et al."}},
		{"job", "energy", []string{"GPOEO", "STS"}}}},
	{"C12", "estimate completion so that deadlines can be promised", []surveyed{
		{"job", "deadline", []string{"GENIE", "Chronus", "Hydra", "UniSched"}}}},
	{"C13", "profile inference jobs and schedule them at low latency and cost", []surveyed{
		{"request", "latency", []string{"Sniper", "Ace-Sniper", "AP2", "HexGen"}},
		{"request", "cost", []string{"AutoDeep"}}}},
	{"C14", "raise the throughput of many unlike inference jobs", []surveyed{
		{"request", "throughput", []string{"Rafiki", "Nanily", "RRL", "IRIS", "Morphling"}}}},
}

// place is where the map has a system.
type place struct{ challenge, granularity, goal string }

// places are those of an entry: what it says itself, else where the survey has its
// system.
func (e Entry) places() []place {
	var list []place
	for _, c := range survey {
		known := place{challenge: c.id, granularity: "job"}
		named := slices.Contains(e.Challenges, c.id)
		if named {
			known.granularity = c.systems[0].granularity
		}
		for _, s := range c.systems {
			if slices.Contains(s.names, e.System) {
				known.granularity, known.goal, named = s.granularity, s.goal, true
			}
		}
		if !named {
			continue
		}
		if e.Granularity != "" {
			known.granularity = e.Granularity
		}
		if e.Goal != "" {
			known.goal = e.Goal
		}
		list = append(list, known)
	}
	return list
}

// Selection narrows a list of strategies; what is empty selects all.
type Selection struct{ Challenge, Goal, Step string }

// Check says what of a selection does not exist.
func (s Selection) Check() error {
	ids := make([]string, len(survey))
	for i := range survey {
		ids[i] = survey[i].id
	}
	for _, c := range []struct {
		what, value string
		of          []string
	}{{"challenge", s.Challenge, ids}, {"goal", s.Goal, goals}, {"step", s.Step, Steps}} {
		if c.value != "" && !slices.Contains(c.of, c.value) {
			return fmt.Errorf("there is no %s %q: choose one of %s", c.what, c.value, strings.Join(c.of, ", "))
		}
	}
	return nil
}

func (s Selection) takes(e Entry) bool {
	return (s.Step == "" || s.Step == e.Step) && (s.Goal == "" || s.Goal == e.Goal) &&
		(s.Challenge == "" || slices.ContainsFunc(e.places(), func(p place) bool { return p.challenge == s.Challenge }))
}

// have reports whether the catalogue has a strategy of a system.
func have(system string) bool {
	for e := range every {
		if e.System == system {
			return true
		}
	}
	return false
}

// Missing are the systems that the survey files under a challenge and a goal and that
// nothing here comes from.
func (s Selection) Missing() []string {
	var names []string
	for _, c := range survey {
		for _, g := range c.systems {
			if s.Challenge != c.id || s.Goal != "" && s.Goal != g.goal {
				continue
			}
			for _, n := range g.names {
				if !have(n) {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

// writeMap prints the survey's map as a table: what answers which challenge at which
// granularity, for which goal.
func writeMap(out *bufio.Writer) {
	fmt.Fprint(out, "\n## The survey's map\n\n"+
		"The survey *Resource Allocation and Workload Scheduling for Large-Scale Distributed Deep Learning* (2024) orders its systems by fourteen\n"+
		"challenges. `Code` is a strategy here; *italics* are a system of the survey that is not here yet. `muster strategies --challenge C6 --goal\n"+
		"throughput` selects by this map. Which goal a system stands under is our reading.\n\n| Challenge | Granularity |")
	for _, g := range goals {
		fmt.Fprintf(out, " %s |", g)
	}
	fmt.Fprint(out, "\n|---|---|---|---|---|---|---|\n")
	cells := map[place][]string{}
	rows := map[string][]string{} // granularities by challenge
	add := func(p place, text string) {
		cells[p] = append(cells[p], text)
		if !slices.Contains(rows[p.challenge], p.granularity) {
			rows[p.challenge] = append(rows[p.challenge], p.granularity)
		}
	}
	for e := range every {
		for _, p := range e.places() {
			add(p, "`"+e.Name+"`")
		}
	}
	for _, c := range survey {
		for _, s := range c.systems {
			for _, n := range s.names {
				if !have(n) {
					add(place{c.id, s.granularity, s.goal}, "*"+n+"*")
				}
			}
		}
	}
	for _, c := range survey {
		slices.Sort(rows[c.id])
		for i, granularity := range rows[c.id] {
			title := ""
			if i == 0 {
				title = c.id + ": " + c.title
			}
			fmt.Fprintf(out, "| %s | %s |", title, granularity)
			for _, g := range goals {
				fmt.Fprintf(out, " %s |", strings.Join(cells[place{c.id, granularity, g}], ", "))
			}
			fmt.Fprintln(out)
		}
	}
}

// writeMissing prints what a selection by challenge does not find here.
func (s Selection) writeMissing(w io.Writer) error {
	if names := s.Missing(); len(names) > 0 {
		_, err := fmt.Fprintf(w, "\nin the survey and not here: %s\n", strings.Join(names, ", "))
		return err
	}
	return nil
}
