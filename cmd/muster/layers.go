package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/profiles"
)

func layersCommand() *cobra.Command {
	p := workload.Pipeline{}
	cmd := &cobra.Command{Use: "layers FILE", GroupID: "try", Args: cobra.ExactArgs(1), Short: "Turn a published profile of layers into a job that muster plan takes",
		Example: "  muster layers vgg16.graph.txt --stages 4 --microbatches 16 > job.yaml\n  muster plan job.yaml --bandwidth 10Gbps",
		Long: "Print the layers of a profile as a job with a pipeline: a graph as PipeDream and DAPPLE write it (graph.txt), or a table of\n" +
			"Sailor's (profile.json), of the smallest microbatch. Layers of your own: docs/examples/measure/layers.py measures those of a\n" +
			"PyTorch model and prints the same.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("reading a profile: %w", err)
			}
			known := false
			if p.Layers, known, err = profiles.Read(args[0], data); err != nil {
				return err
			}
			if !known {
				return misused("%s: found no profile, expected the lines of a graph (node1 -- NAME -- forward_compute_time=...) or JSON of seconds by microbatch, tensor degree and layer", args[0])
			}
			if p.Stages < 1 || int(p.Stages) > len(p.Layers) || p.Microbatches < 1 {
				return misused("--stages %d, --microbatches %d: expected at least 1 of each, and no more stages than the %d layers", p.Stages, p.Microbatches, len(p.Layers))
			}
			name, _, _ := strings.Cut(filepath.Base(args[0]), ".")
			return writeLayers(cmd.OutOrStdout(), name, &p)
		}}
	cmd.Flags().Int32Var(&p.Stages, "stages", 2, "devices in a row")
	cmd.Flags().Int32Var(&p.Microbatches, "microbatches", 8, "parts of a batch, each as large as the one that was measured")
	return cmd
}

func writeLayers(w io.Writer, name string, p *workload.Pipeline) error {
	fmt.Fprintf(w, "name: %s\nworkers: %d\npipeline:\n  stages: %d\n  microbatches: %d\n  layers:\n", name, p.Stages, p.Stages, p.Microbatches)
	for _, l := range p.Layers {
		_, err := fmt.Fprintf(w, "    - {name: %s, forward: %dus, backward: %dus, params: %dKiB, output: %dKiB, activations: %dKiB}\n",
			strconv.Quote(l.Name), int64(l.Forward), int64(l.Backward), l.ParamKiB, l.OutputKiB, l.ActivationKiB)
		if err != nil {
			return err
		}
	}
	return nil
}
