package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
)

// Whatever a submitter asks, no word of the answer is the name of another tenant's job.
func TestTenants(t *testing.T) {
	w := share(t)
	ctx := t.Context()
	submit := func(who string, jobs ...workload.Job) error {
		_, err := w.as(who).Submit(ctx, jobs, "")
		return err
	}
	secret := job("hush-hush", 2)
	secret.Tenant = "ops"
	if err := errors.Join(submit("fred", secret, job("hush-too", 2), job("hush-first", 2)), submit("sue", job("mine", 2), job("next", 2)), submit("sam", job("near", 1))); err != nil {
		t.Fatal(err)
	}
	// Only an operator can tie jobs of two tenants together.
	tied := one("tied")
	tied.User, tied.Tenant, tied.After = "sue", "research/vision", []string{"hush-hush"}
	if err := submit("olga", tied); err != nil {
		t.Fatal(err)
	}
	sue := w.as("sue")
	list, err := sue.Jobs(ctx, client.ListOptions{All: true})
	if err != nil || len(list.Jobs) != 3 || list.LeftOut != 0 || list.Jobs[0].Tenant != "research/vision" {
		t.Errorf("sue sees %+v (%v)", list, err)
	}
	if list, err = w.as("sam").Jobs(ctx, client.ListOptions{}); err != nil || len(list.Jobs) != 4 {
		t.Errorf("sam sees %d jobs, want the 4 of research and below (%v)", len(list.Jobs), err)
	}
	if list, err = w.as("wide").Jobs(ctx, client.ListOptions{}); err != nil || len(list.Jobs) != 7 {
		t.Errorf("who sees all tenants sees %d of 7 jobs (%v)", len(list.Jobs), err)
	}
	watching, stop := context.WithCancel(ctx)
	var seen view.Snapshot
	_ = sue.Watch(watching, func(s view.Snapshot) error { seen = s; stop(); return nil })
	if len(seen.Jobs) != 3 || len(seen.Nodes) != 2 {
		t.Errorf("sue watches %+v", seen)
	}
	said, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/jobs?all=1", "/v1/jobs/mine", "/v1/jobs/next", "/v1/jobs/next/why", "/v1/jobs/next/steps", "/v1/jobs/mine/steps", "/v1/jobs/tied", "/v1/jobs/tied/why", "/v1/nodes", "/v1/cluster"} {
		status, answer := w.whole("sue", path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		said = append(said, answer...)
	}
	names := func(s string) bool { return strings.Contains(s, "hush") }
	if names(string(said)) {
		t.Errorf("it was said:\n%s", said)
	}
	vision := access.Identity{Name: "sue", Role: access.Submitter, Tenants: []string{"research/vision"}}
	dossier, err := w.server.Veiled(&vision, view.Steps{Decisions: []view.Decision{{Reason: "made way for hush-hush.", Steps: []view.Step{{Chose: "mine", Rejected: "hush-too"}}}}})
	if d := dossier.Decisions[0]; err != nil || d.Reason != "made way for another tenant's job." || d.Steps[0].Chose != "mine" || names(d.Steps[0].Rejected) {
		t.Errorf("a dossier says %+v (%v)", d, err)
	}
	if !strings.Contains(string(said), "another tenant's job") {
		t.Error("nothing says that somebody else holds devices")
	}
	var wide string
	for _, path := range []string{"/v1/cluster", "/v1/nodes", "/v1/jobs/tied", "/v1/jobs/tied/why"} { // or the above proves nothing
		_, answer := w.whole("wide", path)
		wide += answer
	}
	if strings.Count(wide, "hush") < 9 {
		t.Errorf("who sees everything is told only:\n%s", wide)
	}
	// Nor can a name be found out by asking about it, coming after it or taking it.
	_, none := w.whole("sue", "/v1/jobs/no-such")
	if status, other := w.whole("sue", "/v1/jobs/hush-hush"); status != 404 || strings.ReplaceAll(other, "hush-hush", "no-such") != none {
		t.Errorf("asked about another's job: %d %s, and about none: %s", status, other, none)
	}
	after, foreign := one("late"), one("cuckoo")
	after.After, foreign.Tenant = []string{"hush-hush"}, "ops"
	if err := submit("sue", after); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("coming after another's job: %v", err)
	}
	if err := submit("sue", foreign); err == nil || !strings.Contains(err.Error(), "research/vision") {
		t.Errorf("submitting for another tenant: %v", err)
	}
	if err := submit("sue", one("hush-hush")); err == nil || strings.Contains(err.Error(), "waiting") || strings.Contains(err.Error(), "active") {
		t.Errorf("taking a name: %v", err)
	}
	if err := submit("vera", one("x")); err == nil || !strings.Contains(err.Error(), "viewer") {
		t.Errorf("a viewer submits: %v", err)
	}
}

// whole returns the whole answer to a question.
func (w *shared) whole(who, path string) (int, string) {
	w.t.Helper()
	status, body := w.ask(who, "GET", path, "", "", "")
	return status, body
}

