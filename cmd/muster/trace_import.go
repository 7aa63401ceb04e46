package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/experiment/trace/history"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
)

// imported is what trace import prints, as text and as JSON.
type imported struct {
	File  string           `json:"file"`
	Kind  string           `json:"kind"`
	Took  []string         `json:"took"`
	Left  []history.Reason `json:"left_out"`
	Wrong int              `json:"rows_that_do_not_read"`
	history.Sum
	To string `json:"to"`
}

func traceImportCommand() *cobra.Command {
	var opt history.Options
	var to string
	var asJSON bool
	cmd := &cobra.Command{Use: "import FILE --to TRACE", Args: cobra.ExactArgs(1),
		Short: "Make a trace of what your own scheduler recorded",
		Long: "Make a trace of what your own scheduler recorded: the Standard Workload Format, what sacct -P prints, lists of jobs\n" +
			"or workloads of kubectl get -o json, Alibaba PAI's tables, and any table whose columns a file names. It says what it\n" +
			"took for what, what it left out and why; rows that do not read are named by line, and the others are kept.",
		Example: "  muster trace import jobs.txt --to history.csv\n  muster trace import jobs.csv --columns map.yaml --to history.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := history.Read(args[0], opt)
			if h != nil {
				tellWrong(os.Stderr, h)
			}
			if err != nil {
				return err
			}
			out := imported{File: args[0], Kind: h.Kind, Took: h.Took, Left: h.Left, Wrong: h.Wrong, Sum: h.Sum(), To: to}
			if _, err := writeTrace(h, args[0], to); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), out)
			}
			return out.write(cmd.OutOrStdout())
		}}
	f := cmd.Flags()
	f.StringVar(&opt.Kind, "kind", "", "what the file is: "+strings.Join(history.Kinds(), ", ")+" (default what it looks like)")
	f.StringVar(&opt.Columns, "columns", "", "a YAML file that says which columns of a table are what")
	f.BoolVar(&opt.Cores, "cores", false, "keep what jobs held of cores and host memory")
	f.StringVar(&to, "to", "", "the trace to write: *.csv, *.jsonl, or those with .gz")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.MarkFlagsMutuallyExclusive("kind", "columns")
	cobra.CheckErr(cmd.MarkFlagRequired("to"))
	return cmd
}

// tellWrong names the rows that did not read.
func tellWrong(w io.Writer, h *history.History) {
	if h.Wrong == 0 {
		return
	}
	fmt.Fprintln(w, view.Plain((&trace.Problems{File: h.File, List: h.Bad}).Error()))
	fmt.Fprintf(w, "muster: %d rows of %s do not read; the others are kept\n", h.Wrong, h.File)
}

func (m *imported) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, taken for %s\n", m.File, m.Kind)
	for _, took := range m.Took {
		fmt.Fprintf(w, "took      %s\n", view.Plain(took))
	}
	for _, left := range m.Left {
		fmt.Fprintf(w, "left out  %d: %s (first in line %d)\n", left.Rows, view.Plain(left.Why), left.First)
	}
	fmt.Fprintf(w, "kept      %d jobs, %.1f device-hours", m.Jobs, m.DeviceHours)
	if history.Dated(m.First) {
		fmt.Fprintf(w, ", submitted %s to %s", date(m.First), date(m.Last))
	}
	fmt.Fprintf(w, "; in %s\n", m.To)
	cluster, held := m.Cluster, fmt.Sprintf(" (%d devices were held at once)", m.Peak)
	if cluster == "" {
		cluster, held = "gpus:NODESxDEVICES", ""
	}
	_, err := fmt.Fprintf(w, "next      muster simulate --trace muster:%s --cluster %s --html report.html%s\n", m.To, cluster, held)
	return err
}

func date(t unit.Time) string { return time.UnixMicro(int64(t)).UTC().Format(time.DateOnly) }
