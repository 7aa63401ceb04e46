package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUserRate: up --user-rate gives each user so many requests in a second and twice so
// many at once; who asks more is told when to come back, and nobody else notices.
func TestUserRate(t *testing.T) {
	p := &controlPlane{t: t, state: shortDir(t), flags: []string{"--page", "off", "--listen", "127.0.0.1:0", "--user-rate", "2"}}
	p.start()
	t.Cleanup(p.kill)
	p.muster("user", "add", "sue", "--role", "submitter", "--tenant", "research")
	time.Sleep(2 * time.Second) // what that took is there again
	made := strings.Fields(p.muster("token", "new", "sue", "--life", "1h"))
	log, err := os.ReadFile(filepath.Join(p.state, "muster.log"))
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`api=(https://\S+)`).FindStringSubmatch(string(log))
	if address == nil {
		t.Fatalf("it does not listen:\n%s", log)
	}
	local := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket())
	}}}
	remote := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // #nosec G402: whose certificate it is does not matter here
	ask := func(c *http.Client, address, token string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/v1/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	mine := func() *http.Response { return ask(local, "http://muster", "") }
	time.Sleep(2 * time.Second)
	passed, began, refused := 0, time.Now(), (*http.Response)(nil)
	for refused == nil && passed < 100 {
		switch r := mine(); r.StatusCode {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
			refused = r
		default:
			t.Fatal(r.Status)
		}
	}
	if most := 4 + 2*time.Since(began).Seconds(); refused == nil || passed < 4 || float64(passed) > most {
		t.Fatalf("%d requests passed, want 4 to %v", passed, most)
	}
	for range 4 {
		if r := ask(remote, address[1], made[len(made)-1]); r.StatusCode != http.StatusOK {
			t.Errorf("another user is told %s", r.Status)
		}
	}
	wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
	if err != nil || wait < 1 || wait > 2 {
		t.Fatalf("it is to come back after %q (%v)", refused.Header.Get("Retry-After"), err)
	}
	time.Sleep(time.Duration(wait) * time.Second)
	if r := mine(); r.StatusCode != http.StatusOK {
		t.Errorf("after %d s: %s", wait, r.Status)
	}
}

// TestSocketGroupFlag: up --socket-group lets the accounts of a group use the socket, and
// nobody else besides its owner; where that cannot be, nothing starts.
func TestSocketGroupFlag(t *testing.T) {
	p := &controlPlane{t: t, state: shortDir(t)}
	cmd := p.command("up", "--state", p.state, "--socket", p.socket(), "--slots", "1", "--page", "off", "--allow-root", "--socket-group", "nosuchgroup")
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--socket-group nosuchgroup") {
		t.Errorf("%v\n%s", err, out)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root is somebody else")
	}
	const group, other = 12345, 54322
	p = newcomer(t, "--page", "off", "--socket-group", strconv.Itoa(group))
	if err := os.Chmod(p.state, 0o711); err != nil {
		t.Fatal(err)
	}
	p.account.Groups = []uint32{group} // who is in a group may give what is its own to it
	p.start()
	for _, who := range []struct {
		name string
		syscall.Credential
		may bool
	}{
		{"its owner", *p.account, true},
		{"somebody in the group", syscall.Credential{Uid: other, Gid: other, Groups: []uint32{group}}, true},
		{"somebody else", syscall.Credential{Uid: other, Gid: other}, false},
	} {
		cmd := p.command("ls")
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &who.Credential}
		if out, err := cmd.CombinedOutput(); (err == nil) != who.may || !who.may && !strings.Contains(string(out), "join the group that owns it") {
			t.Errorf("%s: %v\n%s", who.name, err, out)
		}
	}
}
