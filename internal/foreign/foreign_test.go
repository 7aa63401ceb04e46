package foreign

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/spec"
)

// TestFiles: each of thirty files as people write them for other systems is read as the text beside it
// says, or refused in one line; what is read is a job that our own reader takes. MUSTER_UPDATE=1 writes the texts anew.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.[sy]*")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v: expected 30", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".told") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found, err := Jobs(filepath.Base(file), data)
			var b strings.Builder
			if err != nil {
				b.WriteString(err.Error() + "\n")
				if strings.Count(b.String(), "\n") > 1 {
					t.Errorf("refused in more than a line: %v", err)
				}
				found.Jobs = nil
			}
			for i := range found.Jobs {
				text := spec.FormatJob(found.Jobs[i])
				if _, err := spec.Jobs(file, text); err != nil {
					t.Errorf("our own reader: %v", err)
				}
				b.WriteString(strings.ReplaceAll(string(text), `\n`, "\n    ") + "\n")
			}
			for _, note := range found.Notes {
				b.WriteString("note: " + note + "\n")
			}
			asTold(t, file, b.String())
		})
	}
}

// TestScriptsRun: what is made of a batch script runs in a shell as one of its workers, with what Slurm would give it.
func TestScriptsRun(t *testing.T) {
	dir := t.TempDir()
	const kept = "logs/lr-sweep-2_lr-sweep-2_6.out" // what --output of the first names
	python := "#!/bin/sh\necho python \"$@\"\n"
	for _, name := range []string{"python", "python3"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(python), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"sbatch-array.sh":     "task 6 of 4\npython train.py --seed 6\n",
		"sbatch-srun.sh":      "python train.py --world 8 --rank 5\n",
		"sbatch-torchrun.sh":  "python -u pretrain.py --config 8b.yaml\n",
		"torchrun-one.sh":     "python -u -m project.train --epochs 5\n",
		"torchrun-elastic.sh": "python -u train.py\n",
		"skypilot-any.yaml":   "python predict.py --part 5\n",
	} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			found, err := Jobs(file, data)
			if err != nil {
				t.Fatal(err)
			}
			words := found.Jobs[0].Command
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "MUSTER_JOB=lr-sweep-2", "MUSTER_ARRAY_INDEX=2", "MUSTER_ATTEMPT=1", "RANK=5", "LOCAL_RANK=1", "GROUP_RANK=1", "WORLD_SIZE=8", "MASTER_ADDR=localhost"}
			out, err := cmd.Output()
			if err != nil || string(out) != want {
				t.Errorf("%q, %v: expected %q", out, err, want)
			}
			if log, err := os.ReadFile(filepath.Join(dir, kept)); file == "sbatch-array.sh" && (err != nil || string(log) != want) {
				t.Errorf("%s holds %q, %v: expected %q", kept, log, err, want)
			}
		})
	}
}

// TestLine: a command keeps its words and what stands before torchrun; a line for a shell stays one.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		command, want []string
		workers       int32
	}{
		{[]string{"torchrun", "--nproc-per-node", "2", "train.py", "a b  c"}, []string{"python3", "-u", "train.py", "a b  c"}, 2},
		{[]string{"env", "A=1", "python3", "-m", "torch.distributed.run", "--nnodes=1:4", "-m", "x.y"}, []string{"env", "A=1", "python3", "-u", "-m", "x.y"}, 4},
		{[]string{"/opt/bin/torchrun", "--no-python", "./train"}, []string{"./train"}, 1},
		{[]string{"torchrun --nproc-per-node 2 train.py 'a b'"}, nil, 2},
		{[]string{"sh", "-c", "cd x && torchrun --nproc-per-node 2 train.py"}, nil, 2},
		{[]string{"python3", "train.py"}, nil, 0},
	} {
		found, is, err := Line(c.command)
		if err != nil || is != (c.workers > 0) {
			t.Errorf("%q: %v, %v", c.command, is, err)
			continue
		}
		for _, j := range found.Jobs {
			shell := c.want == nil && j.Command[0] == "bash" && strings.HasSuffix(j.Command[2], c.command[len(c.command)-1])
			if j.Gang != c.workers || !shell && !slices.Equal(j.Command, c.want) {
				t.Errorf("%q: %d workers of %q, expected %d of %q", c.command, j.Gang, j.Command, c.workers, c.want)
			}
		}
	}
}

// asTold holds what came of a file to the text beside it.
func asTold(t *testing.T, file, got string) {
	t.Helper()
	want := file + ".told"
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(want); err != nil || string(text) != got {
		t.Errorf("%v\n%s\nexpected\n%s", err, got, text)
	}
}

// TestQueues: each file of queues comes to the tree that the text beside it has, with what cannot be said.
func TestQueues(t *testing.T) {
	files, err := filepath.Glob("testdata/queues/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".told") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, found, err := Queues(filepath.Base(file), data)
		var b strings.Builder
		if err != nil {
			b.WriteString(err.Error() + "\n")
		} else {
			b.Write(spec.FormatQueues(tree))
		}
		for _, note := range found.Notes {
			b.WriteString("note: " + note + "\n")
		}
		asTold(t, file, b.String())
	}
}
