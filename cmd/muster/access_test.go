package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/client"
)

// TestAccess starts a control plane that other machines reach, kills it, and finds its
// certificate, users and tokens again; a token is in nobody's arguments, logs or files.
func TestAccess(t *testing.T) {
	p := &controlPlane{t: t, state: shortDir(t), flags: []string{"--page", "off", "--listen", "127.0.0.1:0"}}
	p.start()
	t.Cleanup(func() { p.kill() })
	home := t.TempDir()
	where := func() (address, fingerprint string) {
		log, err := os.ReadFile(filepath.Join(p.state, "muster.log"))
		if err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(`api=https://(\S+) fingerprint=(\w+)`).FindAllStringSubmatch(string(log), -1)
		if len(all) == 0 || bytes.Contains(log, []byte("report=")) {
			t.Fatalf("not listening as asked:\n%s", log)
		}
		return all[len(all)-1][1], all[len(all)-1][2]
	}
	run := func(stdin string, env []string, args ...string) (string, error) {
		c := exec.Command(os.Args[0], args...)
		c.Env = append([]string{"MUSTER_TEST_AS_MUSTER=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}, env...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	local := []string{"MUSTER_SOCKET=" + filepath.Join(p.state, "s")}
	must := func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	must(run("", local, "user", "add", "sue", "--role", "submitter", "--tenant", "research"))
	made := strings.Fields(must(run("", local, "token", "new", "sue", "--life", "1h")))
	token := made[len(made)-1]
	address, fingerprint := where()
	if out, err := run(token, nil, "login", address); err == nil || !strings.Contains(out, fingerprint) {
		t.Errorf("a server that nobody vouches for: %v %s", err, out)
	}
	if out := must(run(token, nil, "login", address, "--fingerprint", fingerprint)); !strings.HasPrefix(out, "sue, submitter, sees research") {
		t.Errorf("logged in as %s", out)
	}
	login := filepath.Join(home, ".config", "muster", "login.json")
	if info, err := os.Stat(login); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the login's mode is %v (%v)", info.Mode(), err)
	}
	if out, err := run("", nil, "pause"); err == nil || !strings.Contains(out, "operate") {
		t.Errorf("a submitter pauses: %v %s", err, out)
	}
	p.kill()
	p.start()
	address, again := where()
	if again != fingerprint {
		t.Error("the certificate is another one after a restart")
	}
	env := []string{"MUSTER_SERVER=" + address, "MUSTER_TOKEN=" + token}
	if out := must(run("", env, "whoami", "--fingerprint", fingerprint)); !strings.HasPrefix(out, "sue, ") {
		t.Errorf("after a kill: %s", out)
	}
	must(run("", local, "token", "revoke", made[1]))
	if out, err := run("", env, "whoami", "--fingerprint", fingerprint); err == nil || !strings.Contains(out, "revoked") {
		t.Errorf("with a revoked token: %v %s", err, out)
	}
	if out := must(run("", local, "audit", "--refused")); strings.Count(out, "refused") < 2 || !strings.Contains(out, "POST /v1/pause") || !strings.Contains(out, "sue") {
		t.Errorf("the audit log has %s", out)
	}
	if err := os.Chmod(login, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run("", nil, "ls"); err == nil || !strings.Contains(out, "can be read by others") {
		t.Errorf("a login for all to read: %v %s", err, out)
	}
	clean(t, p.state, token)
}

// shortDir is a directory whose sockets have short names.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "mst")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// clean checks that a token was not left below a directory.
func clean(t *testing.T, dir, token string) {
	t.Helper()
	secret := token[strings.LastIndex(token, "_")+1:]
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Which server is asked, and with what.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	for _, name := range []string{"MUSTER_SERVER", "MUSTER_SOCKET", "MUSTER_TOKEN"} {
		t.Setenv(name, "")
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("filed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stored := client.Remote{Address: "a:1", Token: "stored", Fingerprint: "f"}
	if err := client.SaveLogin(filepath.Join(dir, "muster", "login.json"), stored); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		l    live
		env  map[string]string
		want client.Remote
		is   bool
	}{
		{"the login", live{}, nil, stored, true},
		{"a socket", live{socket: "s"}, nil, client.Remote{}, false},
		{"a socket by variable", live{}, map[string]string{"MUSTER_SOCKET": "s"}, client.Remote{}, false},
		{"a flag before a variable", live{remote: client.Remote{Address: "a:1"}}, map[string]string{"MUSTER_SOCKET": "s"}, stored, true},
		{"another server gets nothing of the login", live{remote: client.Remote{Address: "b:1", CA: "c"}}, nil, client.Remote{Address: "b:1", CA: "c"}, true},
		{"a token by variable", live{}, map[string]string{"MUSTER_TOKEN": "given"}, client.Remote{Address: "a:1", Token: "given", Fingerprint: "f"}, true},
		{"a token in a file", live{tokenFile: file}, map[string]string{"MUSTER_TOKEN": "given"}, client.Remote{Address: "a:1", Token: "filed", Fingerprint: "f"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			if got, is, err := c.l.elsewhere(); err != nil || is != c.is || is && got != c.want {
				t.Errorf("%+v, %v (%v), want %+v", got, is, err, c.want)
			}
		})
	}
	if _, _, err := (&live{socket: "s", remote: client.Remote{Address: "a:1"}}).elsewhere(); err == nil {
		t.Error("both a server and a socket were accepted")
	}
}

// A token is not taken from the arguments, which everybody on the machine can read.
func TestNoTokenFlag(t *testing.T) {
	for _, args := range [][]string{{"login", "a:1", "--token", "x"}, {"ls", "--token", "x"}, {"login", "a:1", "x"}} {
		cmd := root()
		cmd.SetArgs(args)
		cmd.SetIn(strings.NewReader(""))
		if err := cmd.Execute(); err == nil || strings.Contains(err.Error(), "expected one token") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
