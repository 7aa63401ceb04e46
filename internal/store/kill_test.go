package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// childVariable makes this test binary append to the journal in the folder it names,
// until it is killed.
const childVariable = "MUSTER_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		fmt.Println("failed:", appendForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const childWriters = 8

// appendForever appends by several goroutines, saves snapshots and compacts, and
// prints a line for each batch after it was acknowledged.
func appendForever(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for writer := range childWriters {
		go func() {
			for n := 0; ; n++ {
				seq, err := s.Append(childBatch(os.Getpid(), writer, n))
				if err != nil {
					failed <- err
					return
				}
				fmt.Printf("ack %d %d %d %d\n", seq, os.Getpid(), writer, n)
			}
		}()
	}
	go func() {
		for {
			time.Sleep(3 * time.Millisecond)
			last := s.Last()
			err := s.SaveSnapshot(last, []byte(fmt.Sprint("state ", last)))
			if err == nil {
				_, err = s.Compact()
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	return <-failed
}

func childKey(process, writer, n int) string { return fmt.Sprintf("%d/%d/%d", process, writer, n) }

func childBatch(process, writer, n int) Batch {
	key := childKey(process, writer, n)
	return Batch{
		Events: []Record{{Kind: "submit", At: unit.Time(n), Data: []byte(strings.Repeat(key, 1+n%200))}},
		Keys:   []Key{{Key: key, Value: []byte("answer to " + key), ExpiresAt: unit.Never}},
	}
}

// ack is a line that the child printed.
type ack struct {
	seq                Seq
	process, writer, n int
}

// runAndKill starts the child on dir, kills it once it has acknowledged some batches and
// a moment has passed, and returns all that it had acknowledged.
func runAndKill(t *testing.T, dir string, enough int, moment time.Duration) []ack {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = child.Process.Kill() }
	defer time.AfterFunc(time.Minute, kill).Stop() // should it hang
	var acks []ack
	for lines := bufio.NewReader(out); ; {
		if len(acks) == enough {
			time.AfterFunc(moment, kill)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line that the kill cut short does not count
		}
		var a ack
		if _, err := fmt.Sscanf(line, "ack %d %d %d %d\n", &a.seq, &a.process, &a.writer, &a.n); err != nil {
			t.Fatalf("the child said %q", line)
		}
		acks = append(acks, a)
	}
	_ = child.Wait() // it was killed
	if len(acks) < enough {
		t.Fatalf("the child acknowledged %d batches in a minute, expected %d", len(acks), enough)
	}
	return acks
}

func TestKill(t *testing.T) {
	dir := tempDir(t)
	rng := rand.New(rand.NewPCG(1, 2))
	acked := map[Seq]ack{}
	for round := range long(10) {
		enough := rng.IntN(300) * (round % 4) / 3 // each fourth time while it starts
		moment := time.Duration(rng.IntN(10_000)) * time.Microsecond
		acks := runAndKill(t, dir, enough, moment)
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("round %d, killed %v after %d batches: %v", round, moment, enough, err)
		}
		for _, a := range acks {
			if acked[a.seq].seq != 0 {
				t.Fatalf("batch %d was acknowledged twice", a.seq)
			}
			acked[a.seq] = a
		}
		wantAcked(t, s, acks, acked)
		closeStore(t, s)
	}
	t.Logf("%d batches acknowledged in %d lives", len(acked), long(10))
}

// wantAcked fails unless the journal is intact and knows all that was acknowledged:
// each batch's key, and the batch itself unless it was compacted.
func wantAcked(t *testing.T, s *Store, fresh []ack, all map[Seq]ack) {
	t.Helper()
	r, err := s.Verify()
	if err != nil || !r.Intact() || !s.Report().Intact() {
		t.Fatalf("open: %v; verify: %v, %v", s.Report(), r, err)
	}
	for _, a := range fresh {
		key := childKey(a.process, a.writer, a.n)
		if value, seen, err := s.Seen(key); err != nil || !seen || string(value) != "answer to "+key {
			t.Fatalf("batch %d was acknowledged, its key %s: %q, %v, %v", a.seq, key, value, seen, err)
		}
		if a.seq > r.Last {
			t.Fatalf("batch %d was acknowledged, the journal ends at %d", a.seq, r.Last)
		}
	}
	err = s.Replay(r.First, func(b Batch) error {
		a, known := all[b.Seq]
		if want := childBatch(a.process, a.writer, a.n); known && string(b.Events[0].Data) != string(want.Events[0].Data) {
			return fmt.Errorf("batch %d is not what was acknowledged under that number", b.Seq)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if latest, found, err := s.LatestSnapshot(); err != nil || found && string(latest.Data) != fmt.Sprint("state ", latest.Seq) {
		t.Fatalf("snapshot at %d: %q, %v", latest.Seq, latest.Data, err)
	}
}
