package gang

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterdl/muster/plan"
)

// with changes a pod by name: "bert-0" matches the first whose name begins so.
func with(t *testing.T, pods []*corev1.Pod, prefix string, change func(*corev1.Pod)) {
	t.Helper()
	for _, p := range pods {
		if strings.HasPrefix(p.Name, prefix) {
			change(p)
			return
		}
	}
	t.Fatalf("no pod %s", prefix)
}

func bind(p *corev1.Pod) { p.Spec.NodeName = "n1" }

func run(p *corev1.Pod) { bind(p); p.Status.Phase = corev1.PodRunning }

func succeed(p *corev1.Pod) { bind(p); p.Status.Phase = corev1.PodSucceeded }

func fail(p *corev1.Pod) { bind(p); p.Status.Phase = corev1.PodFailed }

func terminate(p *corev1.Pod) {
	now := metav1.NewTime(time.Unix(1772359999, 0))
	p.DeletionTimestamp = &now
}

func gate(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }

// claim has the pod claim devices by a template; claimed is when that claim has been made.
func claim(p *corev1.Pod) {
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: new("two")}}
}

func claimed(p *corev1.Pod) {
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: new("gpus-of-" + p.Name)}}
}

// exited ends a container of the pod.
func exited(reason string, code int32, second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		fail(p)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, FinishedAt: metav1.Unix(1772359200+second, 0)}}}}
	}
}

// because gives a failed pod a reason of its node.
func because(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { fail(p); p.Status.Reason, p.Status.Message = reason, message }
}

