package web_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/journeytest"
)

// up starts the real program with four slots. It returns the address of its console and
// what calls it and returns what it prints.
func up(t *testing.T) (page string, muster func(args ...string) string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "msj") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "muster")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	plane := exec.Command(program, "up", "--state", dir, "--strategy", "srtf+declared", "--slots", "4", "--slot-cpu", "200m", "--grace", "2s", "--allow-root")
	plane.Stdout, plane.Stderr = log, log
	if err := plane.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(plane.Process.Signal(os.Interrupt), plane.Wait()); err != nil {
			t.Error(err)
		}
	})
	muster = func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "MUSTER_SOCKET="+filepath.Join(dir, "muster.sock"))
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		if err != nil && (args[0] != "wait" || !errors.As(err, &failed)) { // which exits as the jobs did
			t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said, err := os.ReadFile(log.Name())
		if found := regexp.MustCompile(`report=(http://\S+)`).FindSubmatch(said); found != nil {
			return string(found[1]) + "console/", muster
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the program does not say where its page is: %v\n%s", err, said)
		}
	}
}

// The jobs of somebody's first hour, those that TestJourney of the program submits, are run
// and then shown in every view: how each failed is said on its page.
func TestJourney(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("half a minute; set MUSTER_LONG=1")
	}
	chromium(t) // without one nothing needs to be built
	page, muster := up(t)
	names := []string{"wait"}
	for _, k := range append([]journeytest.Kind{journeytest.Fine, journeytest.Sweep, journeytest.Broken}, journeytest.Failing...) {
		muster(k.Args("submit")...)
		names = append(names, k.Name)
	}
	muster(names...)
	// What jobs run and print is for who may see it: the browser shows an operator's token.
	muster("user", "add", "olga", "--role", "operator")
	token := strings.Fields(muster("token", "new", "olga", "--life", "1h"))
	p := open(t, desk, page)
	p.says("This needs a right that you do not have")
	p.eval("document.querySelector('main [data-sign]').click(); document.getElementById('token').value = "+quote(token[len(token)-1])+"; document.querySelector('dialog form').requestSubmit()", nil)
	p.says("Live", "srtf", "olga, operator")
	muster(journeytest.Long.Args("submit")...)
	p.turn("#/job/long")
	p.says("State running")
	muster(journeytest.Short.Args("submit")...)
	muster("wait", "short")
	p.says("State running", "attempt 2")
	muster(journeytest.Rest.Args("submit")...)
	for _, hash := range []string{"#/", "#/?by=state", "#/queue", "#/shares", "#/calendar", "#/calendar?by=job", "#/promises", "#/whatif?nodes=1", "#/defrag",
		"#/job/ok", "#/job/sweep", "#/job/broken", "#/job/broken-1", "#/job/long", "#/job/short", "#/job/rest", "#/job/rest-99"} {
		p.journey(hash)
	}
	for _, k := range journeytest.Failing {
		p.journey("#/job/"+k.Name, "failed", "Why it failed", k.Words, k.Last)
	}
	muster("cancel", "rest")
	muster("cancel", "long")
	p.turn("#/job/rest")
	p.says("cancelled")
	p.journey("#/queue")
}

// journey goes to a view, which says some things, and looks at it on every screen.
func (p *tab) journey(hash string, says ...string) {
	p.t.Helper()
	p.turn(hash)
	const there = "document.querySelector('main .card') && !document.querySelector('main .waiting')"
	p.until(there)
	for _, text := range says {
		p.until(fmt.Sprintf("document.body.innerText.replace(/\\s+/g, ' ').toLowerCase().includes(%s)", quote(strings.ToLower(text))))
	}
	p.everywhere(func(at screen) {
		p.until(there)
		p.shot(fmt.Sprintf("journey%s-%d-%s", strings.ReplaceAll(hash[1:], "/", "-"), at.width, at.scheme))
	})
}
