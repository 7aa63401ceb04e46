package door

import (
	"context"
	"crypto/tls"
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

	"github.com/musterdl/muster/internal/access"
)

// peer is who is at the other end of a connection, by the kernel's word.
type peer struct {
	via      access.Via
	uid, gid uint32 // on the socket
	name     string // likewise, or the uid in digits where it has none
	from     string // address
}

type peerKey struct{}

// WithPeer is the ConnContext of every connection.
func WithPeer(ctx context.Context, c net.Conn) context.Context {
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
		p := peer{from: c.RemoteAddr().String()}
		if addr, ok := c.RemoteAddr().(*net.TCPAddr); ok && addr.IP.IsLoopback() {
			if _, encrypted := c.(*tls.Conn); !encrypted { // that port is for other machines
				p.via = access.Loopback
			}
		}
		return p
	}
	unknown := peer{from: "socket"}
	raw, err := u.SyscallConn()
	if err != nil {
		return unknown
	}
	var cred *unix.Ucred
	var errCred error
	err = raw.Control(func(fd uintptr) { cred, errCred = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || errCred != nil {
		return unknown
	}
	return peer{via: access.Socket, uid: cred.Uid, gid: cred.Gid, name: userName(cred.Uid), from: "socket"}
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

// GiveSocket gives a socket to a group, by its name or number, whose accounts may use it
// from then on.
func GiveSocket(path, group string) error {
	number, err := strconv.ParseUint(group, 10, 31)
	if err != nil {
		g, unknown := user.LookupGroup(group)
		if unknown != nil {
			return fmt.Errorf("--socket-group %s: this machine has no group of that name (see getent group)", group)
		}
		if number, err = strconv.ParseUint(g.Gid, 10, 31); err != nil {
			return fmt.Errorf("--socket-group %s: its number is %s, expected a whole number", group, g.Gid)
		}
	}
	if err := os.Chown(path, -1, int(number)); err != nil {
		return fmt.Errorf("--socket-group %s: only root gives a socket to a group that it is not in: %w", group, err)
	}
	return nil
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