func TestState(t *testing.T) {
	type step struct {
		pod    string
		change func(*corev1.Pod)
	}
	all := func(prefix string, n int, change func(*corev1.Pod)) (steps []step) {
		for i := range n {
			steps = append(steps, step{prefix + string(rune('0'+i)), change})
		}
		return steps
	}
	for _, c := range []struct {
		name, file string
		pairs      []string
		steps      []step
		phase      Phase
		class      plan.FailureClass
		reason     string // a part of it
	}{
		{"one bound", "job-indexed.yaml", nil, []step{{"bert-2", bind}}, PartlyBound, 0, "1 of 4 pods have a node"},
		{"all bound", "job-indexed.yaml", nil, all("bert-", 4, bind), AllBound, 0, "0 of 4 pods run"},
		{"all run", "job-indexed.yaml", nil, all("bert-", 4, run), Running, 0, "all 4 pods run"},
		{"one done", "job-indexed.yaml", nil, append(all("bert-", 4, run), step{"bert-3", succeed}), Running, 0, "all 3 pods run"},
		{"one to do, made smaller when three were done", "job-indexed.yaml", []string{"parallelism: 4\n  completions: 4", "parallelism: 1\n  completions: 1"},
			append(all("bert-", 4, succeed), step{"bert-0", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }}), Ready, 0, "all 1 pods are there"},
		{"all done, not yet said", "job-indexed.yaml", nil, all("bert-", 4, succeed), Running, 0, "Job bert has not said so yet"},
		{"said", "job-indexed.yaml", []string{"suspend: false", "suspend: false\nstatus: {conditions: [{type: Complete, status: \"True\"}]}\nx:"}, all("bert-", 4, succeed), Succeeded, 0, "Job bert is complete"},
		{"one lost while it runs", "job-indexed.yaml", nil, append(all("bert-", 4, run), step{"bert-1", because("NodeLost", "node n1 is gone")}), Incomplete, plan.NodeFailure, "3 of 4 pods are there, 1 failed: pod bert-1-x1: NodeLost: node n1 is gone"},
		{"one gated", "job-indexed.yaml", nil, []step{{"bert-0", gate}}, Incomplete, 0, "3 of 4 pods are there, 1 held by scheduling gates"},
		{"one waits for its claim", "job-indexed.yaml", nil, []step{{"bert-0", claim}}, Incomplete, 0, "3 of 4 pods are there, 1 waiting for their claims to be made"},
		{"its claim is made", "job-indexed.yaml", nil, []step{{"bert-0", claim}, {"bert-0", claimed}}, Ready, 0, "all 4 pods are there"},
		{"one goes", "job-indexed.yaml", []string{"suspend: false", "suspend: true"}, []step{{"bert-0", terminate}}, Incomplete, 0, "3 of 4 pods are there, 1 terminating; Job bert is suspended"},
		{"failed for good", "job-indexed.yaml", []string{"suspend: false", "suspend: false\nstatus: {conditions: [{type: Failed, status: \"True\", reason: BackoffLimitExceeded, message: too often}]}\nx:"},
			[]step{{"bert-0", exited("Error", 1, 5)}, {"bert-2", exited("OOMKilled", 137, 7)}}, Failed, plan.MemoryFailure, "BackoffLimitExceeded: too often (pod bert-2-x2: container main ended with exit code 137 (OOMKilled))"},
		{"out of time", "job-indexed.yaml", []string{"suspend: false", "suspend: false\nstatus: {conditions: [{type: Failed, status: \"True\", reason: DeadlineExceeded}]}\nx:"}, nil, Failed, plan.TimeFailure, "DeadlineExceeded"},
		{"the last of many", "job-plain.yaml", nil, []step{{"sweep-1", run}, {"sweep-2", run}}, Running, 0, "all 2 pods run"},
		{"too few of many", "job-plain.yaml", []string{"succeeded: 8", "succeeded: 3"}, nil, Incomplete, 0, "2 of 3 pods are there; Job sweep is suspended"},
		{"a role lacks one", "jobset.yaml", nil, []step{{"gpt-workers-1-1", terminate}}, Incomplete, 0, "4 of 5 pods are there (workers 3 of 4), 1 terminating"},
		{"workers run, launcher late", "mpijob.yaml", nil, all("horovod-worker-", 2, run), PartlyBound, 0, "2 of 3 pods have a node"},
		{"initializers done", "trainjob-init.yaml", []string{"template: {spec: {parallelism: 1", "template: {spec: {parallelism: 1", "    - name: dataset-initializer\n      replicas: 1", "    - name: dataset-initializer\n      replicas: 0"},
			[]step{{"llama-model", succeed}}, Succeeded, 0, "its stage is complete"},
		{"a bare pod ends", "pod.yaml", nil, []step{{"note", succeed}}, Succeeded, 0, "all pods succeeded"},
		{"a bare pod fails", "pod.yaml", nil, []step{{"note", exited("Error", 3, 0)}}, Failed, plan.UserFailure, "exit code 3"},
		{"a bare pod is out of time", "pod.yaml", nil, []step{{"note", because("DeadlineExceeded", "")}}, Failed, plan.TimeFailure, "DeadlineExceeded"},
		{"a bare pod is deleted", "pod.yaml", nil, []step{{"note", terminate}}, Gone, 0, "its pods are deleted"},
		{"one of three bare pods fails", "gang.yaml", nil, append(all("g-", 3, run), step{"g-1", because("Evicted", "The node was low on resource: memory.")}), Failed, plan.NodeFailure, "low on resource"},
		{"three bare pods end", "gang.yaml", nil, all("g-", 3, succeed), Succeeded, 0, ""},
		{"a Job of a group fails for good", "podgroup-plugins.yaml", []string{"uid: j-server}\nspec: {", "uid: j-server}\nstatus: {conditions: [{type: Failed, status: \"True\", reason: BackoffLimitExceeded}]}\nspec: {"},
			[]step{{"server-a", exited("Error", 1, 0)}}, Failed, plan.UserFailure, "BackoffLimitExceeded"},
		{"a Job of a group tries again", "podgroup-plugins.yaml", nil, []step{{"server-a", exited("Error", 1, 0)}}, Incomplete, plan.UserFailure, "1 of 2"},
		{"Ray's autoscaler added one", "rayjob.yaml", nil, []step{{"tune-x7k2-head", run}, {"tune-x7k2-gpu-worker-a", run}, {"tune-x7k2-gpu-worker-b", run}}, Running, 0, "all 3 pods run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			objs, pods := change(t, c.file, c.pairs...)
			for _, s := range c.steps {
				with(t, pods, s.pod, s.change)
			}
			g, problems := read(t, objs, pods)
			if Holds(problems) {
				t.Fatal(problems)
			}
			s := g.State(pods)
			if s.Phase != c.phase || s.Failure != c.class || !strings.Contains(s.Reason, c.reason) {
				t.Errorf("%v, %v: %s", s.Phase, s.Failure, s.Reason)
			}
		})
	}
}

