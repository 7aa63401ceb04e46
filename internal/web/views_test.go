package web_test

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/view"
)

// Every view at its address, without a click: what must be there, on a desk and on a
// phone, in light and dark, without anything too wide and without an error.
func TestViews(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page(""))
	for _, c := range []struct {
		name, hash string
		says       []string
		there      []string // selectors
	}{
		{"map", "#/", []string{"Cluster", "lab", "tiresias+backfill", "Live", "Devices in use", "of 192", "Jobs waiting", "rack-b", "8 nodes", "gpu-04", "down", "research", "closed to new work", "lost"}, []string{".node.is-down .device.lost", ".node.is-cordoned .device.closed", ".device i.cx, .device i.c0"}},
		{"map-state", "#/?by=state&node=gpu-21", []string{"running", "suspended", "being cut anew", "gpu-21", "h100-80g", "rack rack-c", "3g+4g", "Held by"}, []string{".device i.run-suspended", ".device.changing", ".node.chosen"}},
		{"queue", "#/queue", []string{"Waiting, 10", "Running, 15", "Why it waits", "48 devices are needed together and 27 are free", "in 28m", "14m to 69m", "in 49m", "35m or later", "after 42m", "never", "llama-base", "gpu-00:0-7", "62 %", "2.118", "suspended"}, []string{"td .meter", "a[href='#/job/llama-long']"}},
		{"queue-filter", "#/queue?q=product", []string{"Waiting, 2", "ads-train", "Running, 4", "ranker-daily"}, nil},
		{"job", "#/job/llama-base", []string{"llama-base", "State running has devices", "62 %", "expects 19h more", "Attempts", "suspended", "Loss", "Dossier", "Which devices?", "score 412 against 388", "rather than gpu-08", "5 decisions in all", "Log", "step 48590"}, []string{".steps li:nth-child(6)", ".strip .stay-pauses", "svg .line"}},
		{"job-plan", "#/job/llama-base", []string{"Plan min-max+zb-h1", "Predicted step 500ms", "With equal layers and GPipe 508ms", "Measured step 610ms", "Step measured last 20", "As predicted", "As measured", "rank 1", "R: forward again", "I: backward, inputs", "384.5 MiB",
			"10 Mar 13:00:00: it lost a device. It went on by: re-cut.", "re-cut (chosen) 41s 250ms 620ms 5120", "wait 12h01m 30m00s 500ms 721000 –", "swap a spare – – – – 1 broken nodes of the full plan have no spare"}, []string{"[aria-label='Reactions to the last fault'] tr.chosen:first-child", "[aria-label='As predicted'] rect.pass.c3", "[aria-label='As measured'] rect.pass.c4", ".plan .bars .meter"}},
		{"job-predicted", "#/job/protein-fold", []string{"As predicted", "Measured step not measured yet", "Not measured yet.", "Nothing has broken: after a fault"}, []string{".plan rect.pass"}},
		{"job-menu", "#/job/" + url.PathEscape(nasty), []string{"Predicted step 2.5s", "Its passes 2.25s", "Measured passes not measured yet", "As predicted", "rank 1", "2 plans in its menu", "(runs)", "tp4 pp2 dp1", "3.25s"}, []string{"[aria-label='As predicted'] rect.pass.c0"}},
		{"job-waiting", "#/job/llama-long", []string{"Why it waits", "The nodes", "14 nodes", "What would have to change", "21 more devices", "It has no plan: it asks for no pipeline.", "Who holds it", "protein-fold", "unknown", "Last tried 10 Mar 13:59:18", "When it starts", "In 28m", "64 possible futures", "Of 412 past promises in queue research, 81 % fell inside"}, []string{".range .median", ".bars .meter"}},
		{"job-failed", "#/job/flaky", []string{"Why it failed", "Out of memory: ended by SIGKILL at its limit of 512MiB", "Where rank 3 on gpu-12", "Signal", "Memory at most", "511 MiB", "The last it printed", "<b>RuntimeError: "}, []string{".facts", "pre.log"}},
		{"job-never", "#/job/giant", []string{"Why it waits", "When it starts", "Never, as things are", "the largest node has 8"}, nil},
		{"job-late", "#/job/sweep-1", []string{"When it starts", "Not before 42m from now"}, nil},
		{"job-missing", "#/job/nobody", []string{"There is no job of this name", "Go to the queue"}, nil},
		{"shares", "#/shares", []string{"Now", "all queues", "uses 76 of 70 deserved, 6 borrowed, 4 at risk", "lends 8", "Over time", "all 192 devices", "Guaranteed", "device-hours", "20114.3", "summer", "Past use counts half after 7d", "none"}, []string{".bullet .borrowed", ".bullet .lent", ".bullet .risk", "svg .layer:nth-of-type(5)"}},
		{"calendar", "#/calendar", []string{"By node", "now", "gpu-16", "claimed for a waiting job", "maintenance"}, []string{"svg .bar.claim", "svg .bar.window", "svg .bar.run", "svg .open", "svg .now"}},
		{"calendar-job", "#/calendar?by=job&span=604800", []string{"llama-long", "9 Mar 07:00 to 17 Mar 14:00", "As a table, 17 entries"}, []string{"svg .bar.claim"}},
		{"whatif", "#/whatif?strategy=srtf&horizon=24", []string{"With srtf instead of tiresias", "As it is", "With the change", "28m less (−31 %)", "2.8 points more", "5 more (+36 %)", "Devices busy", "Jobs waiting", "sweep-0", "earlier", "not in this time"}, []string{".futures .line", ".delta .earlier", ".delta .later"}},
		{"whatif-form", "#/whatif", []string{"Change something, and compare", "Run both futures", "devices that it is sure of"}, nil},
		{"defrag", "#/defrag?job=protein-big", []string{"Three moves make gpu-09 free as a whole", "protein-big, which starts", "0.53 device-hours", "Before", "After", "vision-sweep-0", "gpu-08, gpu-15", "6m50s", "0 nodes are free as a whole", "protein-big (16 devices)"}, []string{".node.changed", ".device i.stays"}},
		{"promises", "#/promises", []string{"Of 709 starts that came due, 77 % fell inside", "all queues", "none came due yet", "too hopeful", "too wide", "as meant", "too few to judge", "Median error"}, []string{".bullet .band"}},
		{"nowhere", "#/nowhere", []string{"There is no such page"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.anew(t, desk, f.page(c.hash))
			p.says(c.says...)
			for _, selector := range c.there {
				p.until("document.querySelector(" + quote(selector) + ")")
			}
			p.everywhere(func(at screen) {
				kind := map[int]string{1280: "desk", 390: "phone"}[at.width]
				if os.Getenv("MUSTER_SHOTS") == "" {
					return
				}
				p.eval("new Promise((done) => setTimeout(done, 1100))", nil) // pictures are drawn anew at most once in a second
				p.shot(c.name + "-" + kind + "-" + at.scheme)
				p.shot(c.name + "-" + kind + "-" + at.scheme + "-whole")
			})
		})
	}
}

