package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
)

// planner is what the plans of a job's pipeline are made for.
type planner struct {
	strategy            string
	ranks, microbatches int32
	params              pipeline.Params
	exports             []string
	asJSON              bool
}

func planCommand() *cobra.Command {
	var p planner
	cmd := &cobra.Command{Use: "plan FILE", GroupID: "try", Args: cobra.ExactArgs(1), Short: "Plan a job's pipeline: where to cut it, and who does what when",
		Example: "  muster plan job.yaml --memory 80GiB --bandwidth 25Gbps\n  muster plan job.yaml --strategy dp-cut+zb-h1 --export csv:plan.csv --export plan:plan.json",
		Long: "Cut the layers of a job's pipeline and order its passes in each way that the catalogue knows, run one iteration of each\n" +
			"through the task graph, and rank them by its time: those that fit the memory first. FILE is a job as submit takes it,\n" +
			"with a pipeline of measured layers; of several jobs in it, the first with one. Nothing is submitted.",
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd.OutOrStdout(), args[0]) }}
	fl := cmd.Flags()
	fl.StringVar(&p.strategy, "strategy", "auto", "a cut, a sequence or both, as in dp-cut+1f1b; auto is all of them")
	fl.Int32Var(&p.ranks, "ranks", 0, "devices in a row (0: the stages that the job asks for)")
	fl.Int32Var(&p.microbatches, "microbatches", 0, "parts of a batch (0: as the job says)")
	for _, q := range []struct {
		value      pflag.Value
		name, help string
	}{
		{quantityFlag[unit.Mbps]{&p.params.Bandwidth, "bandwidth", unit.ParseMbps}, "bandwidth", "of the link between two devices, each way, such as 25Gbps (none: endless)"},
		{durationFlag(&p.params.Latency), "latency", "of such a link, such as 20us"},
		{quantityFlag[unit.MiB]{&p.params.Memory, "memory", unit.ParseMiB}, "memory", "of a device, such as 80GiB (none: endless)"},
	} {
		fl.Var(q.value, q.name, q.help)
	}
	fl.Int64Var(&p.params.ParamCopies, "param-copies", 4, "how many times a device holds its parameters: 4 for weights, gradients and both moments of Adam")
	fl.StringArrayVar(&p.exports, "export", nil, "write the best plan: plan:FILE as MUSTER_PLAN names it, csv:FILE or comms:FILE as PyTorch loads it, perfetto:FILE as ui.perfetto.dev shows it")
	fl.BoolVar(&p.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (p *planner) run(w io.Writer, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a job: %w", err)
	}
	jobs, err := spec.Jobs(file, data)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(jobs, func(j workload.Job) bool { return j.Pipeline.Stages > 0 })
	if i < 0 {
		return misused("%s: no job has a pipeline: expected stages, microbatches and layers with their measured times", file)
	}
	request, params := jobs[i].Pipeline, p.params
	request.Stages, request.Microbatches = cmp.Or(p.ranks, request.Stages), cmp.Or(p.microbatches, request.Microbatches)
	pairs, err := pairsOf(p.strategy)
	if err != nil {
		return err
	}
	r := ranking{Job: jobs[i].Name, Ranks: request.Stages, Microbatches: request.Microbatches, Layers: len(request.Layers)}
	for _, c := range pairs {
		one, err := build(c, request, params)
		if err != nil {
			return err
		}
		r.Plans = append(r.Plans, one)
	}
	r.rank()
	best := &r.Plans[0]
	if err := p.export(best, request.Layers); err != nil {
		return err
	}
	if best.StepSec > 0 && params.Bandwidth > 0 {
		params.Bandwidth, params.Memory = max(1, params.Bandwidth/2), 0
		if again, why := pipeline.Simulate(request.Layers, best.made, params); why == "" {
			r.HalfBandwidthSec = again.Iteration.Seconds()
		}
	}
	if p.asJSON {
		err = json.NewEncoder(w).Encode(r)
	} else {
		err = r.write(w)
	}
	if err == nil && best.StepSec == 0 {
		return exit(1)
	}
	return err
}

// pairsOf are the compositions of a cut and a sequence that a text names; what it does not name
// is every one there is.
func pairsOf(text string) (all []catalogue.Composition, err error) {
	cuts, sequences := catalogue.Names(pipeline.CutPart), catalogue.Names(pipeline.SequencePart)
	expected := fmt.Sprintf("expected a cut (%s), a sequence (%s), both joined by +, or auto", strings.Join(cuts, ", "), strings.Join(sequences, ", "))
	if text != "auto" {
		for name := range strings.SplitSeq(text, "+") {
			switch {
			case slices.Contains(cuts, name):
				cuts = []string{name}
			case slices.Contains(sequences, name):
				sequences = []string{name}
			default:
				return nil, misused("--strategy %s: %s", text, expected)
			}
		}
	}
	for _, cut := range cuts {
		for _, sequence := range sequences {
			c, err := catalogue.Parse("--strategy", "cut: "+cut+"\nsequence: "+sequence+"\n")
			if err != nil {
				return nil, err
			}
			c.Name = cut + "+" + sequence
			all = append(all, c)
		}
	}
	return all, nil
}
