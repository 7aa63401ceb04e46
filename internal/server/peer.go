package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peer is who is at the other end of a connection, by the kernel's word.
type peer struct {
	known    bool
	uid, gid uint32
	name     string // or the uid in digits where it has none
}

// String names the peer for events and logs.
func (p peer) String() string {
	if !p.known {
		return "anonymous"
	}
	return fmt.Sprintf("%s uid=%d gid=%d", p.name, p.uid, p.gid)
}

// operates reports whether the peer may change what belongs to nobody or to others.
func (p peer) operates() bool { return p.known && (p.uid == 0 || int(p.uid) == os.Getuid()) }

// owns reports whether the peer may change what belongs to a user.
func (p peer) owns(user string) bool { return p.operates() || p.known && p.name == user }

type peerKey struct{}

// withPeer is the ConnContext of every connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, identify(c))
}

func peerOf(r *http.Request) peer {
	p, _ := r.Context().Value(peerKey{}).(peer)
	return p
}

// identify asks the kernel who connected; on anything but a unix socket nobody knows.
func identify(c net.Conn) peer {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return peer{}
	}
	var cred *unix.Ucred
	var errCred error
	err = raw.Control(func(fd uintptr) { cred, errCred = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || errCred != nil {
		return peer{}
	}
	return peer{known: true, uid: cred.Uid, gid: cred.Gid, name: userName(cred.Uid)}
}

// names remembers user names: a look-up may ask a directory server.
var names sync.Map // uint32 -> string

func userName(uid uint32) string {
	if name, ok := names.Load(uid); ok {
		return name.(string)
	}
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err != nil {
		return id
	}
	names.Store(uid, u.Username)
	return u.Username
}

// ListenUnix listens on a socket that its owner and group may use. A socket that a
// dead server left behind is replaced, one that is answered on is not.
func ListenUnix(path string) (net.Listener, error) {
	const longest = 107 // sun_path without its end
	if len(path) > longest {
		return nil, fmt.Errorf("socket %s: its path has %d bytes, at most %d work: choose a shorter one with --socket", path, len(path), longest)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return nil, fmt.Errorf("making the socket's directory: %w", err)
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if c, dialing := net.DialTimeout("unix", path, time.Second); dialing == nil {
			c.Close()
			return nil, fmt.Errorf("another server answers on %s: stop it first, or choose another path with --socket", path)
		}
		if info, statErr := os.Lstat(path); statErr != nil || info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s is there and no socket: move it away, or choose another path with --socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the socket of a dead server: %w", err)
		}
		l, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the socket to its group: %w", err), l.Close())
	}
	return l, nil
}

// admit applies the limits and rules that every request is under.
func (s *Server) admit(r *http.Request) error {
	p := peerOf(r)
	if !p.known {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return refuse(http.StatusForbidden, "changes are made over the unix socket, where the kernel says who asks: use the muster command")
		}
		if !localHost(r.Host) {
			return refuse(http.StatusForbidden, "this is for programs on this machine: use 127.0.0.1 or localhost as the host")
		}
	}
	user := "anonymous"
	if p.known {
		user = strconv.FormatUint(uint64(p.uid), 10)
	}
	if wait := s.limiter.take(user, time.Now()); wait > 0 {
		return &failure{Status: http.StatusTooManyRequests, retry: int(wait/time.Second) + 1,
			Message: fmt.Sprintf("more than %.0f requests per second: slow down, or submit several jobs in one request", s.limiter.perSec)}
	}
	return nil
}

// localHost keeps pages of other sites out, which a browser may be tricked to send here.
func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
