package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// TestLimitJointly: under a part that decides for all jobs at once, a queue with a limit of
// two slots never has more than two processes at work, by what those say themselves, though
// there are four slots; and it has two.
func TestLimitJointly(t *testing.T) {
	t.Parallel()
	state := shortDir(t)
	write := func(name, text string) string {
		path := filepath.Join(state, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := &controlPlane{t: t, state: state, flags: []string{"--slots", "4", "--strategy", write("afs.yaml", jointly), "--queues", write("queues.yaml", "queues: [{name: held, limit: 2}]\n")}}
	p.start()
	t.Cleanup(func() { p.kill() })
	said := filepath.Join(state, "said")
	var names []string
	for i := range 6 {
		sizes := [][]int32{{1}, {1, 2, 4}, {1, 2}}[i%3]
		j := workload.Job{Name: fmt.Sprint("job", i), Tenant: "held",
			Resources: workload.Resources{Gang: sizes[len(sizes)/2], Sizes: sizes, Devices: 1, Share: unit.Whole}, Estimate: unit.Second,
			Checkpoint: workload.Checkpoint{OnRequest: true}, Program: workload.Program{Env: []string{"PATH=" + os.Getenv("PATH")},
				Command: []string{"sh", "-c", "trap 'echo -1 >>" + said + "' EXIT; trap 'exit 143' TERM; echo 1 >>" + said + "; sleep 0.5 & wait"}}}
		if _, err := p.client.Submit(t.Context(), []workload.Job{j}, j.Name); err != nil {
			t.Fatal(err)
		}
		names = append(names, j.Name)
	}
	p.muster(append([]string{"wait"}, names...)...)
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	now, most := 0, 0
	for line := range strings.Lines(string(text)) { // each is appended in one piece, by the shell itself
		step, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		now += step
		most = max(most, now)
	}
	if most != 2 || now != 0 {
		t.Errorf("%d processes at most were at work at once, %d are left: expected 2 and none\n%s", most, now, text)
	}
}
