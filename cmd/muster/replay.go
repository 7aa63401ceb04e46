package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
)

func replayCommand() *cobra.Command {
	var state string
	var verify, asJSON bool
	cmd := &cobra.Command{Use: "replay", GroupID: "operate", Args: cobra.NoArgs,
		Short: "Check a journal, and decide its history again",
		Long: "Check that a journal is whole. With --verify, decide its history again from the beginning and compare every\n" +
			"commit byte for byte with what was recorded; the first that differs is printed, and the exit code is 1.\n" +
			"The control plane that writes the journal must not be running.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := filepath.Join(state, "journal")
			if _, err := os.Stat(dir); err != nil {
				return fmt.Errorf("there is no journal in %s: name the state directory with --state", state)
			}
			journal, err := store.Open(dir, store.Options{})
			if err != nil {
				return err
			}
			defer journal.Close()
			report, err := journal.Verify()
			if err != nil {
				return err
			}
			if !report.Intact() {
				return errors.New(report.String())
			}
			if mended := journal.Report().Mended; len(mended) > 0 {
				if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "damage was found and mended, as all batches are there: %s\n", strings.Join(mended, "; ")); err != nil {
					return err
				}
			}
			if !verify {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "the journal is whole: %d batches\n", journal.Last())
				return err
			}
			found, err := plane.Verify(journal)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(found)
			} else if found.Differs == 0 {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d batches with %d events decided again: %d commits, none differs\n", found.Batches, found.Events, found.Commits)
			} else {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "batch %d differs\n  recorded %s\n  decided  %s\n", found.Differs, found.Recorded, found.Decided)
			}
			if err == nil && found.Differs != 0 {
				return exit(1)
			}
			return err
		}}
	cmd.Flags().StringVar(&state, "state", defaultState(), "state directory of the control plane")
	cmd.Flags().BoolVar(&verify, "verify", false, "decide again and compare")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
