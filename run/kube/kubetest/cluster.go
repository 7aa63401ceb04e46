package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// startLimit is how long one process may take until it serves.
const startLimit = 90 * time.Second

// Options says what runs beside etcd and the API server. The zero value runs nothing more.
type Options struct {
	// Scheduler runs the upstream scheduler.
	Scheduler *SchedulerOptions
	// ControllerManager runs the controllers of plain Kubernetes: jobs, garbage collection, claims of pods.
	ControllerManager bool
	// Kwok plays the nodes of AddNodes: they keep their leases, and pods bound to them run at once.
	Kwok bool
	// JobSet runs the JobSet controller with its webhooks.
	JobSet bool
	// FeatureGates are set on the API server, the controller manager and the scheduler.
	FeatureGates map[string]bool
	// APIServerArgs and ControllerManagerArgs are added to the command lines.
	APIServerArgs, ControllerManagerArgs []string
}

// SchedulerOptions says how the upstream scheduler runs.
type SchedulerOptions struct {
	// Limits of its API client; zero is DefaultClientLimits.
	Limits ClientLimits
	// Args are added to the command line.
	Args []string
	// Config is the text of a KubeSchedulerConfiguration; empty for flags alone. Its clientConnection names the
	// scheduler's kubeconfig as %[1]s and holds the client limits itself.
	Config string
}

// ClientLimits are the rate limits of an API client.
type ClientLimits struct {
	QPS   int
	Burst int
}

// DefaultClientLimits are high enough that the limit is the scheduler or the API server.
var DefaultClientLimits = ClientLimits{QPS: 5000, Burst: 5000}

func (l ClientLimits) orDefault() ClientLimits {
	if l == (ClientLimits{}) {
		return DefaultClientLimits
	}
	return l
}

// Cluster is a running control plane. Its methods fail the test where they break, unless they return an error.
type Cluster struct {
	t          testing.TB
	options    Options
	components *Components
	dir        string
	pki        *authority
	url        string
	admin      *rest.Config
	kubeconfig string
	client     kubernetes.Interface
	apply      *applier
	processes  processes
}

// Start brings a control plane up and takes it down with the test. It skips the test, saying why, where the
// programs are not built: with MUSTER_LONG=1 it builds them first.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, options: options, components: programs(t), dir: t.TempDir()}
	t.Cleanup(c.stop)
	if err := c.start(); err != nil {
		t.Fatalf("starting the control plane: %v", err)
	}
	return c
}

// programs finds or builds the programs, or skips the test.
func programs(t testing.TB) *Components {
	t.Helper()
	components, err := Find()
	if err == nil {
		return components
	}
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skipf("no control plane on this machine (%v); MUSTER_LONG=1 builds it, in about ten minutes", err)
	}
	ctx, cancel := testContext(t)
	defer cancel()
	if components, err = Build(ctx); err != nil {
		t.Skipf("no control plane can be built on this machine: %v", err)
	}
	return components
}

// testContext ends a little before the test's own time limit, so that a build that takes too long is a message and
// not a panic of the test binary.
func testContext(t testing.TB) (context.Context, context.CancelFunc) {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok {
			return context.WithDeadline(context.Background(), deadline.Add(-10*time.Second))
		}
	}
	return context.WithCancel(context.Background())
}

func (c *Cluster) start() error {
	c.processes.logs = filepath.Join(c.dir, "logs")
	if err := os.MkdirAll(c.processes.logs, 0o755); err != nil {
		return err
	}
	var err error
	if c.pki, err = newAuthority(filepath.Join(c.dir, "pki")); err != nil {
		return err
	}
	if err := c.startEtcdAndAPIServer(); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.Config()); err != nil {
		return err
	}
	if c.apply, err = newApplier(c.Config()); err != nil {
		return err
	}
	if c.options.Kwok {
		if err := c.startKwok(); err != nil {
			return err
		}
	}
	if c.options.ControllerManager {
		if err := c.startControllerManager(); err != nil {
			return err
		}
	}
	if c.options.Scheduler != nil {
		if err := c.startScheduler(*c.options.Scheduler); err != nil {
			return err
		}
	}
	if c.options.JobSet {
		return c.startJobSet()
	}
	return nil
}