// everywhere shows the page that is open on a desk and on a phone, in light and dark: nothing
// is too wide there.
func (p *tab) everywhere(look func(at screen)) {
	p.t.Helper()
	for _, at := range []screen{{1280, 800, "light"}, {1280, 800, "dark"}, {390, 844, "light"}, {390, 844, "dark"}} {
		p.look(at)
		p.until(fmt.Sprintf("innerWidth === %d && document.documentElement.scrollWidth <= innerWidth", at.width))
		look(at)
	}
}

func quote(s string) string { return "`" + s + "`" }

// A name with markup in it is text wherever it is shown.
func TestMarkup(t *testing.T) {
	f := fixed(t)
	p := open(t, desk, f.page("#/"))
	for _, hash := range []string{"#/", "#/?node=" + url.QueryEscape("gpu-"+nasty), "#/queue", "#/job/" + url.PathEscape(nasty), "#/job/llama-long", "#/calendar?by=job", "#/whatif?strategy=" + url.QueryEscape(nasty), "#/defrag", "#/shares"} {
		p.turn(hash)
		p.until("document.querySelector('.card')")
		if hash != "#/shares" { // where no name is nasty
			p.until("document.body.innerText.includes('onerror=') || [...document.querySelectorAll('[aria-label], [data-tip], input')].some((e) => (e.ariaLabel + e.dataset.tip + e.value).includes('onerror='))")
		}
		var images int
		p.eval("document.querySelectorAll('main img, main script, main iframe').length", &images)
		if images != 0 {
			t.Errorf("%s: a name became %d elements", hash, images)
		}
		var title string
		if p.eval("document.title", &title); title == "owned" {
			t.Errorf("%s: a name was run", hash)
		}
	}
}

// What a server does not offer is said in words, and the rest works.
func TestNotOffered(t *testing.T) {
	f := fixed(t)
	for key := range f.answers {
		if !strings.HasPrefix(key, "GET /v1/jobs/") || strings.HasSuffix(key, "/when") {
			delete(f.answers, key)
		}
	}
	p := open(t, desk, f.page("#/"))
	for hash, says := range map[string]string{"#/shares": "This server does not offer shares", "#/calendar": "This server does not offer a calendar", "#/whatif?nodes=2": "This server does not offer what-if",
		"#/defrag": "This server does not offer defragmentation", "#/promises": "This server does not offer scores of its promises", "#/queue": "This server does not offer estimates of when a job starts",
		"#/job/llama-long": "This server does not offer estimates of when a job starts"} {
		p.turn(hash)
		p.says(says)
	}
}

