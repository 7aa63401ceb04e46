package api

import (
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func podRef(i int) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Pod", Namespace: "n", Name: "p" + strconv.Itoa(i)}
}

// written are the events that a speech wrote.
type written struct {
	mu   sync.Mutex
	all  []telling
	fail error
}

func (w *written) write(t telling) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, t)
	return w.fail
}

func newSpeech(write func(telling) error) *speech {
	s := &speech{}
	s.init(slog.New(slog.DiscardHandler), write)
	return s
}

// A server that does not answer holds nobody up.
func TestSayDoesNotWait(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	s := newSpeech(func(telling) error { <-stuck; return nil })
	began := time.Now()
	for i := range 10_000 {
		s.say(words{podRef(i), "Normal", "Queued", "waits"}, began)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("10,000 words took %v", took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers != speakers || len(s.queue) != mostWait || s.dropped < 10_000-mostWait-speakers || s.dropped > 10_000-mostWait {
		t.Errorf("%d write, %d wait, %d were dropped", s.writers, len(s.queue), s.dropped)
	}
}

func TestEqualWordsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w written
		s := newSpeech(w.write)
		say := func(message string) {
			s.say(words{podRef(1), "Warning", "Failed", message}, time.Now())
			synctest.Wait()
		}
		for range 10 {
			say("too big")
			time.Sleep(time.Second)
		}
		say("queue full") // for another reason: at once
		time.Sleep(quiet)
		say("too big")
		say("too big")
		if len(w.all) != 3 || w.all[0].said.count != 1 || w.all[1].words.message != "queue full" || w.all[2].said.count != 11 {
			t.Fatalf("%+v", w.all)
		}
		if w.all[0].said.event != w.all[2].said.event || w.all[0].said.event == w.all[1].said.event {
			t.Errorf("%+v", w.all)
		}
	})
}

func TestWordsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			fail error
			want int
		}{{apierrors.NewServiceUnavailable("soon"), tries}, {errors.New("wrong"), 1}, {nil, 1}} {
			w := written{fail: c.fail}
			s := newSpeech(w.write)
			s.say(words{podRef(1), "Normal", "A", "b"}, time.Now())
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(w.all) != c.want {
				t.Errorf("%v: %d tries, expected %d", c.fail, len(w.all), c.want)
			}
		}
	})
}

func TestMemoryOfWordsIsBounded(t *testing.T) {
	s := newSpeech(func(telling) error { return nil })
	now := time.Now()
	for i := range 3 * mostSaid {
		s.say(words{podRef(i), "Normal", "A", "b"}, now)
		if i%mostWait == mostWait-1 {
			for waiting := true; waiting; time.Sleep(time.Millisecond) {
				s.mu.Lock()
				waiting = len(s.queue) > 0
				s.mu.Unlock()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.said) > mostSaid || len(s.said) == 0 || s.dropped > 0 {
		t.Errorf("%d are remembered, %d dropped", len(s.said), s.dropped)
	}
}
