package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// The programs of a control plane, which are also the names of their processes in a Cluster.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	JobSet            = "jobset-controller"
	Volcano           = "vc-scheduler"
)

// BuildLimit is how long Components may take, waiting for another test binary's build included.
const BuildLimit = 20 * time.Minute

// Components names the programs and manifests a control plane is started from.
type Components struct {
	dir string
}

// Path returns where a program lies.
func (c *Components) Path(program string) string { return filepath.Join(c.dir, program) }

// manifest returns the text of a manifest that came with a program.
func (c *Components) manifest(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return "", fmt.Errorf("reading a manifest of the control plane: %w", err)
	}
	return string(text), nil
}

// has tells whether every file of the recipes is there.
func (c *Components) has(recipes []recipe) error {
	for _, r := range recipes {
		for _, name := range r.produces() {
			if _, err := os.Stat(filepath.Join(c.dir, name)); err != nil {
				return fmt.Errorf("%s is not in %s", name, c.dir)
			}
		}
	}
	return nil
}

// ComponentsDir returns the cache folder of this machine for the pinned versions.
func ComponentsDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder for the control plane: %w", err)
	}
	key := fmt.Sprintf("k8s%s-etcd%s-kwok%s-jobset%s-%s-%s", kubernetesVersion, etcdVersion, kwokVersion, jobsetVersion,
		runtime.GOOS, runtime.GOARCH)
	return filepath.Join(cache, "muster", "kubetest", key, "bin"), nil
}

// Build returns the programs of the control plane and builds those that this machine does not have yet. What one
// call has built stays when a later program fails, so that the next call goes on from there.
func Build(ctx context.Context) (*Components, error) { return build(ctx, controlPlane) }

// BuildVolcano is Build for the gang scheduler Volcano, which only comparisons need.
func BuildVolcano(ctx context.Context) (*Components, error) { return build(ctx, volcano) }

// Find returns the programs of the control plane where this machine has all of them, and never builds.
func Find() (*Components, error) { return find(controlPlane) }

func find(recipes []recipe) (*Components, error) {
	dir := os.Getenv("MUSTER_KUBETEST_BIN")
	if dir == "" {
		var err error
		if dir, err = ComponentsDir(); err != nil {
			return nil, err
		}
	}
	c := &Components{dir: dir}
	return c, c.has(recipes)
}

func build(ctx context.Context, recipes []recipe) (*Components, error) {
	c, err := find(recipes)
	if err == nil || c == nil {
		return c, err
	}
	if os.Getenv("MUSTER_KUBETEST_BIN") != "" {
		return nil, fmt.Errorf("MUSTER_KUBETEST_BIN: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, BuildLimit)
	defer cancel()
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder of the control plane: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(c.dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, r := range recipes {
		if c.has([]recipe{r}) == nil {
			continue
		}
		if err := r.build(ctx, c.dir); err != nil {
			return nil, fmt.Errorf("building %s %s: %w", r.program, r.version, err)
		}
	}
	return c, c.has(recipes)
}

// lock takes the lock that makes test binaries running side by side build once. The kernel frees it when its holder
// dies, so a killed build never blocks the next one.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("taking the build lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("waiting for another process that builds the control plane (%s): %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
