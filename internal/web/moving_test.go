package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/view"
)

// A change appears by itself, without taking the focus or what was opened away.
func TestLive(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/job/llama-base"))
	p.says("2.118", "5 decisions in all")
	p.eval("document.querySelector('.dossier details').open = true; document.querySelector('.dossier summary').focus(); 0", nil)
	for i := range 3 {
		f.change(func(s *view.Snapshot) {
			s.ID, s.Cluster.At = fmt.Sprint(i+2), now.Add(time.Duration(i)*time.Minute)
			s.Jobs[0].LastLoss, s.Jobs[0].Progress = 2-float64(i)/10, .7+float64(i)/100
		})
		time.Sleep(30 * time.Millisecond)
	}
	p.says("From 10.81 to 1.8", "72 %")
	// The one there was and the three are a line; before it nobody was looking.
	p.until("document.querySelector('svg .line:not(.unseen)').getAttribute('d').split('L').length === 4 && document.querySelector('svg .line.unseen')")
	p.until("document.querySelector('.dossier details').open && document.activeElement.tagName === 'SUMMARY'")
	f.change(func(s *view.Snapshot) { s.Cluster.Strategy = "srtf" })
	p.until("document.querySelector('.strategy').textContent === 'srtf'")
}

// A server that goes away and comes back is noticed, both times.
func TestReconnect(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/queue"))
	p.says("Live")
	f.mu.Lock()
	f.token = "changed meanwhile"
	f.mu.Unlock()
	f.CloseClientConnections()
	p.says("Not connected, trying again", "llama-long") // what was known stays
	f.mu.Lock()
	f.token = ""
	f.mu.Unlock()
	p.says("Live")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.connected < 2 {
		t.Errorf("it connected %d times", f.connected)
	}
}

// Who needs a token is asked for it, and it goes with every question.
func TestToken(t *testing.T) {
	f := fixed(t)
	f.token = "secret"
	p := open(t, desk, f.page("#/"))
	p.says("This needs a right that you do not have", "ask an operator for one", "Not connected")
	p.shot("token")
	p.eval("document.querySelector('main [data-sign]').click(); document.getElementById('token').value = 'secret'; document.querySelector('dialog form').requestSubmit()", nil)
	p.says("Live", "gpu-04", "Sign out", "vera, viewer")
	p.eval("location.hash = '#/shares'", nil)
	p.says("uses 76 of 70 deserved")
	var where string
	p.eval("document.documentElement.outerHTML + location.href", &where)
	if strings.Contains(where, "secret") {
		t.Error("the token is in the page")
	}
	if strings.Contains(p.text(), "Report of the past") {
		t.Error("it links to a page that takes a token, which a link cannot carry")
	}
	p.eval("document.querySelector('.foot [data-sign]').click()", nil)
	p.says("This needs a right that you do not have")
}

// The form of what-if asks by the address, and says what is missing.
func TestAsk(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/whatif"))
	p.says("Run both futures")
	fill := func(name, value string) {
		p.eval(fmt.Sprintf("document.getElementById('f-%s').value = %s; 0", name, quote(value)), nil)
	}
	press := func() { p.eval("document.querySelector('main form').requestSubmit()", nil) }
	press()
	p.says("Change at least one thing")
	fill("queue", "research")
	press()
	p.says("A queue and its guarantee go together")
	fill("guarantee", "80")
	fill("nodes", "2")
	fill("without", "gpu-01, gpu-02")
	fill("job", "name: big\nworkers: 16\n")
	fill("horizon", "48")
	press()
	p.says("With the change")
	f.mu.Lock()
	got := f.asked["POST /v1/whatif"]
	f.answers["POST /v1/whatif"] = nil
	f.mu.Unlock()
	want := `{"add_nodes":2,"remove_nodes":["gpu-01","gpu-02"],"queue":{"name":"research","guarantee_devices":80},"job":"name: big\nworkers: 16","horizon_s":172800}`
	if got != want {
		t.Errorf("it asked\n%s, want\n%s", got, want)
	}
	press() // again, of a server that has changed
	p.says("This server does not offer what-if")
}

// The keyboard reaches everything: first the way past the links, then the links.
func TestKeyboard(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/"))
	p.says("gpu-04")
	const tab, enter = 9, 13
	p.key("Tab", tab)
	p.until("document.activeElement.id === 'skip'")
	p.key("Enter", enter)
	p.until("document.activeElement.id === 'main'")
	p.key("Tab", tab)
	p.until("document.querySelector('main').contains(document.activeElement) && document.activeElement !== document.body")
	p.eval("document.querySelector('.side a[href=\"#/queue\"]').focus()", nil)
	p.key("Enter", enter)
	p.says("Why it waits")
	p.until("document.querySelector('.side [aria-current=page]').textContent === 'Queue' && document.title === 'Queue – Muster'")
	// Whatever can be pressed has a name.
	var nameless []string
	p.eval("[...document.querySelectorAll('a, button, input')].filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML)", &nameless)
	if len(nameless) > 0 {
		t.Errorf("without a name: %v", nameless)
	}
}

