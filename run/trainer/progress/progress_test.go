package progress

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

func TestParseLine(t *testing.T) {
	for _, c := range []struct {
		line string
		want Event
		ok   bool
	}{
		{"step=120 of=400 loss=2.31 samples=3840", Event{Step: 120, Of: 400, Loss: 2.31, HasLoss: true, Samples: 3840}, true},
		{"  of=4\tstep=1   \r", Event{Step: 1, Of: 4}, true},
		{"step=7 epoch=2 lr=oops rate=1.5", Event{Step: 7, Rate: 1.5}, true},
		{"step=7 step=8", Event{Step: 8}, true},
		{"step=7 loss=nan", Event{Step: 7}, true},
		{"step=7 loss=-inf rate=-3", Event{Step: 7}, true},
		{"step=7 loss=1e999", Event{Step: 7}, true},
		{"checkpoint step=100 path=/a b/c=d.pt", Event{Kind: Checkpoint, Step: 100, Path: "/a b/c=d.pt"}, true},
		{"checkpoint path=x step=100", Event{}, false}, // path runs to the end: no step
		{"phase name=restore", Event{Kind: Phase, Name: "restore"}, true},
		{"plan step=7 file=plan.1.3.json", Event{Kind: Planned, Step: 7, File: "plan.1.3.json"}, true},
		{"plan step=7 file=a.json why=it is for 3 workers: path=x", Event{Kind: Planned, Step: 7, File: "a.json", Why: "it is for 3 workers: path=x"}, true},
		{"hello step=3", Event{}, false},
		{"", Event{}, false},
	} {
		got, ok, err := ParseLine(c.line)
		if got != c.want || ok != c.ok || (err != nil && c.line != "checkpoint path=x step=100") {
			t.Errorf("%q: %+v %t %v, want %+v", c.line, got, ok, err, c.want)
		}
	}
}

func TestMalformedLines(t *testing.T) {
	for _, line := range []string{
		"step=", "step=1.5", "step=-1", "step=99999999999999999999", "step=9007199254740993", "step=1 of", "step=1 =2",
		"step=1 loss=much", "step=1 loss=", "of=3", "loss=1", "checkpoint", "checkpoint path=/x", "phase", "phase name=", "plan", "plan step=3", "plan file= step=3", "=",
		"step=1 " + strings.Repeat("x", LineLimit),
	} {
		if e, ok, err := ParseLine(line); err == nil || ok {
			t.Errorf("%.40q is read as %+v", line, e)
		}
	}
}

func anyEvent() *rapid.Generator[Event] {
	return rapid.Custom(func(t *rapid.T) Event {
		count := rapid.Int64Range(0, countLimit)
		switch kind := rapid.SampledFrom([]Kind{Step, Checkpoint, Phase, Planned}).Draw(t, "kind"); kind {
		case Checkpoint:
			path := rapid.StringMatching(`(/[a-z =.]*[a-z])*`).Draw(t, "path")
			return Event{Kind: kind, Step: count.Draw(t, "step"), Path: path}
		case Phase:
			return Event{Kind: kind, Name: rapid.StringMatching(`[a-z=-]+`).Draw(t, "name")}
		case Planned:
			return Event{Kind: kind, Step: count.Draw(t, "step"), File: rapid.StringMatching(`[a-z.=-]+`).Draw(t, "file"), Why: rapid.StringMatching(`([a-z][a-z =:]*[a-z])?`).Draw(t, "why")}
		}
		e := Event{Step: count.Draw(t, "step"), Of: count.Draw(t, "of"), Samples: count.Draw(t, "samples")}
		if rapid.Bool().Draw(t, "has loss") {
			e.Loss, e.HasLoss = rapid.Float64().Draw(t, "loss"), true
		}
		e.Rate = float64(rapid.IntRange(0, 4000).Draw(t, "rate")) / 4
		return e
	})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		e := anyEvent().Draw(t, "event")
		got, ok, err := ParseLine(e.String())
		if e.Rate != 0 { // is written with four digits
			if math.Abs(got.Rate-e.Rate) > e.Rate*1e-3 {
				t.Fatalf("%q has rate %g", e, got.Rate)
			}
			got.Rate = e.Rate
		}
		if err != nil || !ok || got != e {
			t.Fatalf("%q is read as %+v (%t, %v)", e, got, ok, err)
		}
	})
}

func TestValuesCannotBreakTheirLine(t *testing.T) {
	for _, e := range []Event{{Kind: Phase, Name: "a b\nstep=9"}, {Kind: Planned, File: "a b", Why: "x\nstep=9"}, {Kind: Checkpoint, Path: "/x\nstep=9\r\nstep=8"}} {
		var p Parser
		if events := p.Feed([]byte(e.String() + "\n")); len(events) != 1 || events[0].Kind != e.Kind {
			t.Errorf("%q is read as %+v", e.String(), events)
		}
	}
}

// However the bytes arrive, the events are the same.
func TestParserInPieces(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, e := range rapid.SliceOf(anyEvent()).Draw(t, "events") {
			text.WriteString(e.String() + "\n" + rapid.SampledFrom([]string{"", "junk=\n", "step=x\n", "\n"}).Draw(t, "between"))
		}
		b := []byte(text.String())
		var whole, pieces Parser
		want := whole.Feed(b)
		var got []Event
		for len(b) > 0 {
			n := rapid.IntRange(1, len(b)).Draw(t, "piece")
			got = append(got, pieces.Feed(b[:n])...)
			b = b[n:]
		}
		if !slices.Equal(got, want) || whole.Malformed != pieces.Malformed {
			t.Fatalf("in pieces %v (%d malformed), at once %v (%d)", got, pieces.Malformed, want, whole.Malformed)
		}
	})
}

