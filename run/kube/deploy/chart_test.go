package deploy

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

var update = flag.Bool("update", false, "write the manifests anew from the chart")

const (
	helmVersion       = "v3.22.0"
	kubernetesVersion = "1.36.3"
	namespace         = "muster-system"
)

// helm returns the path of helm, built once per machine from its module.
func helm(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no folder for a built helm: %v", err)
	}
	dir := filepath.Join(cache, "muster", "kubetest", "helm-"+helmVersion)
	path := filepath.Join(dir, "helm")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skipf("helm is not at %s; MUSTER_LONG=1 builds it (3 minutes, once)", path)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", "helm.sh/helm/v3/cmd/helm@"+helmVersion)
	cmd.Dir = t.TempDir() // outside of any module
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("helm %s cannot be built here: %v\n%s", helmVersion, err, out)
	}
	return path
}

// render is helm template; the error has what helm said.
func render(t *testing.T, release string, more ...string) ([]byte, error) {
	t.Helper()
	args := append([]string{"template", release, "chart", "--namespace", namespace, "--kube-version", kubernetesVersion}, more...)
	cmd := exec.CommandContext(t.Context(), helm(t), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.Bytes())
	}
	return out.Bytes(), nil
}

func TestLint(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), helm(t), "lint", "--strict", "--kube-version", kubernetesVersion, "chart")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// namespaceText is what helm leaves to --create-namespace.
const namespaceText = `---
apiVersion: v1
kind: Namespace
metadata:
  name: ` + namespace + `
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

// TestManifestsAreTheCharts: the plain manifests are what the chart renders.
func TestManifestsAreTheCharts(t *testing.T) {
	for _, m := range []struct {
		file, about, release string
		more                 []string
	}{
		{manifest, "Muster as a scheduler", "muster", []string{"--include-crds"}},
		{manifestAdvise, "Muster beside the present scheduler, in advise mode: it binds nothing", "muster-advise", []string{"--set", "advise=true"}},
	} {
		rendered, err := render(t, m.release, m.more...)
		if err != nil {
			t.Fatal(err)
		}
		want := []byte("# " + m.about + ": kubectl apply --server-side -f " + m.file +
			"\n# Rendered from the chart beside it; do not edit (go test ./deploy -run TestManifestsAreTheCharts -update).\n" + namespaceText)
		want = append(want, rendered...)
		if *update {
			if err := os.WriteFile(m.file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(read(t, m.file), want) {
			t.Errorf("%s is not what the chart renders: go test ./deploy -run TestManifestsAreTheCharts -update", m.file)
		}
	}
}

// TestValues: each value does what it says, and all of them render together.
func TestValues(t *testing.T) {
	text, err := render(t, "other", "--set", strings.Join([]string{
		"schedulerName=gpu", "strategy=fifo", "queues=", "deviceResources={amd.com/gpu,nvidia.com/gpu}", "kubeAPI.qps=7", "kubeAPI.burst=8",
		"log.format=text", "log.level=debug", "image.repository=here/it", "image.digest=sha256:" + strings.Repeat("a", 64), "image.pullSecrets={s1}",
		"replicas=1", "leaseName=l", "serviceAccount.name=who", "serviceAccount.annotations.a=b", "priorityClassName=", "service.type=NodePort",
		"service.port=80", "podLabels.x=y", "podAnnotations.p=q", "nodeSelector.n=m", "tolerations[0].operator=Exists",
		"affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1", "journalSize=5Gi", "terminationGraceSeconds=9",
	}, ","))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, text)
	d := one[*appsv1.Deployment](t, all)
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	checkArgs(t, c.Args)
	got := strings.Join(c.Args, " ")
	want := "--scheduler-name=gpu --strategy=$(STRATEGY) --listen=:8080 --data=/var/lib/muster --leader-elect --leader-elect-namespace=muster-system " +
		"--leader-elect-name=l --kube-api-qps=7 --kube-api-burst=8 --log-format=text --log-level=debug --device-resource=amd.com/gpu --device-resource=nvidia.com/gpu"
	if got != want {
		t.Errorf("arguments\n%s\nexpected\n%s", got, want)
	}
	if c.Image != "here/it@sha256:"+strings.Repeat("a", 64) || pod.ImagePullSecrets[0].Name != "s1" {
		t.Errorf("image %s with %v", c.Image, pod.ImagePullSecrets)
	}
	if pod.PriorityClassName != "" || pod.NodeSelector["n"] != "m" || pod.Tolerations[0].Operator != corev1.TolerationOpExists ||
		pod.Affinity.PodAntiAffinity != nil || pod.Affinity.NodeAffinity == nil || *pod.TerminationGracePeriodSeconds != 9 {
		t.Errorf("pod %+v", pod)
	}
	if l, a := d.Spec.Template.Labels, d.Spec.Template.Annotations; l["x"] != "y" || a["p"] != "q" || *d.Spec.Replicas != 1 {
		t.Errorf("labels %v, annotations %v, %d replicas", l, a, *d.Spec.Replicas)
	}
	account := one[*corev1.ServiceAccount](t, all)
	if account.Name != "who" || account.Annotations["a"] != "b" || pod.ServiceAccountName != "who" {
		t.Errorf("service account %v for pods of %s", account.ObjectMeta, pod.ServiceAccountName)
	}
	for _, b := range of[*rbacv1.ClusterRoleBinding](all) {
		if b.Subjects[0].Name != "who" {
			t.Errorf("%s binds %v", b.Name, b.Subjects)
		}
	}
	if s := one[*corev1.Service](t, all); s.Spec.Ports[0].Port != 80 || s.Spec.Type != corev1.ServiceTypeNodePort {
		t.Errorf("service %+v", s.Spec)
	}
	if names := one[*rbacv1.Role](t, all).Rules[0].ResourceNames; names[0] != "l" {
		t.Errorf("rights on leases %v", names)
	}
	if config := one[*corev1.ConfigMap](t, all); config.Data["strategy"] != "fifo" || config.Data["queues.yaml"] != "" {
		t.Errorf("configuration %v", config.Data)
	}
	if n := len(of[*policyv1.PodDisruptionBudget](all)); n != 0 {
		t.Error("a budget for one replica holds up every drain")
	}
	monitored, err := render(t, "muster", "--set", "serviceMonitor.enabled=true,serviceMonitor.interval=7s,serviceMonitor.labels.team=ml", "-s", "templates/servicemonitor.yaml")
	if err != nil || !bytes.Contains(monitored, []byte("interval: 7s")) || !bytes.Contains(monitored, []byte("team: ml")) {
		t.Errorf("monitor %v\n%s", err, monitored)
	}
}

// TestBadValues: the schema refuses what would come out wrong.
func TestBadValues(t *testing.T) {
	for _, bad := range []string{"replcas=3", "replicas=0", "advise=maybe", "log.level=loud", "kubeAPI.qps=0", "schedulerName=A_b",
		"deviceResources={gpu}", "image.digest=abc", "service.port=70000", "strategy="} {
		if _, err := render(t, "muster", "--set", bad); err == nil || !strings.Contains(err.Error(), "values don't meet") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestEveryValueIsDescribed: each value has a comment above it, and the schema has it.
func TestEveryValueIsDescribed(t *testing.T) {
	schema := string(read(t, "chart/values.schema.json"))
	before := ""
	for line := range strings.SplitSeq(string(read(t, "chart/values.yaml")), "\n") {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case !ok || strings.HasPrefix(name, "#") || indent > 2:
		case indent == 2 && (name == "requests" || name == "limits" || name == "half_life"):
		case !strings.Contains(schema, `"`+name+`":`):
			t.Errorf("%s is not in the schema", name)
		case rest != "" && !strings.HasPrefix(strings.TrimSpace(before), "#"):
			t.Errorf("%s has no comment", name)
		}
		before = line
	}
}
