package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// The test binary is also the supervisor, a control plane and the workers that a
// shell cannot play.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "supervise":
		os.Exit(Main(os.Args[2]))
	case "plane": // launches what its input says, then hangs until it is killed
		var spec Spec
		if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
			panic(err)
		}
		if _, err := Launch(spec, self()); err != nil {
			panic(err)
		}
		fmt.Println("launched")
		select {}
	case "hog":
		var held [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			held = append(held, b)
			if len(held) > 1024 {
				os.Exit(9)
			}
		}
	case "burn": // uses a third of a second of CPU time
		for {
			var used syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil || used.Utime.Nano()+used.Stime.Nano() > 333e6 {
				os.Exit(0)
			}
		}
	}
	os.Exit(m.Run())
}

func self() string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return exe
}

// shell is the spec of a worker that runs a script as the user who tests.
func shell(t *testing.T, script string) Spec {
	t.Helper()
	return spec(t, "/bin/sh", "-c", script)
}

func spec(t *testing.T, command ...string) Spec {
	t.Helper()
	s := Spec{
		State: t.TempDir(), Job: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), Attempt: 1, Command: command, Dir: "/",
		User:  Identity{UID: os.Getuid(), GID: os.Getgid(), AllowRoot: true},
		Watch: Watch{SampleEvery: 50 * unit.Millisecond}, Stop: Stop{Grace: 5 * unit.Second},
	}
	s.Env = []string{"PATH=/usr/bin:/bin", "MUSTER_PROGRESS=" + ProgressPath(s.MemberDir()), "MUSTER_CONTROL=" + ControlPath(s.MemberDir())}
	t.Cleanup(func() { tidyUp(t, s.State) })
	return s
}

// tidyUp ends whatever a test left running.
func tidyUp(t *testing.T, state string) {
	members, err := Scan(state)
	if err != nil {
		t.Error(err)
	}
	for _, m := range members {
		if m.Alive {
			_ = Send(m.Dir, Kill)
		}
		for range 1000 {
			if alive, _ := Alive(m.Dir); !alive {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := Reap(m.Dir); err != nil {
			t.Errorf("reap: %v", err)
		}
		g, err := m.Spec.Pool.Find(m.Spec.groupName())
		if err != nil {
			t.Error(err)
		}
		if err := os.Remove(g.Unified); g.Unified != "" && !os.IsNotExist(err) {
			t.Errorf("control group %s was left (%v):\n%s", g.Unified, err, told(m.Dir))
		}
	}
}

// told is what a member's files tell of it.
func told(dir string) string {
	record, _ := os.ReadFile(filepath.Join(dir, "record"))
	log, _ := os.ReadFile(filepath.Join(dir, "supervisor.log"))
	return string(record) + string(log)
}

// launch launches a worker and waits until it is prepared or has ended.
func launch(t *testing.T, s Spec) (dir string, first Record) {
	t.Helper()
	if _, err := Launch(s, self()); err != nil {
		t.Fatal(err)
	}
	dir = s.MemberDir()
	return dir, await(t, dir, Prepared)
}

// run runs a worker from launch to end and returns how it ended.
func run(t *testing.T, s Spec) Record {
	t.Helper()
	dir, first := launch(t, s)
	if first.Kind == Prepared {
		send(t, dir, Go)
	}
	return await(t, dir, Ended)
}

// runTo starts a worker and waits until its output contains text.
func runTo(t *testing.T, s Spec, text string) (dir string) {
	t.Helper()
	dir, first := launch(t, s)
	if first.Kind != Prepared {
		t.Fatalf("not prepared: %+v", first)
	}
	send(t, dir, Go)
	for range 2000 {
		if strings.Contains(output(t, dir), text) {
			return dir
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no %q in output %q; record %v", text, output(t, dir), kinds(t, dir))
	return ""
}

func send(t *testing.T, dir string, o Order) {
	t.Helper()
	if err := Send(dir, o); err != nil {
		t.Fatal(err)
	}
}

// await returns the first record of a kind, or the ended one if that comes before.
func await(t *testing.T, dir string, k Kind) (found Record) {
	t.Helper()
	for end, from := time.Now().Add(20*time.Second), int64(0); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		records, _, err := ReadRecords(dir, from)
		if err != nil {
			t.Fatalf("waiting for %s: %v", k, err)
		}
		for _, found = range records {
			if found.Kind == k || found.Kind == Ended {
				return found
			}
			from = found.Next
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "supervisor.log"))
	t.Fatalf("waiting for %s: nothing in 20 s, last %+v, log %s", k, found, log)
	return found
}

// output is all that is kept of a worker's output, with a line where some was dropped.
func output(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for at := int64(0); ; {
		chunk, err := ReadLog(dir, at, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Dropped > 0 {
			fmt.Fprintf(&b, "\n[muster: %d bytes of output dropped here]\n", chunk.Dropped)
		}
		if len(chunk.Data) == 0 {
			return b.String()
		}
		b.Write(chunk.Data)
		at = chunk.Next
	}
}

func kinds(t *testing.T, dir string) (all []Kind) {
	t.Helper()
	records, _, err := ReadRecords(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		all = append(all, r.Kind)
	}
	return all
}

func count(kinds []Kind, k Kind) (n int) {
	for _, other := range kinds {
		if other == k {
			n++
		}
	}
	return n
}

// awaitGone waits until a process is no more, or a zombie.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for range 1000 {
		if !slices.ContainsFunc(processes(), func(p process) bool { return p.pid == pid }) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d lives", pid)
}
