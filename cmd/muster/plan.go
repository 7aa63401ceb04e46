package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/planning"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/parallel"
)

// planner is what plans are made for.
type planner struct {
	model, cluster, strategy string
	batch                    int
	limits                   parallel.Limits
	bandwidth                unit.Mbps
	latency                  unit.Duration
	memory, reserve          unit.MiB
	overlap                  bool
	exports                  []string
	html, gradients, tokens  string
	outlook                  planning.Outlook
	budget                   unit.Duration
	quiet, asJSON            bool
}

func planCommand() *cobra.Command {
	p := planner{outlook: planning.Usual, budget: 2 * unit.Minute, reserve: -1}
	cmd := &cobra.Command{Use: "plan [JOB] [--model PRESET|FILE] [--cluster PRESET|FILE]", GroupID: "try", Args: cobra.MaximumNArgs(1),
		Short: "Plan the training of a large model: how it is split, who does what when",
		Example: "  muster plan --model 1t --cluster a100:384x8 --batch 3072\n  muster plan --model llama-3-70b --cluster h100:16x8 --export megatron:args.txt --html plan.html\n" +
			"  muster plan job.yaml --memory 80GiB --strategy dp-cut+zb-h1 --export csv:plan.csv",
		Long: "Spread a model over devices by each planner that the catalogue knows, simulate a step of what they choose, and rank it, with\n" +
			"what else could have been chosen and why that lost. A model is a published one, a file with the shape of a transformer or\n" +
			"with measured layers, or JOB: a file as submit takes it, whose pipeline is then planned for its own stages, each cut and\n" +
			"order by itself, unless there is a cluster. Nothing is submitted. docs/plan.md says what is simulated and what is left out.",
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd.OutOrStdout(), args) }}
	fl := cmd.Flags()
	fl.StringVar(&p.model, "model", "", "a published model such as gpt-3 or llama-3-70b, or a file")
	fl.StringVar(&p.cluster, "cluster", "", "nodes and devices of each, such as a100:384x8, at two sites, such as a100:8x8+8x8, or a file as simulate takes it")
	fl.StringVar(&p.strategy, "strategy", "auto", "a planner or a cut, a sequence, or both joined by +, as in dp-cut+1f1b; auto is all of them")
	fl.IntVar(&p.batch, "batch", 0, "samples of a step, over all copies (0: as the model's file or the job says, else one for each device)")
	fl.IntVar(&p.limits.Tensor, "tp", 0, "devices that share each layer (0: any)")
	fl.IntVar(&p.limits.Ranks, "pp", 0, "ranks of a pipeline (0: any, or the stages that the job asks for)")
	fl.IntVar(&p.limits.Copies, "dp", 0, "copies of the model (0: any)")
	fl.IntVar(&p.outlook.Spares, "spares", p.outlook.Spares, "idle nodes that could take the place of a lost one")
	fl.Float64Var(&p.outlook.Sooner, "sooner", p.outlook.Sooner, "how much sooner counts against cheaper where sites are chosen: 0 is cost alone, 1 time alone")
	fl.IntVar(&p.limits.Experts, "ep", 0, "copies over which the experts of a mixture are spread (0: any)")
	fl.StringVar(&p.tokens, "experts", overlap.ExpertsPart.Null, "in how many chunks tokens go to experts that are spread: "+strings.Join(catalogue.Names(overlap.ExpertsPart), ", "))
	fl.StringVar(&p.gradients, "gradients", overlap.GradientsPart.Null, "how replicas exchange gradients: "+strings.Join(catalogue.Names(overlap.GradientsPart), ", "))
	for _, q := range []struct {
		value      pflag.Value
		name, help string
	}{
		{quantityFlag[unit.Mbps]{&p.bandwidth, "bandwidth", unit.ParseMbps}, "bandwidth", "out of a node, each way, such as 25Gbps (none: as the cluster says, else endless)"},
		{durationFlag(&p.latency), "latency", "from node to node, such as 20us"},
		{quantityFlag[unit.MiB]{&p.memory, "memory", unit.ParseMiB}, "memory", "of a device, such as 80GiB (none: as the cluster says, else endless)"},
		{quantityFlag[unit.MiB]{&p.reserve, "memory", unit.ParseMiB}, "reserve", "of a device's memory that no plan counts on, as programs hold it for themselves, such as 2GiB (none: 4.5 % of it)"},
		{durationFlag(&p.budget), "budget", "to plan for at most: then the best that was found is told (0s: until all has been looked at)"},
		{durationFlag(&p.outlook.Repair), "repair", "until a lost node is back, in the mean"},
		{durationFlag(&p.outlook.Since), "since-checkpoint", "work that a lost node takes with it where only a checkpoint helps"},
		{durationFlag(&p.outlook.Left), "left", "time that the run still takes"},
		{durationFlag(&p.outlook.Start), "start", "until processes have begun again and found each other"},
	} {
		fl.Var(q.value, q.name, q.help)
	}
	fl.BoolVar(&p.overlap, "overlap-transfers", false, "of a model by its shape, send between stages beside the passes; without, both ends wait, as in the programs whose steps were measured")
	fl.Lookup("reserve").DefValue = ""
	fl.StringArrayVar(&p.exports, "export", nil, "write the best plan as KIND:FILE; the kinds are "+kindsText())
	fl.StringVar(&p.html, "html", "", "write a page with the table, the step over time, memory and what a lost node costs to this file")
	fl.BoolVar(&p.quiet, "quiet", false, "do not say which planner is asked")
	fl.BoolVar(&p.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (p *planner) run(w io.Writer, args []string) error {
	task, err := p.task(args)
	planners, also := p.planners(task)
	writers, last := p.writers()
	if err := errors.Join(err, also, last); err != nil {
		return err
	}
	if wrong := planning.Check(task); len(wrong) > 0 {
		all := make([]error, len(wrong))
		for i := range wrong {
			all[i] = wrong[i]
		}
		return usage{errors.Join(all...)}
	}
	p.watch(task)
	c := planning.Compare(task, planners)
	c.Cluster = p.cluster
	if err := write(c, writers); err != nil {
		return err
	}
	if err := p.page(c); err != nil {
		return err
	}
	if p.asJSON {
		err = json.NewEncoder(w).Encode(c)
	} else {
		err = writeTable(w, c)
	}
	if err == nil && c.Best() == nil {
		return exit(1)
	}
	return err
}

// watch ends a task when its time is over, and tells how far it is where somebody may look.
func (p *planner) watch(t *planning.Task) {
	began := time.Now()
	if p.budget > 0 {
		t.Over = func() bool { return time.Since(began) >= time.Duration(p.budget)*time.Microsecond }
	}
	if !p.quiet && term.IsTerminal(int(os.Stderr.Fd())) {
		t.Progress = func(name string, done, all int) {
			if done == all {
				fmt.Fprint(os.Stderr, "\r\x1b[K")
				return
			}
			fmt.Fprintf(os.Stderr, "\r%d of %d planners asked after %.0f s, now %s \x1b[K", done, all, time.Since(began).Seconds(), name)
		}
	}
}

// writeTable shows a comparison.
func writeTable(w io.Writer, c *planning.Comparison) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s: %d layers on %d devices, batch %d\n", cmp.Or(c.Model, "the model"), c.Layers, c.Devices, c.Batch)
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	live := c.Task().Limits.Stages // only of such plans it is known whether processes go by them
	head, also := "PLAN\tSTEP S\tMFU %\tBUBBLE %\tPEAK GIB\t", ""
	if live {
		head += "LIVE\t"
	} else if c.Sites != nil {
		head += "CROSSES SITES\t"
	}
	fmt.Fprintln(t, head+"LOST BECAUSE")
	for i := range c.Rows {
		row := &c.Rows[i]
		if also = ""; c.Sites != nil {
			also = cmp.Or(row.Crosses, "-") + "\t"
		}
		if live {
			switch {
			case row.SimulatedOnly != "":
				also = "simulated\t"
			case row.StepSec > 0:
				also = "yes\t"
			default:
				also = "-\t"
			}
		}
		for _, cell := range cells(row) {
			fmt.Fprint(t, cell, "\t")
		}
		fmt.Fprintln(t, also+cmp.Or(row.Lost, "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if c.Unfinished {
		fmt.Fprintln(&text, "the time for planning was over before all had been looked at: --budget gives it more")
	}
	for _, note := range notes(c) {
		fmt.Fprintln(&text, note)
	}
	writeSensitivity(&text, c)
	_, err := w.Write(text.Bytes())
	return err
}

// notes are what people should know of the figures: how they compare with measured ones, and which plans leave programs too little.
func notes(c *planning.Comparison) (all []string) {
	if slices.ContainsFunc(c.Rows, func(r planning.Row) bool { return r.InReserve }) {
		all = append(all, "*: leaves less than programs usually hold of a device for themselves, and may not start")
	}
	if e := c.Experience; e != nil {
		all = append(all, fmt.Sprintf("measured steps on %s took %.2f to %.2f of what is predicted here (%d steps, docs/plan.md)", e.Device, e.Low, e.High, e.Steps))
	} else if isShape(c.Task().Model) {
		all = append(all, "no measured step on such devices is known: how far these figures are off is not known either (docs/plan.md)")
	}
	return all
}

// writeSensitivity says what slower links and a lost node would do to the best, in one line, and
// then how else the run could go on.
func writeSensitivity(text *bytes.Buffer, c *planning.Comparison) {
	var facts []string
	if c.HalfBandwidthSec > 0 {
		facts = append(facts, fmt.Sprintf("half the bandwidth: %.4g s", c.HalfBandwidthSec))
	}
	if c.HalfSitesSec > 0 {
		facts = append(facts, fmt.Sprintf("half of it between sites: %.4g s", c.HalfSitesSec))
	}
	if c.Lost != nil {
		least := &c.Lost.Reactions[0]
		facts = append(facts, fmt.Sprintf("a lost node: %s, %s s", least.Way, figure(least.PauseSec+least.RedoSec)))
	}
	if len(facts) > 0 {
		fmt.Fprintln(text, strings.Join(facts, "; "))
	}
	if c.Sites != nil {
		writePlaces(text, c.Sites)
	}
	if c.Lost == nil {
		return
	}
	t := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "A LOST NODE\tPAUSE S\tREDO S\tSTEP S\tDEVICE-S\tPLAN\tCANNOT BECAUSE")
	for i := range c.Lost.Reactions {
		fmt.Fprintln(t, strings.Join(reactionCells(&c.Lost.Reactions[i], "-"), "\t"))
	}
	t.Flush() // to a buffer
	fmt.Fprintln(text, "with "+lossText(c.Lost))
}

// writePlaces shows where one pipeline could be trained.
func writePlaces(text *bytes.Buffer, p *planning.Places) {
	if p.Chosen == nil {
		fmt.Fprintln(text, "one pipeline over sites: "+p.Why)
		return
	}
	t := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "ONE PIPELINE ON\tTIME\t%s\tCHOSEN\n", strings.ToUpper(p.CostIn))
	for _, row := range placeRows(p, "-") {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush() // to a buffer
	fmt.Fprintln(text, "with "+placesText(p))
}

// placeRows are the places as people read them; the chosen one is added where a dearer one is as good.
func placeRows(p *planning.Places, none string) (rows [][]string) {
	all := p.Best
	if !slices.Contains(all, *p.Chosen) {
		all = append(slices.Clone(all), *p.Chosen)
	}
	for _, one := range all {
		chosen := none
		if one == *p.Chosen {
			chosen = "yes"
		}
		rows = append(rows, []string{one.Stages, unit.Seconds(one.TimeSec).String(), figure(one.Cost), chosen})
	}
	return rows
}

// placesText says what the places go by.
func placesText(p *planning.Places) string {
	return fmt.Sprintf("a node for each stage, %.0f steps and the weights at %s; %d of %d places simulated", p.Steps, p.Home, p.Asked, p.Of)
}

// lossText says what prices go by.
func lossText(l *planning.Loss) string {
	text := fmt.Sprintf("%d devices away for %v, %d spare nodes, %v of work since a checkpoint, %v left", l.Devices, unit.Seconds(l.RepairSec), l.SpareNodes, unit.Seconds(l.SinceSec), unit.Seconds(l.LeftSec))
	if l.NotAsked != "" {
		text += "; " + l.NotAsked
	}
	return text
}

// reactionCells are those of a way to go on as people read them.
func reactionCells(r *planning.Reaction, none string) []string {
	all := []string{r.Way, none, none, none, none, none, cmp.Or(r.Why, none)}
	if r.Why == "" {
		all[1], all[2], all[3], all[4], all[5] = figure(r.PauseSec), figure(r.RedoSec), figure(r.StepSec), figure(r.PriceDeviceSec), r.Plan
	}
	return all
}

// figure is one with four digits, or with all of them where it has more before the point.
func figure(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// cells are the figures of a row as people read them.
func cells(row *planning.Row) []string {
	all := []string{row.Plan, "-", "-", "-", "-"}
	if row.StepSec > 0 {
		all[1], all[3] = fmt.Sprintf("%.4g", row.StepSec), fmt.Sprintf("%.1f", row.BubblePct)
	}
	if row.MFUPct > 0 {
		all[2] = fmt.Sprintf("%.1f", row.MFUPct)
	}
	if row.PeakMiB > 0 {
		all[4] = peakText(row)
	}
	return all
}

// peakText is the fullest device's memory and what it has, in GiB.
func peakText(row *planning.Row) string {
	has := row.DeviceMiB / 1024
	digits := slices.Max([]int{0, min(2, 3-len(fmt.Sprint(int(row.PeakMiB/1024))))})
	text := fmt.Sprintf("%.*f", digits, row.PeakMiB/1024)
	if has > 0 {
		text += fmt.Sprintf(" / %.4g", has)
	}
	if row.InReserve {
		text += " *"
	}
	return text
}
