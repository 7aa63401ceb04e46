package trace

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

type entry struct {
	job   workload.Job
	truth workload.Truth
}

func drain(r Reader) ([]entry, error) {
	var all []entry
	for {
		job, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, r.Close()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, entry{job, truth})
	}
}

func readJobs(t testing.TB, ref string) []entry {
	t.Helper()
	r, err := Open(ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := drain(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bytesSource is a file in memory.
func bytesSource(content []byte) source {
	return source{name: "t.csv", file: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

func parse(format, content string) ([]entry, error) {
	r, err := openFile(formatNamed(format), bytesSource([]byte(content)), Options{})
	if err != nil {
		return nil, err
	}
	return drain(r)
}

func TestFormats(t *testing.T) {
	base := workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}
	with := func(edit func(*workload.Job)) workload.Job {
		j := base
		edit(&j)
		return j
	}
	tests := []struct {
		format, content string
		want            workload.Job // the last of the file
		duration        unit.Duration
	}{
		{"philly", "timestamp,duration,num_gpus,gpu_time,cluster\n2017-09-04 10:30:41,5.0,8,40,7f\n2017-09-05 10:30:42,7.5,2,15,ab\n",
			with(func(j *workload.Job) {
				j.Name, j.Tenant, j.Gang, j.Submit = "philly-2", "ab", 2, unit.Time(unit.Day+unit.Second)
			}), 7500 * unit.Millisecond},
		{"helios", "job_id,submit_time,duration,gpu_num\n12,2020-03-18 04:01:39,172800,32\n",
			with(func(j *workload.Job) { j.Name, j.Gang = "12", 32 }), 48 * unit.Hour},
		{"pai", "job_id,arrival_s,service_sec,gpu_count\na#1,100.5,3.0,1\nb#2,101.0,4.0,2\n",
			with(func(j *workload.Job) { j.Name, j.Gang, j.Submit = "b#2", 2, 500_000 }), 4 * unit.Second},
		{"tiresias", "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n",
			with(func(j *workload.Job) { j.Name, j.Class = "0", "vgg19" }), 164 * unit.Second},
		{"pollux", "batch_size,name,time,application,num_replicas\n2048,c-0,53,cifar10,6\n",
			with(func(j *workload.Job) { j.Name, j.Class, j.Gang = "c-0", "cifar10/2048", 6 }), NoDuration},
		{"chronus", "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n" +
			"1,vc,0,20,1,vgg,5,1,9-12,10-5,0,soft\n0,vc,4,10,1,vgg,5,1,9,10,1,best\n",
			with(func(j *workload.Job) {
				j.Name, j.Tenant, j.Class, j.Devices = "1", "vc", "vgg", 0
				j.Submit, j.Deadline = unit.Time(10*unit.Minute), 9*unit.Minute
			}), 5 * unit.Minute},
		{"openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
			"p,6000,1024,1,460,T4|P100|T4,LS,Running,7,17,\n",
			with(func(j *workload.Job) {
				j.Name, j.CPU, j.HostMemory, j.Share, j.Models = "p", 6000, 1024, 460, []string{"P100", "T4"}
			}), 10 * unit.Second},
		{"openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,6000,1024,0,0\n",
			with(func(j *workload.Job) { j.Name, j.CPU, j.HostMemory, j.Devices = "p", 6000, 1024, 0 }), NoDuration},
		{"muster", "\xef\xbb\xbfduration_s,submit_s\n\"1.000001\",0\n2e0,3\n", with(func(j *workload.Job) {
			j.Name, j.Submit = "muster-2", unit.Time(3*unit.Second)
		}), 2 * unit.Second},
		{"muster", "{\"submit_s\":1,\"duration_s\":null,\"sizes\":[1,2],\"models\":[\"A\",\"B\"],\"gang\":2}\n\n", with(func(j *workload.Job) {
			j.Name, j.Gang, j.Sizes, j.Models = "muster-1", 2, []int32{1, 2}, []string{"A", "B"}
		}), NoDuration},
	}
	for _, test := range tests {
		all, err := parse(test.format, test.content)
		if err != nil {
			t.Errorf("%s: %v", test.format, err)
			continue
		}
		last := all[len(all)-1]
		if !reflect.DeepEqual(last.job, test.want) || last.truth.Duration != test.duration {
			t.Errorf("%s:\ngot  %+v\nwant %+v\nfor %s, want %s", test.format, last.job, test.want, last.truth.Duration, test.duration)
		}
		if all[0].job.Submit != 0 {
			t.Errorf("%s: the first job comes at %d", test.format, all[0].job.Submit)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	const helios = "job_id,submit_time,duration,gpu_num\n"
	const muster = "name,submit_s,duration_s,gang,devices_per_worker,share_milli,sizes\n"
	tests := []struct{ format, content, want string }{
		{"helios", "", "t.csv: empty: expected a header line with job_id,submit_time,duration,gpu_num"},
		{"helios", "job_id,submit_time,length\n", `t.csv:1: "length": unknown column`},
		{"helios", "job_id,submit_time,duration\n", "t.csv:1: gpu_num: the column is missing"},
		{"helios", "job_id,job_id,submit_time,duration,gpu_num\n", `t.csv:1: "job_id": the column is there twice`},
		{"helios", helios + "1,2020-03-18 04:01:39,5\n", "t.csv:2: 3 cells: expected 4"},
		{"helios", helios + "1,2020-03-18 04:01:39,-5,1\n", `t.csv:2: duration: "-5": expected seconds from 0 to`},
		{"helios", helios + "1,2020-03-18 04:01:39,NaN,1\n", `t.csv:2: duration: "NaN": expected seconds`},
		{"helios", helios + "1,2020-03-18 04:01:39,1e300,1\n", `t.csv:2: duration: "1e300": expected seconds`},
		{"helios", helios + "1,2020-03-18 04:01:39,5,10000000\n", `t.csv:2: gpu_num: "10000000": expected a whole number from 1 to 1000000`},
		{"helios", helios + "1,2020-03-18 04:01:39,5,0\n", `t.csv:2: gpu_num: "0": expected`},
		{"helios", helios + "1,yesterday,5,1\n", `t.csv:2: submit_time: "yesterday": expected a time like 2017-09-04 10:30:41`},
		{"helios", helios + "1,2020-03-18 04:01:39,,1\n", "t.csv:2: duration: empty: expected a value"},
		{"helios", helios + "\xff\xfe,2020-03-18 04:01:39,1,1\n", `t.csv:2: job_id: "\xff\xfe": expected UTF-8 text`},
		{"helios", helios + "a\x1bb,2020-03-18 04:01:39,1,1\n", `t.csv:2: job_id: "a\x1bb": expected no control characters`},
		{"helios", helios + "1,2020-03-18 04:01:39,1,1\n1,2020-03-18 04:01:39,1,1\n", `t.csv:3: job "1" is on line 2 already`},
		{"helios", helios + "1,\"2020,1,1\n", "t.csv:2: "},
		{"helios", helios + "1,1970-01-01 00:00:00,1,1\n2,2100-01-01 00:00:00,1,1\n", "t.csv: 130 years from the first submission to the last"},
		{"helios", helios + strings.Repeat("x", maxRowBytes+1<<17), "the row is longer than"},
		{"muster", `{"submit_s":1,"duration_s":2,"x":"` + strings.Repeat("x", maxRowBytes) + `"}`, "t.csv:1: the row is longer than"},
		{"muster", `{"submit_s":1,"duration_s":"2"}`, `t.csv:1: duration_s: "\"2\"": expected a number`},
		{"muster", `{"submit_s":1}`, "t.csv:1: duration_s: the key is missing"},
		{"muster", `{"submit_s":1,"duration_s":2,"colour":3}`, `t.csv:1: "colour": an unknown key`},
		{"muster", `{"submit_s":1,"submit_s":1,"duration_s":2}`, `t.csv:1: "submit_s": an unknown key, or one that is there twice`},
		{"muster", `{"submit_s":1,"duration_s":2} {}`, "t.csv:1: expected nothing behind the JSON object"},
		{"muster", `{"submit_s":1,"duration_s":2`, "t.csv:1: "},
		{"muster", "{\"submit_s\":1,\"duration_s\":2,\"name\":\"\xff\"}", "t.csv:1: not UTF-8 text"},
		{"muster", muster + "a,0,1,1000000,2,,\n", "t.csv:2: a job of 2000000 devices: expected at most 1000000"},
		{"muster", muster + "a,0,1,1,2,500,\n", "t.csv:2: share_milli: 500 with 2 devices per worker"},
		{"muster", muster + "a,0,1,2,1,,1|4\n", `t.csv:2: sizes: "1|4": expected the gang of 2 among them`},
		{"muster", muster + "a,0,1,2,1,,2|2\n", `t.csv:2: sizes: "2|2": expected ascending`},
		{"openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\na,1,1,1,1000,5,4\n",
			"t.csv:2: deletion_time: lies before creation_time"},
		{"openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,0\n", "t.csv:2: gpu_milli: "},
		{"chronus", "job_id,user,num_gpu,submit_time,model_name,duration,expect_time_list,best_effort\na,b,1,1,c,1,1,yes\n",
			`t.csv:2: best_effort: "yes": expected 0 or 1`},
		{"pollux", "name,time,application,num_replicas,batch_size\na,1,b,1,-7\n", `t.csv:2: batch_size: "-7"`},
	}
	for _, test := range tests {
		_, err := parse(test.format, test.content)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %.80q:\ngot  %v\nwant %s", test.format, test.content, err, test.want)
		}
	}
}

func TestProblemsAreLimited(t *testing.T) {
	content := "job_id,submit_time,duration,gpu_num\n" + strings.Repeat("1,x,-1,0\n", 1000)
	_, err := parse("helios", content)
	var p *Problems
	if !errors.As(err, &p) || len(p.List) != maxProblems {
		t.Fatalf("got %v", err)
	}
	if lines := strings.Count(err.Error(), "\n"); lines != maxProblems {
		t.Errorf("%d line breaks, want %d", lines, maxProblems)
	}
}

func TestBrokenGzip(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprintln(w, "job_id,submit_time,duration,gpu_num")
	for i := range 5000 {
		fmt.Fprintf(w, "%d,2020-03-18 04:01:39,%d,1\n", i, i*i)
	}
	w.Close()
	whole := z.Bytes()
	if all, err := parse("helios", string(whole)); err != nil || len(all) != 5000 {
		t.Fatalf("the whole file: %d jobs, %v", len(all), err)
	}
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"cut":     {whole[:len(whole)/2], "the gzip data ends early"},
		"no body": {whole[:5], "the gzip data ends early"},
		"damaged": {append(bytes.Clone(whole[:len(whole)-8]), 1, 2, 3, 4, 5, 6, 7, 8), "the gzip data is damaged"},
	} {
		_, err := parse("helios", string(test.content))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	rows := "submit_s,duration_s\n5,1\n4,2\n"
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	w.WriteHeader(&tar.Header{Name: "./in/a.csv", Size: int64(len(rows)), Mode: 0o600})
	w.Write([]byte(rows))
	w.Close()
	z.Close()
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain, tarred := write("a#b.csv", []byte(rows)), write("x.tar.gz", archive.Bytes())
	for _, ref := range []string{"muster:" + plain, "muster:" + tarred + "#in/a.csv"} {
		all := readJobs(t, ref)
		if len(all) != 2 || all[0].job.Name != "muster-2" || all[1].job.Submit != unit.Time(unit.Second) {
			t.Errorf("%s: %+v", ref, all)
		}
	}
	for ref, want := range map[string]string{
		"nothing":                       "expected FORMAT:PATH or gen:NAME",
		"csv:" + plain:                  `unknown format "csv"`,
		"muster:" + dir:                 "is a directory",
		"muster:" + dir + "/none":       "no such file",
		"muster:" + tarred:              "a tar archive: expected a member after #; it holds ./in/a.csv",
		"muster:" + tarred + "#b":       `no member "b"`,
		"philly:" + dir:                 "no such file",
		"muster:" + plain + "#c":        "not a tar archive",
		"muster:" + os.DevNull:          "not a regular file",
		"gen:none":                      "unknown generator",
		"gen:rw-a?jobs=0":               `jobs: "0": expected a whole number from 1`,
		"gen:rw-a?colour=red":           `unknown key "colour"`,
		"gen:rw-a?load=NaN":             `load: "NaN": expected a number`,
		"gen:rw-a?estimate=some":        "expected exact or noisy",
		"gen:rw-a?jobs=1&load=1&days=":  `days: "": expected a number`,
		"gen:rw-a?jobs=9&load=1&days=2": "expected two of them",
		"gen:rw-a?limit=3":              `unknown key "limit"`,
	} {
		if _, err := Open(ref, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", ref, err, want)
		}
	}
	for _, opt := range []Options{{Load: -1}, {Limit: -1}, {Devices: -1}, {Load: 1}, {Load: 1e-10, Devices: 1}} {
		if _, err := Open("muster:"+plain, opt); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
}

// Ties keep the order of the file, sorted or not.
func TestOrder(t *testing.T) {
	for content, want := range map[string]string{
		"name,submit_s,duration_s\na,1,1\nb,1,1\nc,2,1\n": "abc",
		"name,submit_s,duration_s\na,2,1\nb,1,1\nc,1,1\n": "bca",
	} {
		all, err := parse("muster", content)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range all {
			got += e.job.Name
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
