package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
)

// TestReclaim runs the whole way with real processes: a control plane that begins with
// one tree of queues and is given another while jobs run; a queue that borrows what
// another leaves idle, and gives it back to the first job that asks; books that balance,
// before and after the control plane is killed.
func TestReclaim(t *testing.T) {
	t.Parallel()
	state := shortDir(t)
	file := func(name, text string) string {
		path := filepath.Join(state, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := &controlPlane{t: t, state: state, flags: []string{"--strategy", "fifo", "--slots", "4", "--queues",
		file("first.yaml", "queues: [{name: lender, limit: 1}, {name: borrower, limit: 1}]\n")}}
	p.start()
	t.Cleanup(func() { p.kill() })
	share := func(name string) (q view.QueueShare) {
		t.Helper()
		var s view.Shares
		if err := json.Unmarshal([]byte(p.muster("share", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(s.Queues, func(q view.QueueShare) bool { return q.Name == name })
		if i < 0 {
			t.Fatalf("there is no queue %s in %+v", name, s)
		}
		return s.Queues[i]
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not %s:\n%s%s", what, p.muster("share"), p.muster("ls"))
			}
		}
	}
	p.muster("submit", "--name", "long", "--array", "4", "--tenant", "borrower", "--", "sleep", "300")
	until("held to its limit", func() bool { q := share("borrower"); return q.Used == 1 && q.Waiting == 3 && q.Limit == 1 })

	p.muster("queues", "set", file("second.yaml", "protect: 0s\nqueues: [{name: lender, guarantee: 3}, {name: borrower, guarantee: 1}]\n"))
	until("borrowing all that is idle", func() bool { return share("borrower").Used == 4 })
	if b, l := share("borrower"), share("lender"); b.Borrowed != 3 || b.AtRisk != 3 || l.Lent != 3 || b.Deserved != 4 || b.PastHours != 0 {
		t.Errorf("the borrower is %+v, the lender %+v", b, l)
	}
	p.kill()
	p.start() // with the flag of the first tree, which is another than that of the journal
	if q := share("borrower"); q.Limit != 1 || q.Used == 0 {
		t.Errorf("started with a tree of its own it has %+v", q)
	}
	p.muster("queues", "set", filepath.Join(state, "second.yaml"))
	until("borrowing again", func() bool { return share("borrower").Used == 4 })

	p.muster("submit", "--name", "asks", "--tenant", "lender", "--workers", "2", "--", "sh", "-c", "sleep 2; echo was here")
	asks := p.until("asks", "running", func(j view.Job) bool { return j.Run == "running" })
	if l, b := share("lender"), share("borrower"); asks.Queue != "lender" || l.Used != 2 || l.Lent != 1 || b.Used != 2 || b.AtRisk != 1 || b.Waiting != 2 {
		t.Errorf("the lender is %+v, the borrower %+v", l, b)
	}
	if ls := p.muster("ls"); strings.Count(ls, "gave back what its queue had borrowed, to asks") == 0 && strings.Count(ls, "waiting") != 2 {
		t.Errorf("nobody gave anything back:\n%s", ls)
	}
	p.muster("wait", "asks")
	until("borrowing once more", func() bool { return share("borrower").Used == 4 })
	var books view.Accounts
	if err := json.Unmarshal([]byte(p.muster("share", "--accounts", "--json")), &books); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(books.Accounts, func(a view.Account) bool { return a.Tenant == "lender" })
	if !books.Balanced || i < 0 || books.Accounts[i].DeviceHours < 2*2/3600. || books.Accounts[i].DeviceHours > 2*30/3600. {
		t.Errorf("the books are %+v", books)
	}
	if text := p.muster("share", "--accounts"); !strings.Contains(text, "\nbooks balance: every device-hour of 5 jobs is in 2 accounts once\n") {
		t.Errorf("the books say\n%s", text)
	}
	p.muster("cancel", "long") // a control plane that is killed leaves it
	until("free", func() bool { return share("borrower").Used == 0 })
}

// TestBegins reads what --from may be.
func TestBegins(t *testing.T) {
	const now = unit.Time(1_700_000_000_000_000)
	for text, want := range map[string]unit.Time{"": now, "+2h": now.Add(2 * unit.Hour), "2023-11-14T22:13:20Z": now, "2023-11-14T23:13:20+01:00": now,
		"2023-11-14 22:13:20": unit.Time(time.Date(2023, 11, 14, 22, 13, 20, 0, time.Local).UnixMicro()),
		"2023-11-14 22:13":    unit.Time(time.Date(2023, 11, 14, 22, 13, 0, 0, time.Local).UnixMicro())} {
		if got, err := begins(text, now); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"2h", "noon", "+", "+x", "2023-13-01 00:00"} {
		if got, err := begins(text, now); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}
