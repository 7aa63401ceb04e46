package access

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Rights by role, in full.
func TestMay(t *testing.T) {
	all := []Right{Anyone, Machine, View, ViewAll, Submit, Administer, Operate}
	everything := []string{Everything}
	for _, c := range []struct {
		who  string
		id   Identity
		want string
	}{
		{"stranger", Identity{}, "anyone"},
		{"neighbour", Identity{Via: Loopback}, "anyone machine"},
		{"viewer", Identity{Name: "v", Role: Viewer, Tenants: []string{"a"}}, "anyone machine view"},
		{"wide viewer", Identity{Name: "v", Role: Viewer, Tenants: everything}, "anyone machine view view-all"},
		{"submitter", Identity{Name: "s", Role: Submitter}, "anyone machine view submit"},
		{"admin", Identity{Name: "q", Role: QueueAdmin, Queues: []string{"a"}}, "anyone machine view submit administer"},
		{"root admin", Identity{Name: "q", Role: QueueAdmin, Queues: everything}, "anyone machine view view-all submit administer"},
		{"operator", Identity{Name: "o", Role: Operator}, "anyone machine view view-all submit administer operate"},
		{"nobody with a grant", Identity{Tenants: everything, Queues: everything}, "anyone"},
	} {
		var may []string
		for _, r := range all {
			if c.id.May(r) {
				may = append(may, r.String())
			}
		}
		if got := strings.Join(may, " "); got != c.want {
			t.Errorf("%s may %s, want %s", c.who, got, c.want)
		}
	}
	if (&Identity{Role: Operator}).May(0) {
		t.Error("the right that is none is had")
	}
}

// Whoever sees or steers a job has a reason to, and a word that a path begins with is
// not a path above it.
func TestSees(t *testing.T) {
	path := rapid.SampledFrom([]string{"", "a", "a/b", "a/b/c", "ab", "b", "a/bc"})
	name := rapid.SampledFrom([]string{"", "kim", "lee"})
	draws.Check(t, func(t *rapid.T) {
		id := Identity{Name: name.Draw(t, "name"), Role: Role(rapid.IntRange(0, 4).Draw(t, "role"))}
		some := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a/b", "b", "*"}), 0, 2)
		id.Tenants = some.Draw(t, "tenants")
		if id.Role == QueueAdmin {
			id.Queues = some.Draw(t, "queues")
		}
		tenant, owner := path.Draw(t, "tenant"), name.Draw(t, "owner")
		covers := func(of []string) bool {
			return slices.ContainsFunc(of, func(o string) bool {
				parts, above := strings.Split(tenant, "/"), strings.Split(o, "/")
				return o == "*" || len(above) <= len(parts) && slices.Equal(parts[:len(above)], above)
			})
		}
		own := id.Name != "" && id.Name == owner
		if want := id.Role == Operator || id.Role != Nobody && (covers(id.Tenants) || covers(id.Queues) || own); id.Sees(tenant, owner) != want {
			t.Fatalf("%+v sees %q of %q: %v", id, tenant, owner, !want)
		}
		if want := id.Role == Operator || id.Role == QueueAdmin && covers(id.Queues) || own; id.Steers(tenant, owner) != want {
			t.Fatalf("%+v steers %q of %q: %v", id, tenant, owner, !want)
		}
		if got, may := id.Tenant(tenant); may && id.Role >= Submitter && got != "" && !id.Sees(got, "") {
			t.Fatalf("%+v submits for %q, which it does not see", id, got)
		}
	})
}

func TestRouteWithoutRight(t *testing.T) {
	table := NewRoutes(func(w http.ResponseWriter, _ *http.Request, _ Right) { w.WriteHeader(http.StatusTeapot) })
	table.Add("GET /a", View, http.NotFoundHandler())
	answer := httptest.NewRecorder()
	table.ServeHTTP(answer, httptest.NewRequest("GET", "/a", nil)) // nobody is in its context
	if answer.Code != http.StatusTeapot {
		t.Errorf("who is not known gets %d", answer.Code)
	}
	defer func() {
		if recover() == nil {
			t.Error("a route without a right was added")
		}
	}()
	table.Add("GET /b", 0, http.NotFoundHandler())
}

