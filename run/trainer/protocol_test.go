package trainer

import (
	"encoding/json"
	"github.com/musterdl/muster/pipeline/shape"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/run/trainer/progress"
)

// example returns the first code block of a language in PROTOCOL.md.
func example(t *testing.T, language string) string { return examples(t, language)[0] }

// examples are all of a language.
func examples(t *testing.T, language string) (all []string) {
	t.Helper()
	b, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range strings.Split(string(b), "\n```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(rest, "```\n")
		all = append(all, code)
	}
	if len(all) == 0 {
		t.Fatalf("PROTOCOL.md has no example in %s", language)
	}
	return all
}

// runExample runs a script and returns its progress, as lines that were understood.
func runExample(t *testing.T, program, script, control string) (lines []string, code int) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	report := filepath.Join(t.TempDir(), "progress")
	c := exec.Command(path, "-c", script)
	c.Env = append(os.Environ(), "MUSTER_PROGRESS="+report, "MUSTER_CONTROL="+control)
	if out, err := c.CombinedOutput(); c.ProcessState == nil || len(out) > 0 {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	for _, e := range readEvents(t, report) {
		lines = append(lines, e.String())
	}
	return lines, c.ProcessState.ExitCode()
}

func TestPythonExample(t *testing.T) {
	got, code := runExample(t, "python3", example(t, "python"), "")
	want := []string{"step=1 of=3 loss=1 samples=32", "step=2 of=3 loss=0.5 samples=64", "step=3 of=3 loss=0.3333 samples=96",
		"checkpoint step=3 path=/tmp/my model.pt"}
	if !slices.Equal(got, want) || code != 0 {
		t.Errorf("got %q and code %d, want %q", got, code, want)
	}
}

func TestShellExample(t *testing.T) {
	control := filepath.Join(t.TempDir(), "control")
	got, code := runExample(t, "sh", example(t, "sh"), control)
	if want := []string{"phase name=train", "step=1 of=3", "step=2 of=3", "step=3 of=3"}; !slices.Equal(got, want) || code != 0 {
		t.Errorf("got %q and code %d, want %q", got, code, want)
	}
	if err := progress.Send(control, progress.Command{Verb: progress.Stop}); err != nil {
		t.Fatal(err)
	}
	got, code = runExample(t, "sh", example(t, "sh"), control)
	if want := []string{"phase name=train", "step=1 of=3", "checkpoint step=1"}; !slices.Equal(got, want) || code != ExitStopped {
		t.Errorf("when stopped: got %q and code %d, want %q and %d", got, code, want, ExitStopped)
	}
}

func TestPlanExample(t *testing.T) {
	p, err := shape.ReadTold([]byte(example(t, "json")))
	if err != nil || checkPlan(p, tiny()) != nil {
		t.Fatal(err, checkPlan(p, tiny()))
	}
	want, err := json.Marshal(oneForwardOneBackward(3, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(p); err != nil || string(got) != string(want) {
		t.Errorf("the example is %s, 1F1B is %s", got, want)
	}
}

// The PyTorch script is tried where PyTorch is; elsewhere at least its syntax is.
func TestPyTorchScriptCompiles(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	out, err := exec.Command(python, "-c", "compile(open('testdata/ddp.py').read(), 'ddp.py', 'exec')").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