// An empty cluster says what to do next, on every view.
func TestEmpty(t *testing.T) {
	f := fixed(t)
	f.change(func(s *view.Snapshot) {
		*s = view.Snapshot{ID: "2", Cluster: view.Cluster{Name: "new", Strategy: "fifo", At: now, Jobs: map[string]int{}, Devices: view.Capacity{Total: 2, Free: 2}}, Jobs: []view.Job{},
			Nodes: []view.Node{{Name: "here", Status: "up", Devices: []view.Device{{Status: "steady", Free: 1}, {ID: 1, Status: "steady", Free: 1}}}}}
	})
	f.answers["GET /v1/shares"] = as[view.Shares](object{"queues": []object{}})
	f.answers["GET /v1/calendar"] = as[view.Calendar](object{"now_us": us(0), "entries": []object{}})
	f.answers["GET /v1/promises"] = as[view.Promises](object{"queues": []object{}})
	f.answers["POST /v1/defrag"] = as[defrag.Shown](object{"moves": []object{}, "before": []object{}, "after": []object{}, "words": ""})
	p := open(t, desk, f.page("#/"))
	for hash, says := range map[string]string{"#/": "No job has been submitted yet", "#/queue": "Nothing runs and nothing waits", "#/shares": "There are no queues", "#/calendar": "The calendar is empty",
		"#/defrag": "There is nothing to move", "#/promises": "No promise has been made yet"} {
		p.turn(hash)
		p.says(says)
		p.shot("empty" + strings.ReplaceAll(hash[1:], "/", "-"))
	}
	f.change(func(s *view.Snapshot) { s.Nodes = []view.Node{} })
	p.turn("#/")
	p.says("This cluster has no nodes", "muster up --slots 4")
}

// The pictures of the README, where MUSTER_SHOTS names a directory for them.
func TestPictures(t *testing.T) {
	if os.Getenv("MUSTER_SHOTS") == "" {
		t.Skip("it makes pictures for people: set MUSTER_SHOTS to the directory that they go to")
	}
	f := fixed(t)
	f.plain = true
	delete(f.answers, "GET /v1/whoami")
	for _, c := range []struct {
		name, hash, says string
		at               screen
	}{
		{"console-map", "#/", "rack-c", screen{1280, 690, "light"}}, {"console-queue", "#/queue", "in 70m", screen{1160, 680, "light"}},
		{"console-job", "#/job/llama-long", "All promises", screen{1160, 720, "light"}}, {"console-shares", "#/shares", "all 192 devices", screen{1160, 780, "light"}},
		{"console-calendar", "#/calendar", "maintenance", screen{1160, 720, "light"}}, {"console-whatif", "#/whatif?strategy=srtf&horizon=24", "Devices busy", screen{1160, 1020, "dark"}},
	} {
		p := open(t, c.at, f.page(c.hash))
		p.says(c.says)
		p.shot(c.name)
	}
}

// Of a map of 10,000 devices only what changed is made anew.
func TestLargeMap(t *testing.T) {
	f := fixed(t)
	f.change(func(s *view.Snapshot) {
		one := s.Nodes[3]
		s.Nodes = nil
		for i := range 1250 {
			one.Name = fmt.Sprintf("n%04d", i)
			s.Nodes = append(s.Nodes, one)
		}
	})
	p := open(t, desk, f.page("#/"))
	p.until("document.querySelectorAll('.node.is-up .device').length === 10000")
	p.shot("large")
	p.eval("window.made = 0; { const make = document.createElement.bind(document); document.createElement = (tag) => { made++; return make(tag); }; }", nil)
	f.change(func(s *view.Snapshot) {
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[77].Status = "down"
	})
	p.until("document.querySelectorAll('.node').length === 1250 && document.querySelectorAll('.device:not(.key)').length === 10000 && document.querySelector('[data-key=n0077].is-down .device.lost')")
	var made int
	if p.eval("made", &made); made > 3000 { // a cell for each node, and the rest of the page
		t.Errorf("it made %d elements for one change", made)
	}
	// Another order is another layout: nothing of the old one may stay.
	f.change(func(s *view.Snapshot) { s.Nodes = slices.Clone(s.Nodes[70:90]) })
	p.until("document.querySelectorAll('.node').length === 20 && document.querySelectorAll('.node .device').length === 160 && document.querySelector('.node .device')")
	p.says("n0070", "n0089", "down")
	nodes := []view.Node{}
	f.change(func(s *view.Snapshot) { nodes, s.Nodes = s.Nodes, nodes })
	p.says("This cluster has no nodes")
	f.change(func(s *view.Snapshot) { s.Nodes = nodes })
	p.until("document.querySelectorAll('.node .device').length === 160")
	// A node that changes while others go shows what it is now.
	f.change(func(s *view.Snapshot) {
		s.Nodes = slices.Clone(s.Nodes[:10])
		s.Nodes[0].Status = "cordoned"
	})
	p.until("document.querySelectorAll('.node').length === 10 && document.querySelector('[data-key=n0070].is-cordoned .device.closed')")
}