// Users and tokens are there again after the process is gone, without a way back from
// the file to a token.
func TestRegistry(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Add(User{Name: "sue", Role: Submitter, Tenants: []string{"a/b"}}, noon), r.Add(User{Name: "bot", Service: true, Role: Viewer}, noon)); err != nil {
		t.Fatal(err)
	}
	make := func(user string, life time.Duration) (string, Token) {
		secret, token, err := r.NewToken(user, "note", "root", life, noon)
		if err != nil {
			t.Fatal(err)
		}
		return secret, token
	}
	good, _ := make("sue", time.Hour)
	short, _ := make("sue", time.Minute)
	bad, revoked := make("sue", time.Hour)
	orphan, _ := make("bot", time.Hour)
	if _, err := r.Revoke(revoked.ID, noon); err != nil {
		t.Fatal(err)
	}
	if err := r.Remove("bot", noon); err != nil {
		t.Fatal(err)
	}
	check := func(r *Registry) {
		t.Helper()
		at := noon.Add(2 * time.Minute)
		if id, err := r.Identify(good, at); err != nil || id.Name != "sue" || id.Role != Submitter || !slices.Equal(id.Tenants, []string{"a/b"}) || !id.Expires.Equal(noon.Add(time.Hour)) {
			t.Errorf("the token is of %+v (%v)", id, err)
		}
		for secret, want := range map[string]string{short: "expired", bad: "revoked", orphan: "nobody", good[:len(good)-1]: "nobody", "": "nobody"} {
			if id, err := r.Identify(secret, at); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), want) || id.Role != Nobody {
				t.Errorf("%s: %+v (%v)", want, id, err)
			}
		}
		if _, err := r.Identify(good, noon.Add(time.Hour)); err == nil {
			t.Error("a token counts at the moment it expires")
		}
	}
	check(r)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(again)
	data, err := os.ReadFile(filepath.Join(dir, "users.json"))
	if err != nil {
		t.Fatal(err)
	}
	if random := good[strings.LastIndex(good, "_")+1:]; len(random) < 256/5 || bytes.Contains(data, []byte(random)) {
		t.Errorf("the token %s is short, or in the file", good)
	}
	// Somebody of the same name is somebody else, without the tokens.
	if err := again.Add(User{Name: "bot", Role: Operator}, noon); err != nil {
		t.Fatal(err)
	}
	if id, err := again.Identify(orphan, noon); err == nil {
		t.Errorf("a removed user's token is of %+v", id)
	}
	if err := again.Set(User{Name: "bot", Role: Viewer}, noon.Add(keptEnded+2*time.Hour)); err != nil || len(again.Tokens()) != 0 {
		t.Errorf("tokens that ended long ago are still listed: %v (%v)", again.Tokens(), err)
	}
}

