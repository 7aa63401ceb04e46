package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/server/door"
)

// accessDir is where users, tokens, the audit log and the certificate are kept.
func accessDir(state string) string { return filepath.Join(state, "access") }

// listeners are where the API is served: the socket always, other machines and the
// page where they are asked for.
func (f *upFlags) listeners(state string, log *slog.Logger) (list []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				err = errors.Join(err, l.Close())
			}
		}
	}()
	if f.socket == "" {
		f.socket = filepath.Join(state, "muster.sock")
	}
	socket, err := door.ListenUnix(f.socket)
	if err != nil {
		return nil, err
	}
	list = append(list, socket)
	if f.socketGroup != "" {
		if err := door.GiveSocket(f.socket, f.socketGroup); err != nil {
			return list, err
		}
	}
	log.Info("listening", "api", f.socket)
	if f.page != "" && f.page != "off" {
		page, err := listenPage(f.page)
		if err != nil {
			return list, err
		}
		list = append(list, page)
		log.Info("listening", "report", "http://"+page.Addr().String()+"/")
	}
	if f.listen == "" {
		if f.tls.cert != "" || f.tls.key != "" {
			return list, misused("--tls-cert and --tls-key are for --listen, which is not given")
		}
		return list, nil
	}
	remote, err := f.listenTLS(state, log)
	if err != nil {
		return list, err
	}
	return append(list, remote), nil
}

// listenPage listens for this machine only: what is served there is not encrypted.
func listenPage(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--page: %w", err)
	}
	if addr, ok := l.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return nil, errors.Join(misused("--page %s: expected an address of this machine alone, such as 127.0.0.1:8080; other machines are served by --listen", address), l.Close())
	}
	return l, nil
}

// listenTLS listens for other machines, and says how they know that it is this server.
func (f *upFlags) listenTLS(state string, log *slog.Logger) (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, misused("--listen %q: expected HOST:PORT", f.listen)
	}
	var cert tls.Certificate
	switch {
	case (f.tls.cert == "") != (f.tls.key == ""):
		return nil, misused("--tls-cert and --tls-key go together")
	case f.tls.cert != "":
		cert, err = access.Certificate(f.tls.cert, f.tls.key)
	default:
		cert, err = access.OwnCertificate(accessDir(state), time.Now(), host)
	}
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	log.Info("listening", "api", "https://"+l.Addr().String(), "fingerprint", access.Fingerprint(cert.Certificate[0]))
	if os.Geteuid() != 0 {
		log.Warn("only root can run jobs as the users they belong to: of other users than the one that runs this server, no job can start")
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}), nil
}
