package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/spec"
)

// seed gives a fuzzer the files below testdata that match.
func seed(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if !strings.HasSuffix(file, ".told") {
			f.Add(data)
		}
	}
}

// FuzzJobs: any bytes are refused in one line, or come to jobs that our own reader takes.
func FuzzJobs(f *testing.F) {
	seed(f, "testdata/*.[sy]*")
	for _, text := range []string{"apiVersion: v1\nkind: List\nitems: []\n", "entrypoint: x.determined.launch.y\nsearcher: {name: single}\n",
		"apiVersion: v1\nkind: Job\nspec: {parallelism: 9000000000}\n", "#!/bin/sh\ntorchrun --nnodes=1:2000000000 x\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := Jobs("f.yaml", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("refused in more than a line: %v", err)
			}
			return
		}
		for i := range found.Jobs {
			if _, err := spec.Jobs("f.yaml", spec.FormatJob(found.Jobs[i])); err != nil {
				t.Fatalf("our own reader: %v\n%+v", err, found.Jobs[i])
			}
		}
		if What(data) != found.What {
			t.Fatalf("%s is %s where it is read", What(data), found.What)
		}
	})
}

// FuzzQueues: any bytes are refused in one line, or come to a tree.
func FuzzQueues(f *testing.F) {
	seed(f, "testdata/queues/*")
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, _, err := Queues("f.yaml", data)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("refused in more than a line: %v", err)
		}
		if err == nil && len(tree.Queues) < 2 {
			t.Fatalf("no queue in %+v", tree)
		}
	})
}

// FuzzLine: no command ends the program.
func FuzzLine(f *testing.F) {
	for _, line := range []string{"torchrun train.py\na b c", "torchrun --nproc-per-node 2 train.py", "sh\n-c\ncd x && torchrun --nnodes=1:4 y", "python3\n-m\ntorch.distributed.run\n-m\nx", "torchrun"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		found, is, err := Line(strings.Split(line, "\n"))
		if is && err == nil && (len(found.Jobs) != 1 || len(found.Jobs[0].Command) == 0) {
			t.Fatalf("%+v", found)
		}
	})
}
