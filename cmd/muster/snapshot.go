package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/internal/store"
)

func snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "snapshot", GroupID: "operate", Short: "Keep a cluster's state and history in one file, and replay it",
		Long: "A snapshot is one file with the whole state and history of a control plane: for bug reports, for replays under\n" +
			"any strategy, for tests. It is a zip with the history as JSON lines. Variables of jobs' environments are never\n" +
			"in it; commands are, unless it is anonymised."}
	cmd.AddCommand(snapshotSaveCommand(), snapshotLoadCommand(), snapshotReplayCommand())
	return cmd
}

// showManifest says what is in a snapshot.
func showManifest(w io.Writer, file string, m *snapshot.Manifest, asJSON bool) error {
	if asJSON {
		return printJSON(w, m)
	}
	names := "names as they are"
	if m.Anonymised {
		names = "names replaced"
	}
	_, err := fmt.Fprintf(w, "%s: %d batches with %d events and %d commits, %d jobs on %d devices over %s, %s\n",
		file, m.Batches, m.Events, m.Commits, m.Jobs, m.Devices, m.To.Sub(m.From), names)
	return err
}

func snapshotSaveCommand() *cobra.Command {
	var l live
	var state string
	var anonymise, force bool
	cmd := &cobra.Command{Use: "save FILE", Args: cobra.ExactArgs(1), Short: "Write a snapshot of a control plane",
		Long: "Write a snapshot of the control plane that runs, or with --state of one that does not. Whoever reads the file\n" +
			"sees what everybody runs; --anonymise gives jobs, tenants, users, nodes and all texts stable pseudonyms and keeps\n" +
			"what decisions depend on, times and sizes among it.",
		Example: "  muster snapshot save cluster.zip\n  muster snapshot save --anonymise --state /var/lib/muster bug.zip",
		RunE: func(cmd *cobra.Command, args []string) error {
			fill := func(w io.Writer) error {
				return l.client().SaveSnapshot(cmd.Context(), map[bool]string{true: "1", false: "0"}[anonymise], w)
			}
			if state != "" {
				fill = func(w io.Writer) error { return saveOffline(w, state, anonymise) }
			}
			m, err := saveSnapshot(args[0], force, fill)
			if err != nil {
				return err
			}
			return showManifest(cmd.OutOrStdout(), args[0], &m, l.asJSON)
		}}
	l.flags(cmd)
	cmd.Flags().StringVar(&state, "state", "", "read this state directory, whose control plane is not running")
	cmd.Flags().BoolVar(&anonymise, "anonymise", false, "give names and texts pseudonyms")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	cmd.MarkFlagsMutuallyExclusive("state", "socket")
	return cmd
}

// saveSnapshot fills a file beside its final name, proves it whole, and gives it that
// name: a snapshot that was cut short has no name.
func saveSnapshot(name string, force bool, fill func(io.Writer) error) (m snapshot.Manifest, err error) {
	if _, err := os.Stat(name); err == nil && !force {
		return m, fmt.Errorf("%s is there already: choose another name, or say --force", name)
	}
	// Its owner alone may read it: it holds what everybody runs.
	partial, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".partial-")
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(partial.Name()))
		}
	}()
	if err := errors.Join(fill(partial), partial.Sync(), partial.Close()); err != nil {
		return m, err
	}
	f, err := snapshot.Open(partial.Name())
	if err != nil {
		return m, fmt.Errorf("what arrived is not whole; the server's log may say why: %w", err)
	}
	m = f.Manifest
	if err := f.Close(); err != nil {
		return m, err
	}
	return m, os.Rename(partial.Name(), name)
}

// saveOffline reads the journal of a control plane that is not running.
func saveOffline(w io.Writer, state string, anonymise bool) (err error) {
	journal, err := openJournal(state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	_, err = snapshot.Save(w, func(each func(store.Batch) error) error { return journal.Replay(1, each) },
		snapshot.Options{Anonymise: anonymise, Program: version(), MadeAt: now()})
	return err
}

// openJournal opens the journal in a state directory, which must be whole.
func openJournal(state string) (*store.Store, error) {
	dir := filepath.Join(state, "journal")
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("there is no journal in %s: name the state directory with --state", state)
	}
	journal, err := store.Open(dir, store.Options{})
	if err != nil {
		return nil, withSnapshot(state, err)
	}
	if r := journal.Report(); !r.Intact() {
		return nil, errors.Join(withSnapshot(state, errors.New(r.String())), journal.Close())
	}
	return journal, nil
}

func snapshotLoadCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{Use: "load FILE --state DIR", Args: cobra.ExactArgs(1), Short: "Make a state directory of a snapshot",
		Long: "Make a state directory of a snapshot, for muster replay --verify, or for muster up. What ran when the\n" +
			"snapshot was taken is not running there: muster up starts it again, without the variables of its environment.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			f, err := snapshot.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			if err := snapshot.Load(f, state); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s holds %d batches and the state after them; check them with \"muster replay --verify --state %s\"\n",
				state, f.Manifest.Batches, state)
			return err
		}}
	cmd.Flags().StringVar(&state, "state", "", "the directory to make; it must not be there, or be empty")
	if err := cmd.MarkFlagRequired("state"); err != nil {
		panic(err) // the flag is three lines above
	}
	return cmd
}
