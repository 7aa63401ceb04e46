package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
)

// elsewhere finds out whether a server elsewhere is meant: one that a flag, a variable
// or the last muster login names, in this order, unless a socket is named.
func (l *live) elsewhere() (r client.Remote, is bool, err error) {
	server, socket := l.remote.Address, l.socket
	if server == "" && socket == "" {
		server, socket = os.Getenv("MUSTER_SERVER"), os.Getenv("MUSTER_SOCKET")
	}
	switch {
	case server != "" && socket != "":
		return r, false, misused("both a server and a socket are named: expected one of them")
	case socket != "":
		return r, false, nil
	}
	var stored client.Remote
	path, err := client.LoginFile()
	if err == nil { // without a home there is no login
		if stored, _, err = client.Login(path); err != nil {
			return r, false, err
		}
	}
	r.Address = cmp.Or(server, stored.Address)
	if r.Address == "" {
		return r, false, nil
	}
	if r.Address == stored.Address {
		r = stored
	}
	if l.remote.CA != "" || l.remote.Fingerprint != "" {
		r.CA, r.Fingerprint = l.remote.CA, l.remote.Fingerprint
	}
	switch {
	case l.tokenFile != "":
		data, err := os.ReadFile(l.tokenFile)
		if err != nil {
			return r, false, fmt.Errorf("reading the token: %w", err)
		}
		r.Token = strings.TrimSpace(string(data))
	case os.Getenv("MUSTER_TOKEN") != "":
		r.Token = os.Getenv("MUSTER_TOKEN")
	}
	return r, true, nil
}

func loginCommand() *cobra.Command {
	var r client.Remote
	cmd := &cobra.Command{Use: "login HOST:PORT", GroupID: "operate", Args: cobra.ExactArgs(1),
		Short: "Use a server elsewhere from now on, with a token read from the standard input",
		Long: "Use a server elsewhere from now on. The token is read from the standard input, asked about, and stored in\n" +
			"muster/login.json in the directory of your settings, for you alone. muster logout forgets it.",
		Example: "  muster login gpus.example.org:7443 --fingerprint 3f0c... < token\n  muster login gpus.example.org:7443 --ca ca.pem",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Address = args[0]
			var err error
			if r.CA != "" {
				if r.CA, err = filepath.Abs(r.CA); err != nil {
					return err
				}
			}
			if r.Token, err = readToken(cmd.InOrStdin(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			who, err := client.NewRemote(r).Whoami(cmd.Context())
			if err != nil {
				return err
			}
			path, err := client.LoginFile()
			if err != nil {
				return err
			}
			if err := client.SaveLogin(path, r); err != nil {
				return err
			}
			return writeWhoami(cmd.OutOrStdout(), &who, view.TextOptions{})
		}}
	cmd.Flags().StringVar(&r.CA, "ca", "", "file of certificates, one of which vouches for the server's")
	cmd.Flags().StringVar(&r.Fingerprint, "fingerprint", "", "the server's certificate, as muster up printed it")
	return cmd
}

// readToken reads a token, from a terminal without showing it.
func readToken(in io.Reader, prompt io.Writer) (string, error) {
	var data []byte
	var err error
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(prompt, "token: ")
		data, err = term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(prompt)
	} else {
		data, err = io.ReadAll(io.LimitReader(in, 4096))
	}
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("expected one token on the standard input, as muster token new printed it")
	}
	return token, nil
}

func logoutCommand() *cobra.Command {
	return &cobra.Command{Use: "logout", GroupID: "operate", Args: cobra.NoArgs, Short: "Forget what muster login stored",
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := client.LoginFile()
			if err != nil {
				return err
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("forgetting the login: %w", err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "forgotten here; the token still counts until it expires: muster token revoke ends it")
			return err
		}}
}

func whoamiCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "whoami", GroupID: "operate", Args: cobra.NoArgs, Short: "Say who the server takes you for, and what you may do"},
		func(ctx context.Context, c *client.Client, _ []string) (access.Whoami, error) { return c.Whoami(ctx) }, writeWhoami)
}

func writeWhoami(w io.Writer, who *access.Whoami, _ view.TextOptions) error {
	line := fmt.Sprintf("%s, %s, sees %s", who.Name, who.Role, allOr(who.Tenants, "its own jobs"))
	if len(who.Queues) > 0 {
		line += ", administers " + allOr(who.Queues, "")
	}
	if who.ExpiresUs != 0 {
		line += ", until " + day(who.ExpiresUs)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
