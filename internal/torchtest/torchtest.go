// Package torchtest finds the Python whose PyTorch tests are run with.
package torchtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Python is that Python: what MUSTER_PYTHON names, or Debian's, whose torch no other Python
// sees, or the one on the PATH. A test is skipped where it cannot import the module, and says
// which PyTorch there is.
func Python(t testing.TB, module string) string {
	t.Helper()
	python := "python3"
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		python = "/usr/bin/python3"
	}
	if named := os.Getenv("MUSTER_PYTHON"); named != "" {
		python = named
	}
	out, err := exec.Command(python, "-c", "import torch\nprint('torch', torch.__version__, flush=True)\nimport "+module).CombinedOutput()
	if err != nil {
		t.Skipf("%s has no %s here (MUSTER_PYTHON names another Python): %v, %s", python, module, err, brief(string(out)))
	}
	return python
}

// brief is the first line, which has the version where there is one, and the last, which says
// what is missing.
func brief(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if first, last := lines[0], lines[len(lines)-1]; first != last {
		return first + ": " + last
	}
	return lines[0]
}
