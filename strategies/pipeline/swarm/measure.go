package swarm

import (
	_ "embed" // for Claim
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/musterdl/muster/mechanism/peers"
	"github.com/musterdl/muster/mechanism/solve"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published of SWARM, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure plays swarms of peers, and holds the shares of an average against the solver.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	r := pipelinetest.Range{}
	dice := rand.New(rand.NewPCG(seed, 2))
	for range 10 {
		shareOfWork(r, dice)
	}
	for range 50 {
		faults(r, dice)
	}
	skew(r)
	if err := shares(r, dice); err != nil {
		return nil, err
	}
	return r, preempted(r, open)
}

// drawn is a swarm of one to three stages, each of two to six peers of drawn speeds.
func drawn(dice *rand.Rand) (s peers.Swarm, totals []float64) {
	s = peers.Swarm{Stages: 1 + dice.IntN(3), Batch: 256, Window: 32, Trainers: 1 + dice.IntN(3), Forward: unit.Second, Jitter: .1,
		Hop: 20 * unit.Millisecond, Deadline: 2 * unit.Minute, End: unit.Never, Seed: dice.Uint64()}
	for stage := range s.Stages {
		total := 0.
		for range 2 + dice.IntN(5) {
			p := peers.Peer{Speed: .25 + 3.75*dice.Float64(), Link: unit.Mbps(50 + dice.IntN(150)), Stage: stage, Until: unit.Never}
			s.Peers, total = append(s.Peers, p), total+p.Speed
		}
		totals = append(totals, total)
	}
	return s, totals
}

// shareOfWork holds what each peer did against its speed. The router begins with no idea of the
// speeds, so that it takes some steps before the first passes weigh nothing.
func shareOfWork(r pipelinetest.Range, dice *rand.Rand) {
	s, totals := drawn(dice)
	s.Steps = 100
	played := peers.Run(s)
	for i, p := range s.Peers {
		r.Note("share", played.Work[i]/(float64(s.Steps*s.Batch)*(1+peers.BackwardWeight)), p.Speed/totals[p.Stage])
	}
}

// faults lets one peer of a swarm go at any time in the first steps, with a word or without.
// What is lost is counted by the peers that average, who do not know what the trainers believe.
func faults(r pipelinetest.Range, dice *rand.Rand) {
	s, _ := drawn(dice)
	s.Steps, s.Batch, s.WeightsKiB = 4, 32, 100_000
	p := &s.Peers[dice.IntN(len(s.Peers))]
	p.Until, p.Silent = unit.Time(1+dice.Int64N(int64(2*unit.Minute))), dice.IntN(2) == 0
	played := peers.Run(s)
	r["lost"] += float64(played.Missing + played.Doubled)
	r["unfinished"] += float64(s.Steps - len(played.Steps))
}

// skew begins with eight peers in the first of three stages and two in each of the others. By
// count a step takes half as long when each stage has four; that the pipeline is filled and
// emptied in each step takes the rest.
func skew(r pipelinetest.Range) {
	s := peers.Swarm{Stages: 3, Batch: 256, Window: 48, Trainers: 1, Forward: unit.Second, Rebalance: 5 * unit.Minute, Steps: 40, End: unit.Never}
	for i := range 12 {
		s.Peers = append(s.Peers, peers.Peer{Speed: 1, Stage: max(0, (i-6)/2), Until: unit.Never})
	}
	played := peers.Run(s)
	r["rebalanced"] = float64(played.Steps[39].Sub(played.Steps[38])) / float64(played.Steps[0])
}

// shares notes the time of the slowest peer over that of the linear program's solution: the
// shares of the peers come from a closed form, in whole parts of a vector, and the solver knows
// nothing of that form.
func shares(r pipelinetest.Range, dice *rand.Rand) error {
	var solver solve.Solver
	defer solver.Close()
	for range 50 {
		links := make([]unit.Mbps, 2+dice.IntN(8))
		for i := range links {
			links[i] = unit.Mbps(1 + dice.IntN(1000))
		}
		var lp solve.Problem
		most := lp.Var(0, solve.Inf, 1)
		var all []solve.Term
		for _, b := range links {
			w := solve.Term{Var: lp.Var(0, 1, 0), Coef: 1}
			all = append(all, w)
			lp.Row(1, solve.Inf, solve.Term{Var: most, Coef: float64(b)}, solve.Term{Var: w.Var, Coef: -float64(len(links) - 2)})
		}
		lp.Row(1, 1, all...)
		best, err := solver.Solve(&lp, solve.Budget{})
		if err != nil {
			return err
		}
		const vector = 1 << 30
		parts := peers.Parts(vector, peers.Shares(links))
		slowest := 0.
		for i, b := range links {
			slowest = max(slowest, (1+float64(len(links)-2)*float64(parts[i])/vector)/float64(b))
		}
		r.Note("averaging", slowest, best.Objective)
	}
	return nil
}

// preempted plays the T4s of a spot market: they come and go as they were seen to, in the
// published setting as far as it is known: slow links, a model of 1.01 billion parameters
// in half precision, in three stages (recalled). Not known are how long a pass takes, how many
// microbatches a step has and how far apart the peers are; what stands here for them is
// ours, and so the figures have no band but that nothing is lost. Every other node goes
// without a word, so that both ways to notice it are played.
func preempted(r pipelinetest.Range, open func(path string) (io.ReadCloser, error)) error {
	const path = "spot/bamboo/g4dn-trace.csv"
	file, err := open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := peers.Swarm{Stages: 3, Batch: 2048, Window: 400, Trainers: 4, Forward: unit.Second, Jitter: .1, Hop: 100 * unit.Millisecond,
		WeightsKiB: 1_010_000_000 / 3 * 2 / 1024, Rebalance: 5 * unit.Minute, Deadline: 10 * unit.Minute, Steps: 1 << 30}
	last := map[string]int{}
	for i, row := range rows {
		ms, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		s.End = unit.Time(ms * 1000)
		if row[1] == "add" {
			last[row[2]] = len(s.Peers)
			s.Peers = append(s.Peers, peers.Peer{Speed: 1, Link: 200, Stage: peers.Anywhere, From: s.End, Until: unit.Never, Silent: i%2 == 0})
		} else {
			s.Peers[last[row[2]]].Until = s.End
		}
	}
	played := peers.Run(s)
	there, did := 0., 0.
	for i, p := range s.Peers {
		there += min(p.Until, s.End).Sub(p.From).Seconds()
		did += played.Work[i]
	}
	r["spot_lost"] = float64(played.Missing + played.Doubled)
	r["spot_use"] = did * s.Forward.Seconds() / there
	r["spot_steps"] = float64(len(played.Steps))
	r["spot_again"] = float64(played.Again)
	r["spot_moves"] = float64(played.Moves)
	return nil
}
