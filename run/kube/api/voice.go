package api

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Events are written here and not by client-go, which starts a goroutine for each and
// takes two for equal when only their messages differ: a job that waits for another
// reason than before would keep its first words.
const (
	quiet    = 5 * time.Minute // equal words are told once in this time
	mostSaid = 1 << 15         // words that are remembered
	mostWait = 1 << 13         // words that wait to be written
	speakers = 4               // how many are written at a time
	tries    = 5
	action   = "Scheduling"
	maxNote  = 1024 // bytes, as the server has it
	maxName  = 200
)

// words are what tells one event from another.
type words struct {
	object                corev1.ObjectReference
	kind, reason, message string
}

// said is what was told before.
type said struct {
	event string // its name
	count int32
	last  time.Time // when it was said
	told  time.Time // when it was told
}

// telling is a write of an event: a new one, or that it was said again.
type telling struct {
	words words
	said  said
}

// speech is what is to be said.
type speech struct {
	log   *slog.Logger
	write func(telling) error

	mu      sync.Mutex
	said    map[words]*said
	queue   []telling
	writers int
	number  int64 // of the last event
	dropped int
	warned  time.Time
}

func (s *speech) init(log *slog.Logger, write func(telling) error) {
	s.log, s.write, s.said = log, write, map[words]*said{}
}

// Say implements Voice. Words that are said again within five minutes are counted, and
// the count is told with the next ones.
func (c *Client) Say(object corev1.ObjectReference, kind, reason, message string) {
	object.ResourceVersion, object.FieldPath = "", ""
	c.speaking.say(words{object, kind, reason, cut(message, maxNote)}, time.Now())
}

// say queues words unless they were told a short while ago, or too many wait.
func (s *speech) say(w words, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.said[w]
	if before != nil && now.Sub(before.told) < quiet {
		before.count++
		before.last = now
		return
	}
	if len(s.queue) >= mostWait {
		s.drop(now)
		return
	}
	if before == nil {
		s.makeRoom(now)
		s.number++
		before = &said{event: eventName(w.object.Name, now, s.number)}
		s.said[w] = before
	}
	before.count++
	before.last, before.told = now, now
	s.queue = append(s.queue, telling{w, *before})
	if s.writers < speakers {
		s.writers++
		go s.speak()
	}
}

// speak writes until nothing is left.
func (s *speech) speak() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.writers--
			s.mu.Unlock()
			return
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		var err error
		for try := range tries {
			if err = s.write(next); !IsTransient(err) {
				break
			}
			time.Sleep(time.Second << try)
		}
		if err != nil {
			s.log.Debug("an event was not written", "object", next.words.object.Namespace+"/"+next.words.object.Name, "reason", next.words.reason, "error", err)
		}
	}
}

// makeRoom forgets what was said long ago, or all if that is not enough: then some is
// told again too early.
func (s *speech) makeRoom(now time.Time) {
	if len(s.said) < mostSaid {
		return
	}
	for w, before := range s.said {
		if now.Sub(before.last) >= quiet {
			delete(s.said, w)
		}
	}
	if len(s.said) >= mostSaid/2 {
		clear(s.said)
	}
}

func (s *speech) drop(now time.Time) {
	s.dropped++
	if now.Sub(s.warned) >= time.Minute {
		s.log.Warn("more events than can be written: some are dropped", "dropped", s.dropped)
		s.warned = now
	}
}

// write writes an event.
func (c *Client) write(t telling) error {
	namespace := t.words.object.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where those of cluster-wide objects are
	}
	ctx := context.Background() // the client's own time limit holds
	if t.said.count > 1 {
		patch := fmt.Appendf(nil, `{"series":{"count":%d,"lastObservedTime":%q}}`, t.said.count, t.said.last.UTC().Format(metav1.RFC3339Micro))
		err := send(ctx, c.events.Patch(types.MergePatchType).Namespace(namespace).Resource("events").Name(t.said.event).
			SetHeader("Accept", onlyMetadata).Body(patch))
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: t.said.event},
		EventTime:           metav1.MicroTime{Time: t.said.last},
		ReportingController: c.options.Name,
		ReportingInstance:   cut(c.options.Instance, 128),
		Action:              action,
		Reason:              t.words.reason,
		Regarding:           t.words.object,
		Note:                t.words.message,
		Type:                t.words.kind,
	}
	return send(ctx, c.events.Post().Namespace(namespace).Resource("events").SetHeader("Accept", onlyMetadata).Body(event))
}

// eventName is a name that no other event has.
func eventName(object string, now time.Time, number int64) string {
	return cut(object, maxName) + "." + strconv.FormatInt(now.UnixMicro(), 16) + "." + strconv.FormatInt(number, 16)
}

// cut shortens a text to a number of bytes, at a whole letter.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