// The word of the kernel: operators stay operators, users are what the registry says,
// and others see what is theirs once there are users.
func TestLocal(t *testing.T) {
	r := &access.Registry{}
	const stranger = 64321
	alone := r.Local("kim", stranger, stranger)
	if !alone.SeesAll() || alone.Role != access.Submitter || alone.Operates() {
		t.Errorf("without users kim is %+v", alone)
	}
	if err := errors.Join(r.Add(access.User{Name: "vera", Role: access.Viewer, Tenants: []string{"a"}}, time.Now()),
		r.Add(access.User{Name: "root", Role: access.Viewer}, time.Now())); err != nil {
		t.Fatal(err)
	}
	if id := r.Local("kim", stranger, stranger); id.Sees("a", "vera") || !id.Sees("a", "kim") || id.Role != access.Submitter {
		t.Errorf("with users kim is %+v", id)
	}
	if id := r.Local("vera", stranger, stranger); id.Role != access.Viewer || !id.Sees("a/b", "x") || id.Sees("ab", "x") {
		t.Errorf("vera is %+v", id)
	}
	for _, uid := range []int{0, os.Getuid()} {
		if id := r.Local("root", uint32(uid), 0); !id.Operates() {
			t.Errorf("uid %d is %+v", uid, id)
		}
	}
}

// What is taken away is gone at once, also from answers that are still open.
func TestTakenAway(t *testing.T) {
	for _, c := range []struct {
		name string
		away func(w *shared, token string) error
	}{
		{"revoked", func(w *shared, token string) error {
			_, err := w.as("olga").RevokeToken(t.Context(), token)
			return err
		}},
		{"removed", func(w *shared, _ string) error { return w.as("olga").RemoveUser(t.Context(), "sue") }},
		{"another role", func(w *shared, _ string) error {
			_, err := w.as("olga").SetUser(t.Context(), access.User{Name: "sue", Role: access.Viewer})
			return err
		}},
		{"expired", func(*shared, string) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := share(t)
			at := time.Now()
			if c.name == "expired" {
				at = at.Add(700*time.Millisecond - time.Hour)
			}
			id := w.token("sue", "sue", at)
			sue := w.as("sue")
			if _, err := sue.Submit(t.Context(), []workload.Job{one("a")}, ""); err != nil {
				t.Fatal(err)
			}
			watching, waiting, began := make(chan error, 1), make(chan error, 1), make(chan struct{}, 100)
			go func() {
				watching <- sue.Watch(t.Context(), func(view.Snapshot) error { began <- struct{}{}; return nil })
			}()
			<-began
			go func() {
				_, err := sue.Wait(t.Context(), "a")
				waiting <- err
			}()
			time.Sleep(50 * time.Millisecond)
			if err := c.away(w, id); err != nil {
				t.Fatal(err)
			}
			for what, ended := range map[string]chan error{"watch": watching, "wait": waiting} {
				select {
				case err := <-ended:
					var refused *client.Error
					if what == "wait" && (!errors.As(err, &refused) || refused.Status != http.StatusUnauthorized) {
						t.Errorf("the wait ended with %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatalf("the %s goes on", what)
				}
			}
			if _, err := sue.Jobs(t.Context(), client.ListOptions{}); (err == nil) != (c.name == "another role") {
				t.Errorf("listing afterwards: %v", err)
			}
		})
	}
}

// No token is anywhere but with who was given it.
func TestNoSecret(t *testing.T) {
	var log strings.Builder
	w := shareOn(t, 2, &log)
	made, err := w.as("olga").NewToken(t.Context(), access.TokenRequest{User: "sue"})
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["sue"] = made.Secret
	if _, err := w.as("sue").Submit(t.Context(), []workload.Job{one("a")}, "key"); err != nil {
		t.Fatal(err)
	}
	w.ask("sue", "POST", "/v1/pause", "", "", "")
	_, listed := w.whole("olga", "/v1/tokens")
	_, users := w.whole("olga", "/v1/audit")
	everything := log.String() + listed + users
	for _, dir := range []string{w.dir, filepath.Dir(w.socket)} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			everything += string(data)
			if info, e := d.Info(); e != nil || dir == w.dir && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v (%v)", path, info.Mode(), e)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(everything, made.ID) {
		t.Error("the token's id is nowhere, so this looked in the wrong places")
	}
	for who, secret := range w.tokens {
		if _, random, ok := strings.Cut(strings.TrimPrefix(secret, "muster_"), "_"); ok && strings.Contains(everything, random) {
			t.Errorf("the token of %s was left somewhere", who)
		}
	}
}

// A client knows the server by its certificate, and sends no token to another.
func TestPinning(t *testing.T) {
	w := share(t)
	ca := filepath.Join(w.dir, "tls-cert.pem")
	other := strings.Repeat("00", 32)
	for _, c := range []struct {
		name   string
		remote client.Remote
		want   string // of the error
	}{
		{"fingerprint", client.Remote{Fingerprint: w.print}, ""},
		{"as openssl prints it", client.Remote{Fingerprint: strings.ToUpper(w.print[:2]) + ":" + w.print[2:]}, ""},
		{"ca", client.Remote{CA: ca}, ""},
		{"nobody", client.Remote{}, w.print},
		{"another", client.Remote{Fingerprint: other}, "another certificate"},
		{"short", client.Remote{Fingerprint: "00"}, "64 hexadecimal digits"},
		{"both", client.Remote{Fingerprint: other, CA: ca}, "one of them"},
		{"no file", client.Remote{CA: ca + "x"}, "no such file"},
		{"no certificate", client.Remote{CA: filepath.Join(w.dir, "users.json")}, "found none"},
	} {
		c.remote.Address, c.remote.Token = w.remote, w.tokens["sue"]
		who, err := client.NewRemote(c.remote).Whoami(t.Context())
		if c.want == "" && (err != nil || who.Name != "sue" || who.ExpiresUs == 0) {
			t.Errorf("%s: %+v (%v)", c.name, who, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