// TestStateAgain: pods that are made again take the place of the failed, and of two
// for one place the one that has a node stays.
func TestStateAgain(t *testing.T) {
	objs, pods := load(t, "job-indexed.yaml")
	for _, p := range pods {
		run(p)
	}
	again := pods[0].DeepCopy() // index 3
	fail(pods[0])
	again.Name, again.UID, again.Spec.NodeName, again.Status.Phase = "bert-3-zz", "zz", "", corev1.PodPending
	g, _ := read(t, objs, append(pods, again))
	s := g.State(append(pods, again))
	if s.Phase != PartlyBound || s.Needed != 4 || s.Members[3] != again || s.Bound != 3 || len(s.Extra) != 0 {
		t.Fatalf("%+v", s)
	}
	run(pods[0])
	if s := g.State(append(pods, again)); s.Phase != Running || s.Members[3] != pods[0] || len(s.Extra) != 1 {
		t.Fatalf("%+v", s)
	}
}

// TestGone: a key whose object is deleted is over, one whose pods are all gone for
// the moment is not.
func TestGone(t *testing.T) {
	objs, pods := load(t, "job-indexed.yaml")
	key, _ := Find(pods[0], objs)
	g, problems := Read(key, nil, objs)
	if s := g.State(nil); s.Phase != Incomplete || s.Needed != 4 || len(problems) != 0 || g.Job.Gang != 4 {
		t.Fatal(s, problems)
	}
	if g.Roles[0].Template.Spec.Containers[0].Resources.Limits.Name("nvidia.com/gpu", resource.DecimalSI).Value() != 8 {
		t.Fatal("the template is not that of the Job")
	}
	g, problems = Read(key, nil, objects{})
	if s := g.State(nil); s.Phase != Gone || len(problems) != 0 {
		t.Fatal(s, problems)
	}
	objs, pods = load(t, "podgroup.yaml")
	key, _ = Find(pods[0], objs)
	g, problems = Read(key, nil, objs)
	if s := g.State(nil); s.Phase != Gone || len(problems) != 0 {
		t.Fatal(s, problems)
	}
}

func TestCause(t *testing.T) {
	for _, c := range []struct {
		name string
		pods []func(*corev1.Pod)
		want plan.FailureClass
	}{
		{"none", []func(*corev1.Pod){run}, plan.NoFailure},
		{"user", []func(*corev1.Pod){exited("Error", 1, 0)}, plan.UserFailure},
		{"node before user", []func(*corev1.Pod){exited("Error", 1, 0), because("Terminated", "Pod was terminated in response to imminent node shutdown.")}, plan.NodeFailure},
		{"memory first", []func(*corev1.Pod){exited("Error", 1, 0), exited("OOMKilled", 137, 1)}, plan.MemoryFailure},
		{"disk of its own making", []func(*corev1.Pod){because("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.")}, plan.UserFailure},
		{"kubelet refused", []func(*corev1.Pod){because("UnexpectedAdmissionError", "Allocate failed due to no healthy devices")}, plan.StartFailure},
		{"kubelet had no room", []func(*corev1.Pod){because("OutOfnvidia.com/gpu", "")}, plan.StartFailure},
		{"preempted by the kubelet", []func(*corev1.Pod){because("Preempting", "Preempted in order to admit critical pod")}, plan.NodeFailure},
		{"cannot start", []func(*corev1.Pod){exited("StartError", 128, 0)}, plan.StartFailure},
		{"taken by a taint", []func(*corev1.Pod){func(p *corev1.Pod) {
			exited("Error", 143, 0)(p)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"}}
		}}, plan.NodeFailure},
	} {
		var pods []*corev1.Pod
		for _, f := range c.pods {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			f(p)
			pods = append(pods, p)
		}
		got := plan.NoFailure
		f := Cause(pods)
		if f != nil {
			got = f.Class
		}
		if got != c.want || f != nil && f.Words == "" {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestCauseTells: a container that was over its memory is told with its limit, and what it
// left to be read is kept apart from the words.
func TestCauseTells(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}}}}}
	exited("OOMKilled", 137, 1)(p)
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "side", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: "main is gone", FinishedAt: metav1.Unix(1772359200, 0)}}})
	p.Status.ContainerStatuses[0].State.Terminated.Message = "step 7\nstep 8\n"
	f := Cause([]*corev1.Pod{p})
	if f == nil || f.Class != plan.MemoryFailure || f.Limit != 2048 || f.Code != 137 || f.LastLines != "step 7\nstep 8" ||
		f.String() != "pod p: container main ended with exit code 137 (OOMKilled) at its limit of 2GiB" {
		t.Errorf("%+v", f)
	}
}
