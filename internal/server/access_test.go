package server_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/internal/server/door"
)

// The loopback port answers questions of this machine, and changes nothing.
func TestLoopback(t *testing.T) {
	w := start(t, nil)
	w.submit(job("a", 1))
	w.until("a", "active", "running")
	get := func(path, host string) (int, string) {
		r, _ := http.NewRequest("GET", w.page+path, nil)
		if host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		b.ReadFrom(resp.Body)
		return resp.StatusCode, b.String()
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/jobs", "/v1/jobs/a/why", "/v1/version", "/"} {
		if status, body := get(path, ""); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if _, page := get("/", ""); !strings.Contains(page, "<td>a</td>") || !strings.Contains(page, "node0/0") {
		t.Errorf("the page does not show the job and its device:\n%.2000s", page)
	}
	if status, _ := get("/v1/jobs", "evil.example:80"); status != http.StatusForbidden {
		t.Errorf("under another host's name: %d", status)
	}
	if status, _ := get("/v1/jobs/a/logs", ""); status != http.StatusForbidden {
		t.Errorf("a log for anybody: %d", status)
	}
	resp, err := http.Post(w.page+"/v1/jobs/a/cancel", "", nil)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a change by anybody: %v (%v)", resp, err)
	}
}

// Whoever is neither owner nor operator may look, and submit as oneself, and no more.
func TestOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("connecting as somebody else takes root")
	}
	w := start(t, nil)
	w.submit(job("ours", 1))
	if err := errors.Join(os.Chmod(w.socket, 0o666), os.Chmod(filepath.Dir(w.socket), 0o711)); err != nil {
		t.Fatal(err)
	}
	const stranger = 64321
	w.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return dialAs(w.socket, stranger)
	}}}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/v1/jobs/ours", "", 200},
		{"GET", "/v1/jobs/ours/logs", "", 403},
		{"POST", "/v1/jobs/ours/cancel", "", 403},
		{"POST", "/v1/jobs/ours/hold", "", 403},
		{"POST", "/v1/nodes/node0/drain", "", 403},
		{"POST", "/v1/pause", "", 403},
		{"POST", "/v1/jobs", "name: theirs\nuser: root\n", 403},
		{"POST", "/v1/jobs", "name: theirs\n", 201},
		{"POST", "/v1/jobs/theirs/hold", "", 200},
		{"POST", "/v1/jobs/theirs/cancel", "", 200},
	} {
		if status, body := w.do(c.method, c.path, yamlKind, c.body); status != c.want {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, status, c.want, body)
		}
	}
	if j, err := w.client.Job(t.Context(), "theirs"); err != nil || j.User != "64321" {
		t.Errorf("theirs is of %q (%v)", j.User, err)
	}
}

// dialAs connects as another user. Only the thread that connects becomes that user,
// and it ends with its goroutine, which never unlocks it.
func dialAs(socket string, uid uintptr) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, uid, uid, uid); errno != 0 {
				err = errno
				return
			}
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); err != nil {
			return
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err == nil {
			c, err = net.FileConn(f)
		}
	}()
	<-done
	return c, err
}

// A socket that a dead server left is taken over, one in use is not, nor a file.
func TestListen(t *testing.T) {
	w := start(t, nil)
	if _, err := door.ListenUnix(w.socket); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	if info, err := os.Stat(w.socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket's mode is %v (%v)", info.Mode(), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := door.ListenUnix(file); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("on a file: %v", err)
	}
	if _, err := door.ListenUnix("/tmp/" + strings.Repeat("x", 120)); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("on a long path: %v", err)
	}
}
