package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce/scenario"
	"github.com/musterdl/muster/run/simulated"
)

func scenarioCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "scenario", GroupID: "try", Short: "Run days of mixed work through all six steps, or one large training through a month of failures"}
	cmd.AddCommand(dayCommand(), largeCommand(), monthCommand(), whichCommand())
	return cmd
}

// dayOptions are what muster scenario day was asked.
type dayOptions struct {
	without, only []string
	factorial     bool
	goal          string
	showing
}

func dayCommand() *cobra.Command {
	var o dayOptions
	s := scenario.Study{Prices: simulated.DefaultPrices()}
	cmd := &cobra.Command{Use: "day", Args: cobra.NoArgs,
		Short: "Run the day with every step at work, with none, and with each left out",
		Long: "Run the busiest day of Helios' Venus, with large models, tuning groups, fine-tunes, services and people who\n" +
			"debug, on 133 x 8 GPUs of three models: every step at work, every step at its null, and each step left out.\n" +
			"A step that is left out should hurt its own metric; one that does not is a finding, and no error. Where the\n" +
			"published data is absent, work of its shape is generated. docs/scenario.md says what is measured.",
		Example: "  muster scenario day\n  muster scenario day --without allocate --seeds 10\n  muster scenario day --factorial --plot effects.svg\n  muster scenario day --goal all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := o.rows()
			if err != nil {
				return err
			}
			if s.Seeds < 1 {
				return misused("--seeds is %d: expected 1 or more", s.Seeds)
			}
			s.Rows, s.Progress = rows, studyBar(o.quiet)
			return o.present(cmd, &s)
		}}
	f := cmd.Flags()
	f.StringSliceVar(&o.without, "without", nil, "leave only this step out, beside the full day; may be given several times, each a run of its own")
	f.StringSliceVar(&o.only, "only", nil, "put all other steps at their null, beside the nulls; may be given several times")
	f.BoolVar(&o.factorial, "factorial", false, "16 ways to put steps at their null: main effects, and effects of two steps in groups")
	f.StringVar(&o.goal, "goal", "throughput", strings.Join(scenario.Goals(), ", ")+", or all of them in one table")
	f.BoolFunc("free", "nothing costs anything but what jobs declare of their checkpoints", func(value string) error {
		free, err := strconv.ParseBool(value)
		if free {
			s.Prices = simulated.Prices{}
		}
		return err
	})
	f.IntVar(&s.Seeds, "seeds", 5, "how often what the trace does not say is drawn")
	f.StringVar(&s.Data, "data", "../shared/data", "folder of the published data")
	f.IntVar(&s.Workers, "parallel", 0, "days at once; 0 is one per core")
	o.flags(f, "the effects")
	cmd.MarkFlagsMutuallyExclusive("without", "only", "factorial")
	return cmd
}

// study is what a scenario runs, and can show.
type study interface {
	Run() error
	Plot(w io.Writer) error
	Write(w io.Writer, colour bool) error
}

// showing is how a study is shown.
type showing struct {
	plot          string
	asJSON, quiet bool
}

// flags are those by which somebody says so, where a plot draws this.
func (o *showing) flags(f *pflag.FlagSet, drawn string) {
	f.StringVar(&o.plot, "plot", "", "draw "+drawn+" to this file, as SVG")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	f.BoolVar(&o.quiet, "quiet", false, "no progress bar")
}

// present runs a study and shows it.
func (o *showing) present(cmd *cobra.Command, s study) error {
	if err := s.Run(); err != nil {
		return err
	}
	if o.plot != "" {
		if err := toFile(o.plot, s.Plot); err != nil {
			return err
		}
	}
	if o.asJSON {
		return printJSON(cmd.OutOrStdout(), s)
	}
	return s.Write(cmd.OutOrStdout(), colour())
}

// rows are the compositions that are asked for.
func (o *dayOptions) rows() (rows []scenario.Row, err error) {
	steps := slices.Concat(o.without, o.only)
	for _, step := range steps {
		if !slices.Contains(catalogue.Steps, step) && !(step == scenario.Sharing && len(o.only) == 0) {
			return nil, misused("there is no step %q: the steps are %s; %s can be left out too", step, strings.Join(catalogue.Steps, ", "), scenario.Sharing)
		}
	}
	if o.goal == "all" {
		if len(steps) > 0 || o.factorial || o.plot != "" {
			return nil, misused("--goal all compares full compositions: it does not go with --without, --only, --factorial or --plot")
		}
		for _, g := range scenario.Goals() {
			rows = append(rows, scenario.Full(g))
		}
		return rows, nil
	}
	if !slices.Contains(scenario.Goals(), o.goal) {
		return nil, misused("there is no goal %q: expected one of %s, or all", o.goal, strings.Join(scenario.Goals(), ", "))
	}
	if o.factorial {
		return scenario.Factorial(o.goal), nil
	}
	rows = []scenario.Row{scenario.Full(o.goal), scenario.Nulls(o.goal)}
	for _, step := range o.only {
		rows = append(rows, scenario.Only(o.goal, step))
	}
	if len(steps) == 0 {
		o.without = catalogue.Steps
	}
	for _, step := range o.without {
		rows = append(rows, scenario.Without(o.goal, step))
	}
	return rows, nil
}

// studyBar redraws one line; nil where nobody would see it.
func studyBar(quiet bool) func(done, all int) {
	if quiet || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return func(done, all int) {
		if done == all {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
			return
		}
		fmt.Fprintf(os.Stderr, "\r%d of %d runs done \x1b[K", done, all)
	}
}
