package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
)

func traceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "trace", GroupID: "try", Short: "Look at traces of jobs and convert them"}
	cmd.AddCommand(traceImportCommand(), traceStatsCommand(), traceConvertCommand(), traceKindsCommand())
	return cmd
}

func traceFlags(f *pflag.FlagSet, o *trace.Options) {
	f.Float64Var(&o.Load, "load", 0, "rescale arrivals to this offered load on --devices; 0 leaves them as they are")
	f.IntVar(&o.Devices, "devices", 0, "the size of the cluster that load speaks of; 0 is a generator's own")
	f.IntVar(&o.Limit, "limit", 0, "only the first so many jobs; 0 is all")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of a generator")
}

// traceSummary is what stats prints, as text and as JSON.
type traceSummary struct {
	Trace       string      `json:"trace"`
	Jobs        int         `json:"jobs"`
	CPUOnly     int         `json:"cpu_only"`
	Fractional  int         `json:"fractional"`
	Tenants     int         `json:"tenants"`
	Estimates   int         `json:"estimates"`
	Deadlines   int         `json:"deadlines"`
	Unknown     int         `json:"unknown_durations"`
	SpanSec     float64     `json:"span_s"`
	DeviceHours float64     `json:"device_hours"`
	MeanSec     float64     `json:"mean_duration_s"`
	P50Sec      float64     `json:"p50_duration_s"`
	P95Sec      float64     `json:"p95_duration_s"`
	P99Sec      float64     `json:"p99_duration_s"`
	MaxSec      float64     `json:"max_duration_s"`
	Devices     int         `json:"devices"`
	OfferedLoad float64     `json:"offered_load"`
	Gangs       []gangCount `json:"gangs"`
}

type gangCount struct {
	Devices float64 `json:"devices"`
	Jobs    int     `json:"jobs"`
}

func traceStatsCommand() *cobra.Command {
	var o trace.Options
	var asJSON bool
	cmd := &cobra.Command{Use: "stats REF", Args: cobra.ExactArgs(1),
		Short:   "Summarise a trace: jobs, sizes, durations, load",
		Example: "  muster trace stats helios:../shared/data/helios --devices 592\n  muster trace stats 'gen:philly?jobs=1000' --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := summarise(args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			return s.write(cmd.OutOrStdout())
		}}
	traceFlags(cmd.Flags(), &o)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func summarise(ref string, o trace.Options) (traceSummary, error) {
	r, err := trace.Open(ref, o)
	if err != nil {
		return traceSummary{}, err
	}
	defer r.Close()
	st, err := trace.Summarise(r)
	if err != nil {
		return traceSummary{}, err
	}
	s := traceSummary{Trace: ref, Jobs: st.Jobs, CPUOnly: st.CPUOnly, Fractional: st.Fractional, Tenants: st.Tenants,
		Estimates: st.Estimates, Deadlines: st.Deadlines, Unknown: st.Unknown, SpanSec: st.Span.Seconds(), DeviceHours: st.DeviceHours,
		MeanSec: st.Mean.Seconds(), P50Sec: st.P50.Seconds(), P95Sec: st.P95.Seconds(), P99Sec: st.P99.Seconds(), MaxSec: st.Max.Seconds(),
		Devices: o.Devices, OfferedLoad: st.Load(o.Devices)}
	for _, g := range st.Gangs {
		s.Gangs = append(s.Gangs, gangCount{float64(g.Devices) / float64(unit.Whole), g.Jobs})
	}
	return s, nil
}

func (s *traceSummary) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	span := func(sec float64) unit.Duration { return unit.Seconds(sec) }
	fmt.Fprintf(t, "trace\t%s\n", s.Trace)
	fmt.Fprintf(t, "jobs\t%d\n", s.Jobs)
	for _, p := range []struct {
		name string
		n    int
	}{{"without devices", s.CPUOnly}, {"on part of a device", s.Fractional}, {"with a declared run time", s.Estimates},
		{"with a deadline", s.Deadlines}, {"of unknown duration", s.Unknown}, {"tenants", s.Tenants}} {
		if p.n > 0 {
			fmt.Fprintf(t, "%s\t%d\n", p.name, p.n)
		}
	}
	fmt.Fprintf(t, "first to last submission\t%s\n", span(s.SpanSec))
	fmt.Fprintf(t, "work\t%.0f device-hours\n", s.DeviceHours)
	fmt.Fprintf(t, "mean duration\t%s\n", span(s.MeanSec))
	fmt.Fprintf(t, "p50, p95, p99, longest\t%s, %s, %s, %s\n", span(s.P50Sec), span(s.P95Sec), span(s.P99Sec), span(s.MaxSec))
	if s.Devices > 0 {
		fmt.Fprintf(t, "offered load on %d devices\t%.1f%%\n", s.Devices, s.OfferedLoad*100)
	}
	for _, g := range s.Gangs {
		fmt.Fprintf(t, "on %g devices\t%d\t%.1f%%\n", g.Devices, g.Jobs, 100*float64(g.Jobs)/float64(s.Jobs))
	}
	return t.Flush()
}

func traceConvertCommand() *cobra.Command {
	var o trace.Options
	var to string
	cmd := &cobra.Command{Use: "convert REF --to FILE", Args: cobra.ExactArgs(1),
		Short:   "Write a trace in our own format, as CSV or JSON lines",
		Example: "  muster trace convert pai:../shared/data/pai2020 --to pai.jsonl.gz\n  muster trace convert 'gen:rw-a?estimate=noisy' --seed 7 --to work.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := convert(args[0], o, to)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d jobs in %s; use it as muster:%s\n", n, to, to)
			return err
		}}
	traceFlags(cmd.Flags(), &o)
	cmd.Flags().StringVar(&to, "to", "", "the file to write: *.csv, *.jsonl, or those with .gz")
	cobra.CheckErr(cmd.MarkFlagRequired("to"))
	return cmd
}

func convert(ref string, o trace.Options, to string) (int, error) {
	r, err := trace.Open(ref, o)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return writeTrace(r, ref, to)
}

// writeTrace writes beside the file and renames, so that a mistake in the trace leaves
// no half file, nor the loss of an old one.
func writeTrace(r trace.Reader, ref, to string) (n int, err error) {
	plain, zipped := strings.CutSuffix(to, ".gz")
	encoding := trace.CSV
	switch {
	case strings.HasSuffix(plain, ".jsonl"):
		encoding = trace.JSONL
	case !strings.HasSuffix(plain, ".csv"):
		return 0, misused("--to %s: expected a name that ends in .csv, .jsonl, .csv.gz or .jsonl.gz", to)
	}
	f, err := os.Create(to + ".part")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if zipped {
		z := gzip.NewWriter(f)
		n, err = trace.Copy(trace.NewWriter(z, encoding), r)
		err = errors.Join(err, z.Close(), f.Close())
	} else {
		n, err = trace.Copy(trace.NewWriter(f, encoding), r)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ref, err)
	}
	return n, os.Rename(f.Name(), to)
}

func traceKindsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "kinds", Args: cobra.NoArgs, Short: "List the formats that are read and the generators",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				type line struct {
					Ref   string `json:"ref"`
					About string `json:"about"`
				}
				var lines []line
				for _, k := range trace.Kinds() {
					lines = append(lines, line(k))
				}
				return printJSON(cmd.OutOrStdout(), lines)
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, k := range trace.Kinds() {
				fmt.Fprintf(t, "%s\t%s\n", k.Ref, k.About)
			}
			return t.Flush()
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}
