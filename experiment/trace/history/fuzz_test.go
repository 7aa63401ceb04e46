package history

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
)

// fuzz feeds any bytes to a reader: what it keeps is a trace of ours, job by job, whatever else stands in the file.
func fuzz(f *testing.F, opt Options, seeds ...string) {
	opt.Cores = true
	for _, s := range seeds {
		data, err := os.ReadFile("testdata/" + s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := from("no-such-folder/history", bytes.NewReader(data), opt)
		if err != nil {
			return
		}
		sum := h.Sum()
		var b bytes.Buffer
		if n, err := trace.Copy(trace.NewWriter(&b, trace.CSV), h); err != nil || n != sum.Jobs {
			t.Fatalf("%d of %d jobs written: %v", n, sum.Jobs, err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
		r, err := trace.OpenFrom("muster", "history.csv", open, trace.Options{})
		for n := 0; err == nil; n++ {
			if _, _, err = r.Next(); errors.Is(err, io.EOF) && n != sum.Jobs {
				t.Fatalf("%d of %d jobs read back", n, sum.Jobs)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%v\n%s", err, b.String())
		}
	})
}

func FuzzSWF(f *testing.F)   { fuzz(f, Options{Kind: "swf"}, "archive.swf", "far-apart.swf") }
func FuzzSacct(f *testing.F) { fuzz(f, Options{Kind: "sacct"}, "sacct.txt", "sacct-old.txt") }
func FuzzKube(f *testing.F)  { fuzz(f, Options{Kind: "kube"}, "jobs.json", "workloads.json") }
func FuzzPAI(f *testing.F)   { fuzz(f, Options{Kind: "pai"}, "pai_task_table.csv") }
func FuzzTable(f *testing.F) { fuzz(f, Options{Columns: "testdata/own.yaml"}, "own.csv") }
