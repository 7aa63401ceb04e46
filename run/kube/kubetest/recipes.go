package kubetest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// The pinned versions. Each needs its exact name: the module mirror does not list versions for all of them.
const (
	kubernetesVersion = "1.36.3"
	etcdVersion       = "3.6.8"
	kwokVersion       = "0.8.0"
	jobsetVersion     = "0.8.0"
	volcanoVersion    = "1.10.0"
)

// The go.mod and go.sum of the modules that cannot be built in their own folder, because they name parts of
// themselves by relative paths that a downloaded module lacks. kubernetes.mod takes the versions that the module of
// this package uses, so that the two share Go's build cache.
//
//go:embed modules
var modules embed.FS

// recipe says how one program is built.
type recipe struct {
	program string
	module  string
	version string
	pkg     string // the main package: an import path, or ./folder inside the module
	// pinned names the go.mod and go.sum under modules/ to build with; empty to build in the module's own folder,
	// with its own go.mod and go.sum.
	pinned string
	main   string // the program text for a module that has no main package to build
	flags  string // -ldflags
	// manifests are files joined from the module: name here -> folders and files there.
	manifests map[string][]string
}

const kubernetesFlags = "-s -w -X k8s.io/component-base/version.gitVersion=v" + kubernetesVersion +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"

func kubernetesProgram(name string) recipe {
	return recipe{program: name, module: "k8s.io/kubernetes", version: "v" + kubernetesVersion,
		pkg: "k8s.io/kubernetes/cmd/" + name, pinned: "kubernetes", flags: kubernetesFlags}
}

var controlPlane = []recipe{
	{program: Etcd, module: "go.etcd.io/etcd/server/v3", version: "v" + etcdVersion, pkg: ".", pinned: "etcd", flags: "-s -w",
		main: "package main\n\nimport (\n\t\"os\"\n\n\t\"go.etcd.io/etcd/server/v3/etcdmain\"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n"},
	{program: Kwok, module: "sigs.k8s.io/kwok", version: "v" + kwokVersion, pkg: "./cmd/kwok", flags: "-s -w",
		// kwok with a configuration file and no definitions in the API server has no stages of its own.
		manifests: map[string][]string{kwokStages: {"kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease",
			"kustomize/stage/pod/fast"}}},
	{program: JobSet, module: "sigs.k8s.io/jobset", version: "v" + jobsetVersion, pkg: ".", flags: "-s -w",
		manifests: map[string][]string{jobsetDefinitions: {"config/components/crd/bases"},
			jobsetWebhooks: {"config/components/webhook/manifests.yaml"}}},
	kubernetesProgram(APIServer),
	kubernetesProgram(Scheduler),
	kubernetesProgram(ControllerManager),
	kubernetesProgram(Kubectl),
}

var volcano = []recipe{
	{program: Volcano, module: "volcano.sh/volcano", version: "v" + volcanoVersion, pkg: "./cmd/scheduler", flags: "-s -w",
		manifests: map[string][]string{volcanoDefinitions: {"config/crd/volcano/bases"}}},
}

// The manifests that come with the programs.
const (
	kwokStages         = "kwok-stages.yaml"
	jobsetDefinitions  = "jobset-crds.yaml"
	jobsetWebhooks     = "jobset-webhooks.yaml"
	volcanoDefinitions = "volcano-crds.yaml"
)

// produces lists the files the recipe makes, the program last so that it marks the recipe as done.
func (r recipe) produces() []string {
	var names []string
	for name := range r.manifests {
		names = append(names, name)
	}
	sort.Strings(names)
	return append(names, r.program)
}

// build makes the recipe's files in dir. Each appears by a rename, so a killed build leaves none half written.
func (r recipe) build(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp(dir, "build-"+r.program+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source := work
	if r.pinned == "" || len(r.manifests) > 0 {
		if source, err = download(ctx, work, r.module+"@"+r.version); err != nil {
			return err
		}
	}
	for name, parts := range r.manifests {
		if err := join(filepath.Join(work, name), source, parts); err != nil {
			return fmt.Errorf("joining %s: %w", name, err)
		}
	}
	if r.pinned != "" {
		source = work
		if err := r.writeModule(work); err != nil {
			return err
		}
	}
	program := filepath.Join(work, "program.out")
	if _, err := runGo(ctx, source, "build", "-mod=readonly", "-buildvcs=false", "-ldflags", r.flags, "-o", program, r.pkg); err != nil {
		return err
	}
	for name := range r.manifests {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Rename(program, filepath.Join(dir, r.program))
}

// writeModule writes the throw-away module a pinned recipe is built from.
func (r recipe) writeModule(dir string) error {
	for from, to := range map[string]string{".mod": "go.mod", ".sum": "go.sum"} {
		text, err := modules.ReadFile("modules/" + r.pinned + from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o644); err != nil {
			return err
		}
	}
	if r.main == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "main.go"), []byte(r.main), 0o644)
}

// download fetches a module and returns its folder in the module cache.
func download(ctx context.Context, dir, module string) (string, error) {
	out, err := runGo(ctx, dir, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("reading the answer of go mod download %s: %w", module, err)
	}
	return answer.Dir, nil
}

// runGo runs the go command. It returns what went to standard output; its error carries the last lines of the
// standard error, where the go command names the module or package it could not get.
func runGo(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// The caller's flags and workspace belong to another module.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PWD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("go %s was stopped: %w", args[0], ctx.Err())
	}
	if err != nil {
		// go mod download -json puts its error into the answer.
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, lastLines(stderr.String()+stdout.String(), 8))
	}
	return stdout.Bytes(), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// join writes the YAML documents of the named files and folders under root into one file.
func join(path, root string, parts []string) error {
	var out bytes.Buffer
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(root, part), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" || strings.HasPrefix(entry.Name(), "kustomiz") {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			out.WriteString("---\n")
			out.Write(bytes.TrimPrefix(text, []byte("---\n")))
			out.WriteString("\n")
			return nil
		})
		if err != nil {
			return err
		}
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
