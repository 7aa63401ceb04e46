package gandiva_test

import (
	"fmt"
	"os"
	"strconv"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/allocate/gandiva"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/profile/declared"
	"github.com/musterdl/muster/profile/oracle"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule/scheduletest"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

func TestStress(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	worst := 0.0
	sumJct := 0.0
	sumC := 0
	stops := map[plan.ReasonCode]int{}
	for seed := range uint64(n) {
		if s := os.Getenv("SHOW"); s != "" && uint64(atoi(s)) != seed {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 5))
		nodes, devs := 1+r.IntN(4), 1+r.IntN(4)
		c := &cluster.Cluster{Name: "unlike"}
		fast := c.AddModel(cluster.Model{Name: "fast", Memory: 16 << 10, Speed: 1})
		slow := c.AddModel(cluster.Model{Name: "slow", Memory: 16 << 10, Speed: 0.5})
		rack := c.AddRack(cluster.Rack{Name: "rack"})
		tight := r.IntN(2) == 0
		cpu := unit.Milli(64 * unit.Whole)
		if tight {
			cpu = unit.Milli(devs * 4) * unit.Whole
		}
		for i := range nodes {
			m := fast
			if i > 0 && i == nodes-1 {
				m = slow
			}
			c.AddNode(cluster.Node{Name: "n" + strconv.Itoa(i), Rack: rack, Model: m, CPU: cpu, Memory: 64 << 10}, devs)
		}
		var jobs scheduletest.Jobs
		now := unit.Time(0)
		shared := r.IntN(2) == 0
		gap := 1 + r.IntN(300)
		for i := range 1 + r.IntN(25) {
			now = now.Add(unit.Duration(r.IntN(gap)) * unit.Second)
			j := scheduletest.Job{Job: workload.Job{Name: "j" + strconv.Itoa(i), Submit: now, Devices: 1, Share: unit.Whole}}
			j.Gang = int32(1 + r.IntN(devs))
			if shared && r.IntN(4) == 0 {
				j.Gang, j.Share = 1, unit.Milli(1+r.IntN(9))*100
			}
			if r.IntN(8) == 0 {
				j.Models = []string{[]string{"fast", "slow"}[r.IntN(2)]}
				if nodes == 1 {
					j.Models = nil
				}
			}
			if tight {
				j.CPU = unit.Milli(1000 * (1 + r.IntN(6)))
				j.CPU = min(j.CPU, cpu/unit.Milli(j.Gang))
			}
			j.Duration = unit.Duration(1+r.IntN(3000)) * unit.Second
			j.Checkpoint = workload.Checkpoint{OnRequest: true, Load: unit.Minute}
			if r.IntN(2) == 0 {
				j.Checkpoint.Save = 5 * unit.Second
			}
			j.Memory = unit.MiB(r.IntN(9)) << 10
			if j.Gang == 1 && j.Share == unit.Whole && r.IntN(2) == 0 {
				j.Sizes = []int32{1, 2}
				if devs >= 4 {
					j.Sizes = []int32{1, 2, 4}
				}
			}
			jobs = append(jobs, j)
		}
		var est profile.Estimator = oracle.Estimator{}
		if r.IntN(2) == 0 {
			est = declared.Estimator{}
		}
		commits, last := 0, unit.Time(0)
		cfg := scheduletest.JointConfig(c, jobs, gandiva.New(gandiva.Default()), est)
		cfg.Restart = 30 * unit.Second
		if r.IntN(4) == 0 {
			cfg.Breaks = simulated.Breaks{Seed: 7, NodeEvery: unit.Hour, NodeFor: 10 * unit.Minute}
		}
		cfg.Commit = func(v plan.View, c *plan.Commit) {
			commits++
			last = v.Now()
			for _, ch := range c.Changes {
				if ch.Verb == plan.Stop { stops[ch.Reason.Code]++ }
			}
			if os.Getenv("SHOW") != "" && uint64(atoi(os.Getenv("SHOW"))) == seed && commits < 400 {
				fmt.Printf("C%d %s", commits, c.AppendJSON(nil, v))
			}
		}
		o, err := scheduletest.Run(cfg)
		if err != nil {
			fmt.Println("seed", seed, "ERR", err)
			continue
		}
		for _, j := range o.Jobs {
			if j.Outcome.String() != "finished" && j.Outcome.String() != "refused" {
				fmt.Println("seed", seed, j.Name, j.Outcome)
			}
		}
		sumJct += o.AvgJCTSec
		sumC += commits
		perMin := float64(commits) / (float64(last)/60e6 + float64(len(jobs)))
		if perMin > worst {
			worst = perMin
			fmt.Println("seed", seed, "commits", commits, "jobs", len(jobs), "end", unit.Duration(last), "per minute+job", perMin)
		}
	}
	fmt.Println("mean JCT", sumJct/float64(n), "commits", sumC, "stops", stops)
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }
