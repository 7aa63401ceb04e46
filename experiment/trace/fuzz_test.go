package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// fuzz feeds any bytes to a parser: it must refuse them with problems that name
// the file, or yield jobs that keep the package's promises.
func fuzz(f *testing.F, format string, seeds ...string) {
	f.Add([]byte{})
	for _, s := range seeds {
		f.Add([]byte(s))
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write([]byte(s))
		w.Close()
		f.Add(z.Bytes())
		f.Add(z.Bytes()[:z.Len()-6])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all, err := parse(format, string(content))
		if err != nil {
			var p *Problems
			if !errors.As(err, &p) || len(p.List) == 0 || len(p.List) > maxProblems || !strings.HasPrefix(err.Error(), "t.csv") {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		last := unit.Time(0)
		for i, e := range all {
			j := &e.job
			if j.Submit < last || i == 0 && j.Submit != 0 || e.truth.Duration < 0 || j.Name == "" ||
				j.Gang < 1 || j.Devices < 0 || int64(j.Gang)*int64(j.Devices) > maxDevices ||
				j.Share < 1 || j.Share > unit.Whole || j.Share < unit.Whole && j.Devices != 1 {
				t.Fatalf("job %d: %+v for %s", i, j, e.truth.Duration)
			}
			last = j.Submit
		}
		rewrite(t, all)
	})
}

// rewrite checks that whatever was read can be written and read again.
func rewrite(t *testing.T, all []entry) {
	if len(all) == 0 {
		return
	}
	for _, encoding := range encodings {
		var out bytes.Buffer
		w := NewWriter(&out, encoding)
		for _, e := range all {
			if err := w.Write(e.job, e.truth); err != nil {
				t.Fatalf("%v: %+v", err, e)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		back, err := parse("muster", out.String())
		if err != nil || !reflect.DeepEqual(back, all) {
			t.Fatalf("%v\nwrote %+v\nread  %+v", err, all, back)
		}
	}
}

func FuzzPhilly(f *testing.F) {
	fuzz(f, "philly", "timestamp,duration,num_gpus,gpu_time,cluster\n2017-09-04 10:30:41,2240194.0,8,17921552.0,7f04ca\n")
}

func FuzzHelios(f *testing.F) {
	fuzz(f, "helios", "job_id,submit_time,duration,gpu_num\n363167,2020-03-18 04:01:39,172800,32\n")
}

func FuzzPAI(f *testing.F) {
	fuzz(f, "pai", "job_id,arrival_s,service_sec,gpu_count\nali-e2-worker#384494,16670.0,167731.0,8\n")
}

func FuzzOpenb(f *testing.F) {
	fuzz(f, "openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"+
		"p,12000,16384,1,460,T4|P100,LS,Running,5,12537496,0\n", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n")
}

func FuzzPollux(f *testing.F) {
	fuzz(f, "pollux", "name,time,application,num_replicas,batch_size\ncifar10-0,53,cifar10,6,2048\n")
}

func FuzzTiresias(f *testing.F) {
	fuzz(f, "tiresias", "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n")
}

func FuzzChronus(f *testing.F) {
	fuzz(f, "chronus", "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n"+
		"0,vc_6214e9,1,8555,5049,vgg16,747,14,1105-9,10,0,strict\n1,v,0,85,5049,vgg16,747,14,1105,10,1,best\n")
}

func FuzzMusterCSV(f *testing.F) {
	fuzz(f, "muster", "name,submit_s,duration_s,gang,sizes,models,busy,checkpoint_on_request\na,0.5,2,2,2|4,x|y,0.5,true\nb,0,,1,,,,\n")
}

func FuzzMusterJSONL(f *testing.F) {
	fuzz(f, "muster", `{"name":"a","submit_s":0,"duration_s":3.5,"gang":8,"sizes":[8,16],"models":["x"],"checkpoint_on_request":true}`+"\n"+
		`{"submit_s":1e2,"duration_s":null}`)
}

func FuzzOpenbNodes(f *testing.F) {
	f.Add([]byte("sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\nb,1,1,0,\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		all, err := readAll(&nodeFormat, bytesSource(content))
		if err != nil {
			return
		}
		for _, r := range all {
			if r.job.Devices < 0 || r.job.Devices > maxNodeDevices || r.job.Name == "" {
				t.Fatalf("%+v", r.job)
			}
		}
	})
}

// FuzzReference opens any reference: it must not panic, and reads no further than
// a few jobs. Files are kept out of reach by a path below a regular file.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"gen:rw-a?jobs=10&load=0.5", "gen:philly?days=1", "gen:RW-A'?seed=9&estimate=noisy", "gen:x", ":", "gen:?&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		if kind, rest, _ := strings.Cut(ref, ":"); kind != "gen" {
			ref = kind + ":" + os.Args[0] + "/" + rest
		} else if strings.Contains(rest, "jobs") || strings.Contains(rest, "days") {
			return // a hundred million jobs are legal and take their time
		}
		r, err := Open(ref, Options{Limit: 3})
		if err != nil {
			return
		}
		defer r.Close()
		for range 4 {
			if _, _, err = r.Next(); err != nil {
				break
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%s: after the limit came %v", ref, err)
		}
	})
}