// What cannot be written has not happened.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "access")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(User{Name: "sue", Role: Viewer}, noon); err == nil || !r.Alone() {
		t.Errorf("a user was added without a file: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	r := &Registry{}
	if err := r.Add(User{Name: "sue", Role: Viewer}, noon); err != nil {
		t.Fatal(err)
	}
	for _, u := range []User{{Name: "", Role: Viewer}, {Name: "a b", Role: Viewer}, {Name: "-a", Role: Viewer}, {Name: "a/b", Role: Viewer}, {Name: strings.Repeat("x", 201), Role: Viewer},
		{Name: "x"}, {Name: "x", Role: 9}, {Name: "x", Role: QueueAdmin}, {Name: "x", Role: Viewer, Queues: []string{"a"}},
		{Name: "x", Role: Viewer, Tenants: []string{""}}, {Name: "x", Role: Viewer, Tenants: []string{"a//b"}}, {Name: "x", Role: Viewer, Tenants: []string{"/a"}}, {Name: "x", Role: Viewer, Tenants: []string{"a*"}}} {
		if err := r.Add(u, noon); !errors.Is(err, ErrAsked) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if err := r.Add(User{Name: "sue", Role: Viewer}, noon); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	_, _, noUser := r.NewToken("nobody", "", "", time.Hour, noon)
	_, noToken := r.Revoke("none", noon)
	for _, err := range []error{r.Set(User{Name: "x", Role: Viewer}, noon), r.Remove("x", noon), noUser, noToken} {
		if !errors.Is(err, ErrNone) {
			t.Error(err)
		}
	}
	for _, life := range []time.Duration{0, -1, MostLife + 1} {
		if _, _, err := r.NewToken("sue", "", "", life, noon); !errors.Is(err, ErrAsked) {
			t.Errorf("a life of %v: %v", life, err)
		}
	}
	if len(r.Users()) != 1 || len(r.Tokens()) != 0 {
		t.Errorf("there are %v and %v", r.Users(), r.Tokens())
	}
}

// The audit log keeps every line in order, over several files, whatever a crash left at
// the end of one.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	open := func() *Log {
		l, err := OpenLog(dir)
		if err != nil {
			t.Fatal(err)
		}
		l.most = 4000
		return l
	}
	l := open()
	const each, writers = 25, 4
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := l.Write(Entry{AtUs: int64(i), Who: fmt.Sprint(w), Path: "/\n" + strings.Repeat("x", 2*mostText), Allowed: i%2 == 0}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"at_us":99,"who":"cut o`)
	f.Close()
	l = open()
	defer l.Close()
	if err := l.Write(Entry{AtUs: 100, Who: "last"}); err != nil {
		t.Fatal(err)
	}
	list, err := l.Read(Query{Limit: 1000})
	if err != nil || len(list) != each*writers+1 || list[len(list)-1].Who != "last" {
		t.Fatalf("%d lines (%v)", len(list), err)
	}
	at := map[string]int64{}
	for _, e := range list[:len(list)-1] {
		if e.AtUs != at[e.Who] || len(e.Path) > mostText+3 {
			t.Fatalf("after %d lines of %s comes %+v", at[e.Who], e.Who, e)
		}
		at[e.Who]++
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "audit*.jsonl")); len(files) < 5 {
		t.Errorf("%d files", len(files))
	}
	list, err = l.Read(Query{Who: "2", Refused: true, SinceUs: 10, Limit: 3})
	if err != nil || len(list) != 3 || list[0].AtUs != 19 || list[2].AtUs != 23 {
		t.Errorf("chosen were %+v (%v)", list, err)
	}
}

// A log that cannot be written says so until it can.
func TestLogBroken(t *testing.T) {
	l, err := OpenLog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good := l.file
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no device that is always full")
	}
	defer full.Close()
	l.file = full
	if err := l.Write(Entry{}); err == nil || l.Ready() == nil {
		t.Errorf("writing to a full disk: %v", err)
	}
	l.file = good
	if err := l.Ready(); err != nil {
		t.Errorf("there is room again, and: %v", err)
	}
}

func BenchmarkIdentify(b *testing.B) {
	r := &Registry{}
	for i := range 1000 {
		if err := r.Add(User{Name: fmt.Sprint("u", i), Role: Submitter}, noon); err != nil {
			b.Fatal(err)
		}
	}
	secret, _, err := r.NewToken("u500", "", "", time.Hour, noon)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.Identify(secret, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLogWrite(b *testing.B) {
	l, err := OpenLog(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := Entry{AtUs: 1, Who: "sue", How: "token abcdefghij", From: "127.0.0.1:33333", Method: "POST", Path: "/v1/jobs", Right: "submit", Allowed: true, Status: 201, Request: "ABCDEFGHIJKL"}
	for b.Loop() {
		if err := l.Write(e); err != nil {
			b.Fatal(err)
		}
	}
}