func (c *Cluster) startEtcdAndAPIServer() error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	err = c.processes.run(Program{Name: Etcd, Path: c.components.Path(Etcd), Args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		// A test outlives no power cut, and the disk of a shared machine would drown what is measured.
		"--unsafe-no-fsync", "--log-level=warn"}})
	if err != nil {
		return err
	}
	c.url = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	if c.admin, err = c.pki.user(c.url, "admin", "system:masters"); err != nil {
		return err
	}
	if c.kubeconfig, err = c.writeKubeconfig("admin", c.admin); err != nil {
		return err
	}
	args := []string{"--etcd-servers=" + client, "--secure-port=" + fmt.Sprint(ports[2]),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.200.0.0/16",
		"--tls-cert-file=" + c.pki.serverCert, "--tls-private-key-file=" + c.pki.serverKey, "--client-ca-file=" + c.pki.caFile,
		"--service-account-key-file=" + c.pki.accountKey, "--service-account-signing-key-file=" + c.pki.accountKey,
		"--service-account-issuer=https://kubetest.local", "--authorization-mode=RBAC",
		// Many objects are made at once by one client, which fair queueing would hold back.
		"--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
		"--disable-admission-plugins=" + strings.Join(c.disabledAdmission(), ",")}
	args = append(args, c.gates()...)
	args = append(args, c.options.APIServerArgs...)
	if err := c.processes.run(Program{Name: APIServer, Path: c.components.Path(APIServer), Args: args}); err != nil {
		return err
	}
	return c.waitForAPIServer()
}

// disabledAdmission lists the admission plugins that need a program which does not run: pods would wait for their
// service account, and new nodes would keep the taint that the controller manager takes away.
func (c *Cluster) disabledAdmission() []string {
	names := []string{"ServiceAccount"}
	if !c.options.ControllerManager || !c.options.Kwok {
		names = append(names, "TaintNodesByCondition")
	}
	return names
}

func (c *Cluster) gates() []string {
	if len(c.options.FeatureGates) == 0 {
		return nil
	}
	var gates []string
	for name, on := range c.options.FeatureGates {
		gates = append(gates, fmt.Sprintf("%s=%t", name, on))
	}
	sort.Strings(gates)
	return []string{"--feature-gates=" + strings.Join(gates, ",")}
}

func (c *Cluster) waitForAPIServer() error {
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.waitServing(client, APIServer, c.url+"/readyz")
}

// waitServing waits until a process answers an address with success.
func (c *Cluster) waitServing(client *http.Client, process, url string) error {
	last := errors.New("it never answered")
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := c.processes.exited(process); err != nil {
			return err
		}
		answer, err := client.Get(url)
		if err != nil {
			last = err
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		last = fmt.Errorf("it answers %s", answer.Status)
	}
	return fmt.Errorf("%s does not serve after %v: %w\n%s", process, startLimit, last, c.processes.tail(process))
}

// stop ends every process, newest first, and keeps the logs of a failed test.
func (c *Cluster) stop() {
	if dead := c.processes.unexpected(); len(dead) > 0 {
		c.t.Logf("ended by themselves: %s", strings.Join(dead, ", "))
	}
	c.processes.stopAll()
	if !c.t.Failed() {
		return
	}
	kept, err := c.processes.keepLogs()
	if err != nil {
		c.t.Logf("the control plane's logs could not be kept: %v", err)
		return
	}
	c.t.Logf("the control plane's logs are in %s", kept)
}

// Config returns the administrator's access, without a rate limit.
func (c *Cluster) Config() *rest.Config { return unlimited(rest.CopyConfig(c.admin)) }

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Client returns a client with the administrator's rights, without a rate limit.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// KillAPIServer ends the API server at once, as an outage does. etcd keeps what it had written.
func (c *Cluster) KillAPIServer() { c.Kill(APIServer) }

// StartAPIServer brings the API server back on its address and waits until it serves.
func (c *Cluster) StartAPIServer() {
	c.t.Helper()
	c.Restart(APIServer)
	if err := c.waitForAPIServer(); err != nil {
		c.t.Fatal(err)
	}
}

func unlimited(config *rest.Config) *rest.Config {
	config.QPS = -1
	return config
}
