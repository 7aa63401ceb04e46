package kubetest

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// localClient asks a program's own health address, whose certificate nobody signed.
var localClient = &http.Client{Timeout: 5 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

func (c *Cluster) startKwok() error {
	return c.processes.run(Program{Name: Kwok, Path: c.components.Path(Kwok), Args: []string{
		"--config=" + c.components.Path(kwokStages), "--kubeconfig=" + c.kubeconfig, "--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + kwokAnnotation + "=fake", "--cidr=10.128.0.0/9", "--node-ip=127.0.0.1",
		"--node-lease-duration-seconds=40"}})
}

func (c *Cluster) startControllerManager() error {
	args := []string{"--kubeconfig=" + c.kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file=" + c.pki.accountKey, "--use-service-account-credentials=false",
		"--kube-api-qps=" + strconv.Itoa(DefaultClientLimits.QPS), "--kube-api-burst=" + strconv.Itoa(DefaultClientLimits.Burst)}
	if !c.options.Kwok {
		// Nobody renews the leases of the nodes, which would count as lost.
		args = append(args, "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller")
	}
	args = append(args, c.gates()...)
	return c.processes.run(Program{Name: ControllerManager, Path: c.components.Path(ControllerManager),
		Args: append(args, c.options.ControllerManagerArgs...)})
}

func (c *Cluster) startScheduler(o SchedulerOptions) error {
	// It runs under the rights Kubernetes gives its scheduler, not the administrator's.
	config, err := c.pki.user(c.url, "system:kube-scheduler")
	if err != nil {
		return err
	}
	kubeconfig, err := c.writeKubeconfig(Scheduler, config)
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	args := []string{"--secure-port=" + strconv.Itoa(ports[0]), "--bind-address=127.0.0.1",
		"--authentication-skip-lookup=true", "--cert-dir=" + filepath.Join(c.dir, "scheduler-certs"),
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics", "--leader-elect=false"}
	limits := o.Limits.orDefault()
	if o.Config == "" {
		args = append(args, "--kubeconfig="+kubeconfig, "--kube-api-qps="+strconv.Itoa(limits.QPS), "--kube-api-burst="+strconv.Itoa(limits.Burst))
	} else {
		path := filepath.Join(c.dir, "scheduler.yaml")
		if err := os.WriteFile(path, []byte(fmt.Sprintf(o.Config, kubeconfig)), 0o644); err != nil {
			return err
		}
		args = append(args, "--config="+path)
	}
	args = append(args, c.gates()...)
	if err := c.processes.run(Program{Name: Scheduler, Path: c.components.Path(Scheduler), Args: append(args, o.Args...)}); err != nil {
		return err
	}
	return c.waitServing(localClient, Scheduler, fmt.Sprintf("https://127.0.0.1:%d/readyz", ports[0]))
}

// jobsetConfig has the certificates made here and not by the controller, whose way needs a service with an address
// inside the cluster.
const jobsetConfig = `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "127.0.0.1:%[1]d"}
webhook: {host: 127.0.0.1, port: %[2]d, certDir: %[3]s}
`

func (c *Cluster) startJobSet() error {
	definitions, err := c.components.manifest(jobsetDefinitions)
	if err != nil {
		return err
	}
	if err := c.apply.apply(definitions); err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	config := filepath.Join(c.dir, "jobset.yaml")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(jobsetConfig, ports[0], ports[1], c.pki.dir)), 0o644); err != nil {
		return err
	}
	err = c.processes.run(Program{Name: JobSet, Path: c.components.Path(JobSet),
		Args: []string{"--config=" + config, "--kubeconfig=" + c.kubeconfig}})
	if err != nil {
		return err
	}
	if err := c.waitServing(localClient, JobSet, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[0])); err != nil {
		return err
	}
	return c.applyJobSetWebhooks(fmt.Sprintf("https://127.0.0.1:%d", ports[1]))
}

// applyJobSetWebhooks registers the controller's webhooks under its loopback address. Those for pods see only the
// pods of a JobSet, as in its installation.
func (c *Cluster) applyJobSetWebhooks(url string) error {
	text, err := c.components.manifest(jobsetWebhooks)
	if err != nil {
		return err
	}
	objects, err := decode(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("reading the webhooks of the JobSet controller: %w", err)
		}
		for _, hook := range hooks {
			hook, ok := hook.(map[string]any)
			if !ok {
				return fmt.Errorf("reading the webhooks of the JobSet controller: want an object, got %T", hook)
			}
			path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			hook["clientConfig"] = map[string]any{"url": url + path, "caBundle": c.pki.caBase64()}
			if strings.HasSuffix(path, "-v1-pod") {
				hook["objectSelector"] = map[string]any{"matchExpressions": []any{
					map[string]any{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}}}
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, hooks, "webhooks"); err != nil {
			return err
		}
		object.SetName("jobset-" + object.GetName())
		if err := c.apply.object(object); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes an access to a file for programs.
func (c *Cluster) writeKubeconfig(name string, config *rest.Config) (string, error) {
	path := filepath.Join(c.dir, name+".kubeconfig")
	return path, writeKubeconfig(path, config)
}