// The stretches of a job's life follow from its dossier.
func TestStays(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/"))
	ask := `import("/console/stays.js").then((m) => m.stays(%s, %s, 1000).map((x) => [x.kind, x.from, x.to, x.words].join(" ")).join(", "))`
	at := func(sec int) string { return time.Unix(int64(sec), 0).UTC().Format(time.RFC3339) }
	decision := func(sec int, verb string, attempt int) string {
		return fmt.Sprintf(`{at: %q, verb: %q, attempt: %d, reason: ""}`, at(sec), verb, attempt)
	}
	for _, c := range []struct{ name, job, decisions, want string }{
		{"waits", `{phase: "waiting", ran_s: 0, submitted: "` + at(100) + `"}`, `[]`, "waits 100 1000 waits"},
		{"runs", `{phase: "active", ran_s: 700, submitted: "` + at(100) + `"}`, "[" + decision(300, "start", 1) + "]", "waits 100 300 waits, runs 300 1000 attempt 1"},
		{"preempted", `{phase: "waiting", ran_s: 200, submitted: "` + at(100) + `"}`, "[" + decision(300, "start", 1) + "," + decision(500, "stop", 1) + "]", "waits 100 300 waits, runs 300 500 attempt 1, waits 500 1000 waits"},
		{"suspended", `{phase: "finished", ran_s: 200, submitted: "` + at(100) + `", ended: "` + at(900) + `"}`, "[" + decision(100, "start", 1) + "," + decision(300, "suspend", 1) + "," + decision(500, "resume", 1) + "]",
			"runs 100 300 attempt 1, pauses 300 500 suspended, runs 500 900 attempt 1"},
		{"failed by itself", `{phase: "backoff", ran_s: 150, submitted: "` + at(100) + `"}`, "[" + decision(300, "start", 1) + "," + decision(450, "fail", 1) + "]", "waits 100 300 waits, runs 300 450 attempt 1, waits 450 1000 waits"},
		{"failed and tried again", `{phase: "active", ran_s: 4, submitted: "` + at(100) + `"}`, "[" + decision(100, "start", 1) + "," + decision(102, "fail", 1) + "," + decision(390, "start", 2) + "]",
			"runs 100 102 attempt 1, waits 102 390 waits, runs 390 1000 attempt 2"},
		{"tried again", `{phase: "active", ran_s: 150, submitted: "` + at(100) + `"}`, "[" + decision(100, "start", 1) + "," + decision(400, "regrant", 1) + "," + decision(600, "start", 2) + "]", "runs 100 600 attempt 1, runs 600 1000 attempt 2"},
	} {
		var got string
		if p.eval(fmt.Sprintf(ask, c.job, c.decisions), &got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A tip goes when what it is of goes, and when another page comes.
func TestTips(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/shares"))
	p.says("uses 76 of 70 deserved")
	point := func() {
		p.eval("{ const box = document.querySelector('main .bullet[data-tip]').getBoundingClientRect(); window.at = {x: box.left + 5, y: box.top + 5}; }", nil)
		var at struct{ X, Y float64 }
		p.eval("window.at", &at)
		p.do("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at.X, "y": at.Y})
		p.until("!document.getElementById('tip').hidden")
	}
	point()
	p.eval("document.querySelector('main .bullet[data-tip]').setAttribute('data-tip', 'another tip'); 0", nil)
	p.until("document.getElementById('tip').textContent === 'another tip'")
	p.eval("document.querySelector('main .bullet[data-tip]').remove()", nil)
	p.until("document.getElementById('tip').hidden")
	point()
	p.turn("#/job/llama-base")
	p.until("document.getElementById('tip').hidden")
}

// The fixture and the page are of one origin; the page of another may not be framed or
// asked, which the handler's headers say.
func TestNothingElsewhere(t *testing.T) {
	f := fixed(t)
	resp, err := http.Get(f.page(""))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p := open(t, desk, f.page("#/"))
	p.says("gpu-04")
	var from []string
	p.eval("performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith(location.origin + '/'))", &from)
	if len(from) > 0 {
		t.Errorf("it loads from elsewhere: %v", from)
	}
}
