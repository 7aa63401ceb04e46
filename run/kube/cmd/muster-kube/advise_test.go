package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/musterdl/muster/run/kube/advise"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/kubetest"
)

// TestOnlyReads: no write of whatever client leaves the process in advise mode.
func TestOnlyReads(t *testing.T) {
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[]}`)
	}))
	defer s.Close()
	plain := &rest.Config{Host: s.URL}
	c, err := kubernetes.NewForConfig(reading(plain))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := c.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "nothing is written in advise mode") {
		t.Errorf("a node was deleted: %v", err)
	}
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), "n", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{}); err == nil {
		t.Error("a node was written to")
	}
	if len(seen) != 1 || seen[0] != http.MethodGet {
		t.Errorf("the server saw %v", seen)
	}
	if plain.WrapTransport != nil {
		t.Error("the configuration that was given is another now")
	}
}

// TestAdviceOf: names of jobs are told on this machine only, sums to anybody.
func TestAdviceOf(t *testing.T) {
	h := adviceOf(func() advise.Advice {
		return advise.Advice{BehindFor: "default/secret", Jobs: advise.Jobs{Compared: 3}}
	})
	for _, x := range []struct {
		path, from string
		status     int
		has        string
	}{
		{"/v1/advice", "127.0.0.1:9", 200, `"compared":3`},
		{"/v1/advice?format=text", "[::1]:9", 200, "mean wait"},
		{"/v1/advice", "10.0.0.1:9", 403, "port-forward"},
		{"/metrics", "10.0.0.1:9", 200, "muster_advice_compared_jobs 3"},
		{"/healthz", "10.0.0.1:9", 200, "ok"},
		{"/v1/jobs", "127.0.0.1:9", 404, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, x.path, nil)
		r.RemoteAddr = x.from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != x.status || !strings.Contains(w.Body.String(), x.has) {
			t.Errorf("%s from %s: %d %s", x.path, x.from, w.Code, w.Body.String())
		}
		if x.from == "10.0.0.1:9" && strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s tells the name of a job to anybody", x.path)
		}
	}
}

// gangOf makes the pods of a gang, each with one device and what else their spec says.
func gangOf(c *kubetest.Cluster, name string, size int, spec string) {
	for i := range size {
		c.Apply(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %[1]s-%[2]d\n  labels: {%[3]s: %[1]s, %[4]s: \"%[5]d\"}\n"+
			"spec:\n  restartPolicy: Never\n  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]\n  %[6]s\n",
			name, i, gang.AnnotationGang, gang.AnnotationGangSize, size, spec))
	}
}

// end has the pods of a gang end well, all at once.
func end(t *testing.T, c *kubetest.Cluster, name string, size int) {
	for i := range size {
		_, err := c.Client().CoreV1().Pods("default").Patch(t.Context(), fmt.Sprintf("%s-%d", name, i), types.MergePatchType,
			[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
}

// whole reports whether all pods of a gang have a node.
func whole(t *testing.T, c *kubetest.Cluster, name string, size int) bool {
	for i := range size {
		p, err := c.Client().CoreV1().Pods("default").Get(t.Context(), fmt.Sprintf("%s-%d", name, i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Spec.NodeName == "" {
			return false
		}
	}
	return true
}

// keep sets the taints of both nodes.
func keep(t *testing.T, c *kubetest.Cluster, taints string) {
	for _, node := range []string{"node-0000", "node-0001"} {
		_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAdvises follows the upstream scheduler on a real API server, under the rights that
// the manifest for advising gives: a fills five of eight devices, b wants eight and gets
// three of them; we would have given these to c.
func TestAdvises(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("set MUSTER_LONG=1 to follow a real scheduler")
	}
	c := kubetest.Start(t, kubetest.Options{Scheduler: &kubetest.SchedulerOptions{}, ControllerManager: true, Kwok: true})
	c.AddNodes(2, kubetest.NodeTemplate{Devices: 4})
	c.Namespace("muster-system")
	text, err := os.ReadFile("../../deploy/muster-advise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range strings.Split(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(kind.APIVersion, "rbac.authorization.k8s.io") || kind.Kind == "ServiceAccount" {
			c.Apply(object)
		}
	}
	var log bytes.Buffer
	f := flags{kubeconfig: c.KubeconfigFor(c.ServiceAccount("muster-system", "muster-advise")), scheduler: "default-scheduler", strategy: "fifo", listen: "127.0.0.1:18097",
		advise: true, adviseLag: time.Hour, adviseRestart: time.Minute, qps: 1000, burst: 2000}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, slog.New(slog.NewTextHandler(&log, nil))) }()
	var r advise.Advice
	wait := func(what string, is func() bool) {
		t.Helper()
		for until := time.Now().Add(60 * time.Second); !is(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: not within a minute: %+v", what, r)
			}
			if answer, err := http.Get("http://" + f.listen + "/v1/advice"); err == nil {
				err := json.NewDecoder(answer.Body).Decode(&r)
				answer.Body.Close()
				if err != nil {
					r = advise.Advice{}
				}
			}
		}
	}
	wait("it follows", func() bool { return r.SinceUs > 0 })
	gangOf(c, "a", 5, "")
	wait("a runs", func() bool { return r.Jobs.RealRunning == 1 && r.Jobs.OursRunning == 1 })
	gangOf(c, "b", 8, "tolerations: [{key: kept, operator: Exists}]")
	wait("b waits", func() bool { return r.Jobs.RealWaiting == 1 && r.Jobs.OursWaiting == 1 })
	gangOf(c, "c", 3, "")
	wait("we are ahead with c", func() bool { return r.Jobs.Ahead == 1 && r.Jobs.OursRunning == 2 && r.Jobs.RealWaiting == 2 })
	time.Sleep(11 * time.Second)                                     // so that b is partial for more than a moment
	keep(t, c, `[{"key":"kept","value":"b","effect":"NoSchedule"}]`) // else each of the two may get a part
	end(t, c, "a", 5)
	wait("b has its nodes", func() bool { return whole(t, c, "b", 8) })
	time.Sleep(2 * time.Second) // it is seen to run
	keep(t, c, "null")
	end(t, c, "b", 8)
	wait("c has its nodes", func() bool { return whole(t, c, "c", 3) })
	time.Sleep(2 * time.Second)
	end(t, c, "c", 3)
	wait("all are compared", func() bool { return r.Jobs.Compared == 3 && r.BehindSec < 2 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + r.Table())
	if r.PartialGangs < 1 || r.Saved.WaitSec <= 0 || strings.Contains(log.String(), "forbidden") {
		t.Errorf("%+v\n%s", r, log.String())
	}
}