func TestLongLinesCostNoMemory(t *testing.T) {
	var p Parser
	for range 100 {
		p.Feed([]byte(strings.Repeat("x", 10000)))
	}
	if cap(p.lines.partial) > 2*LineLimit {
		t.Errorf("%d bytes are kept of one line", cap(p.lines.partial))
	}
	if events := p.Feed([]byte("\nstep=1\n")); len(events) != 1 || p.Malformed != 1 {
		t.Errorf("%v, %d malformed", events, p.Malformed)
	}
}

func TestWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress")
	target, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for _, value := range []string{path, "fd:" + strconv.Itoa(duplicate(t, target))} {
		w, err := Open(func(string) string { return value })
		if err != nil {
			t.Fatal(err)
		}
		w.Write(Event{Step: 1})
		w.Write(Event{Kind: Phase, Name: "train"})
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile(path)
	if want := "step=1\nphase name=train\n"; err != nil || string(b) != want+want {
		t.Errorf("the file holds %q (%v)", b, err)
	}
	none, err := Open(func(string) string { return "" })
	none.Write(Event{})
	if err != nil || none.Close() != nil {
		t.Errorf("without a target: %v", err)
	}
	if w, err := Open(func(string) string { return filepath.Join(path, "below a file") }); err == nil {
		t.Errorf("opened %v", w)
	}
}

// duplicate returns a descriptor that the writer may close.
func duplicate(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestTailOfAGrowingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	tail := NewTail(path)
	for _, c := range []struct{ content, want string }{
		{"", ""}, {"one", "one"}, {"one two", " two"}, {"one two", ""}, {"new", "new"}, {"newer", "er"},
	} {
		if c.content != "" {
			if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := tail.Read(); err != nil || string(got) != c.want {
			t.Errorf("%q: read %q (%v), want %q", c.content, got, err, c.want)
		}
	}
}

// A file that is flooded takes no more of the disk than it may, and what comes later is
// read, whether the writer appends or goes on at its own place.
func TestTailOfAFlood(t *testing.T) {
	for name, flags := range map[string]int{"appending": os.O_APPEND, "at its own place": 0} {
		path := filepath.Join(t.TempDir(), "file")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		tail, parser := NewTail(path), Parser{}
		read := func() (steps []int64) {
			t.Helper()
			for {
				b, err := tail.Read()
				if err != nil {
					t.Fatal(err)
				}
				if len(b) == 0 {
					return steps
				}
				for _, e := range parser.Feed(b) {
					steps = append(steps, e.Step)
				}
			}
		}
		write := func(text string) {
			t.Helper()
			if _, err := file.WriteString(text); err != nil {
				t.Fatal(err)
			}
		}
		const most = 1 << 20
		write("step=1\nstep=2")
		if got := read(); !slices.Equal(got, []int64{1}) {
			t.Errorf("%s: before the flood steps %v", name, got)
		}
		for range 8 {
			write("5\n" + strings.Repeat("nonsense\n", most/8) + "step=3")
			if err := tail.Bound(most); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; taken > most {
				t.Errorf("%s: the file takes %d bytes of the disk, expected at most %d", name, taken, most)
			}
		}
		write("9\nstep=400\n")
		if got := read(); !slices.Equal(got, []int64{39, 400}) { // of the newest what was whole
			t.Errorf("%s: after the flood steps %v", name, got)
		}
	}
}

func TestCommandsArrive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	c := Listen(func(string) string { return path })
	sent := []Command{{Verb: Save}, {Verb: Resize, Workers: 3}, {Verb: Batch, Batch: 48}, {Verb: Plan, Path: "/a b/plan.1.2.json"}, {Verb: Stop}}
	for _, command := range sent {
		if err := Send(path, command); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Poll()
	if err != nil || !slices.Equal(got, sent) {
		t.Errorf("%v (%v), want %v", got, err, sent)
	}
	if got, err := c.Poll(); err != nil || len(got) > 0 {
		t.Errorf("%v arrived twice (%v)", got, err)
	}
	for _, line := range []string{"", "dance", "resize", "resize 0", "resize x", "checkpoints", "plan", "plan  "} {
		if command, ok := ParseCommand(line); ok {
			t.Errorf("%q is read as %v", line, command)
		}
	}
	if got, err := Listen(func(string) string { return "" }).Poll(); err != nil || got != nil {
		t.Errorf("without a file: %v (%v)", got, err)
	}
}

func FuzzParser(f *testing.F) {
	f.Add("step=120 of=400 loss=2.31 samples=3840\ncheckpoint step=100 path=/x y\n", 3)
	f.Add("phase name=restore\nstep=\nfoo\n", 1)
	f.Add("phase name=\f0\n", 1)
	f.Add("checkpoint step=0 path=\r0\n", 3)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		var p Parser
		lines := int64(strings.Count(text, "\n"))
		var events []Event
		for b := []byte(text); len(b) > 0; {
			n := min(max(piece, 1), len(b))
			events = append(events, p.Feed(b[:n])...)
			b = b[n:]
		}
		if int64(len(events))+p.Malformed > lines {
			t.Errorf("%d events and %d malformed of %d lines", len(events), p.Malformed, lines)
		}
		for _, e := range events {
			again, ok, err := ParseLine(e.String())
			again.Rate, e.Rate = 0, 0
			if len(e.String()) <= LineLimit && (!ok || err != nil || again != e) {
				t.Errorf("%+v is written as %q and read as %+v (%v)", e, e.String(), again, err)
			}
		}
		ParseCommand(text)
	})
}
