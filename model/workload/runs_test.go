package workload

import (
	"strings"
	"testing"
)

// TestRuns: what a command runs is its program and its script, whatever else it says.
func TestRuns(t *testing.T) {
	for command, want := range map[string]string{
		"":                                     "",
		"/opt/tools/train-llama --lr 3":        "train-llama",
		"python3 -u /home/a/17/train.py --x.y": "python train.py",
		"torchrun --nproc_per_node 4 --rdzv h:1 main.py a.py": "torchrun main.py",
		"python -m torch.distributed.run train.py":            "python train.py",
		"python3.11 -m pkg.train --lr 3":                      "python pkg.train",
		"bash -c 'cd /x && python ./eval.py; echo'":           "bash eval.py",
	} {
		p := Program{Command: strings.Split(command, " ")}
		if command == "" {
			p.Command = nil
		}
		if got := p.Runs(); got != want {
			t.Errorf("%q runs %q, want %q", command, got, want)
		}
	}
	if got := (&Program{Command: []string{"sh", "-c", "exec python 'train.py' --seed 3"}}).Runs(); got != "sh train.py" {
		t.Errorf("what a shell is told runs %q", got)
	}
}
