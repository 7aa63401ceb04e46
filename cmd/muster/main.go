// Command muster allocates the resources and schedules the work of distributed
// deep learning: simulated, on this machine, and beside what others run. This
// package parses the command line, wires the parts together and prints.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/musterdl/muster/internal/release"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/mechanism/solve"
)

func main() {
	if dir, err := os.UserCacheDir(); err == nil {
		solve.Cache(filepath.Join(dir, "muster", "solve"))
	}
	if err := root().Execute(); err != nil {
		if !errors.As(err, new(exit)) {
			fmt.Fprintln(os.Stderr, "muster:", view.Plain(err.Error()))
		}
		os.Exit(codeOf(err))
	}
}

// root is the command tree.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "muster",
		Short:         "Allocate the resources and schedule the work of distributed deep learning",
		Long:          "Muster schedules training jobs, from the queue down to the wire. The same strategies run\nin a simulator on real traces and on this machine on real processes.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.AddGroup(&cobra.Group{ID: "try", Title: "Try and compare:"}, &cobra.Group{ID: "run", Title: "Run jobs on this machine:"},
		&cobra.Group{ID: "operate", Title: "Operate:"})
	cmd.AddCommand(simulateCommand(), compareCommand(), traceCommand(), benchCommand(), strategiesCommand(), reproduceCommand(), scenarioCommand(), planCommand(), layersCommand(), versionCommand())
	cmd.AddCommand(liveCommands()...)
	cmd.AddCommand(accessCommands()...)
	cmd.AddCommand(shareCommands()...)
	cmd.AddCommand(snapshotCommand(), defragCommand(), whatIfCommand())
	cmd.AddCommand(whenCommand(), promisesCommand(), shadowCommand())
	cmd.AddCommand(demoCommand(), upCommand(), replayCommand(), superviseCommand(), trainerCommand(), exitTopic())
	cmd.InitDefaultHelpCmd()
	strict(cmd)
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print what was built", GroupID: "operate", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		}}
}

func version() string { return "muster " + release.Build() }

// width is the width of the terminal that out is; 0, which cuts nothing, where it is none.
func width() int {
	w, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err == nil && w <= 20 { // it does not know
		w = 100
	}
	return w
}

// colour reports whether text to the standard output may be coloured.
func colour() bool {
	return os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(os.Stdout.Fd()))
}
