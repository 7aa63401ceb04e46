package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
)

// How a log is read.
const (
	logChunk = 256 << 10
	logPoll  = 100 * time.Millisecond
)

// streams counts the answers that stay open.
type streams struct {
	door    *door.Door
	open    atomic.Int64
	closing chan struct{} // streams end when it is closed
}

// begin counts an answer that stays open, and returns the request with a context that ends
// with the right to it too. Whoever got no error calls done.
func (x *streams) begin(r *http.Request) (open *http.Request, done func(), err error) {
	if x.open.Add(1) > maxStreams {
		x.open.Add(-1)
		return nil, nil, &door.Failure{Status: http.StatusServiceUnavailable, Retry: 5,
			Message: fmt.Sprintf("%d answers are being streamed already: try again later", maxStreams)}
	}
	ctx, stop := x.door.Follow(r)
	return r.WithContext(ctx), func() {
		stop()
		x.open.Add(-1)
	}, nil
}

// files shows jobs together with what their workers wrote on this machine: logs, the last
// lines of a failure, how long steps took.
type files struct {
	plane   *plane.Plane
	reader  *reader
	streams *streams
	logs    func(name string, attempt, rank int32) string // nil keeps none
	plan    view.Read
}

// getLogs streams what a rank of a job printed: of the latest attempt, or of
// ?attempt=N; from byte ?from=N of all output; with ?follow=1 through its later
// attempts, until the job has ended or can never start as things are. The trailer Muster-Log-Next is the position
// behind what was sent of the last attempt.
func (f *files) getLogs(w http.ResponseWriter, r *http.Request) error {
	rank, err := door.Number(r, "rank", 0, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	attempt, err := door.Number(r, "attempt", 0, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	from, err := door.Number(r, "from", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	var at standing
	if at, err = f.standing(r); err != nil {
		return err
	}
	switch {
	case !access.From(r.Context()).Steers(at.tenant, at.owner):
		return door.Refuse(http.StatusForbidden, fmt.Sprintf("the log of %s is for %s and operators", at.name, at.owner))
	case at.array != nil:
		return at.array
	case f.logs == nil:
		return door.Refuse(http.StatusNotFound, "this server keeps no logs")
	case rank >= int(at.workers):
		return door.Refuse(http.StatusNotFound, fmt.Sprintf("job %s has no rank %d: its ranks are 0 to %d", at.name, rank, at.workers-1))
	case attempt > int(at.attempt):
		return door.Refuse(http.StatusNotFound, fmt.Sprintf("job %s has no attempt %d: its latest is %d", at.name, attempt, at.attempt))
	}
	r, done, err := f.streams.begin(r)
	if err != nil {
		return err
	}
	defer done()
	pieces := asLines(w, r, "text/plain; charset=utf-8")
	w.Header().Set("Trailer", "Muster-Log-Next")
	l := &logStream{w: w, pieces: pieces, control: http.NewResponseController(w), at: int64(from), attempt: int32(attempt), rank: int32(rank)}
	if l.attempt == 0 {
		l.attempt = at.attempt
	}
	follow := r.URL.Query().Get("follow")
	err = f.streamLogs(r, l, at, follow != "" && follow != "0")
	w.Header().Set("Muster-Log-Next", strconv.FormatInt(l.at, 10))
	return err
}

// standing is what following a log needs to know of a job.
type standing struct {
	name, owner, tenant string
	array               error // it is one, which has no log of its own
	attempt             int32
	workers             int32
	over                bool // nothing more is printed, as things are
}

func (f *files) standing(r *http.Request) (at standing, err error) {
	err = f.reader.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		j, shape := v.Job(id), v.Shape(id)
		at = standing{name: v.Name(id), array: oneOf(info, r.PathValue("job")), owner: ownerOf(info), tenant: tenantOf(info), attempt: j.Attempt, workers: shape.Gang, over: j.Leaving == plan.None && (j.Phase.Over() || j.Phase.Waits() && f.reader.site(v).Cause(id).Never)}
		for _, size := range shape.Sizes {
			at.workers = max(at.workers, size)
		}
	})
	return at, err
}

// logStream writes one rank's log, attempt after attempt.
type logStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	at      int64
	attempt int32
	rank    int32
	pieces  bool // as view.LogPiece, a line each
}

// put writes text, which ends before the stream's position.
func (l *logStream) put(text string) error {
	if l.pieces {
		return json.NewEncoder(l.w).Encode(view.LogPiece{Attempt: l.attempt, Next: l.at, Text: []byte(text)})
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// end says that no more comes, where the caller can be told.
func (l *logStream) end() error {
	if !l.pieces {
		return nil
	}
	return json.NewEncoder(l.w).Encode(view.LogPiece{Attempt: l.attempt, Next: l.at, Over: true})
}

func (f *files) streamLogs(r *http.Request, l *logStream, at standing, follow bool) error {
	poll := time.NewTicker(logPoll)
	defer poll.Stop()
	for {
		// What the job's state says must be older than what is read: then nothing is
		// printed any more once it is over.
		latest, over := at.attempt, at.over
		if l.attempt > 0 {
			if err := l.drain(f.logs(at.name, l.attempt, l.rank)); err != nil {
				return err
			}
		}
		switch {
		case follow && l.attempt < latest:
			l.attempt, l.at = l.attempt+1, 0
			if l.attempt > 1 {
				if err := l.put(fmt.Sprintf("[muster: attempt %d]\n", l.attempt)); err != nil {
					return err
				}
			}
			continue
		case !follow, over:
			return l.end()
		}
		select {
		case <-poll.C:
		case <-f.streams.closing:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
		var err error
		if at, err = f.standing(r); err != nil {
			return nil // the plane went away: what was sent stands
		}
	}
}

// drain writes what there is. An attempt that has not begun, or was trimmed, has no
// output.
func (l *logStream) drain(dir string) error {
	for {
		chunk, err := supervise.ReadLog(dir, l.at, logChunk)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		text := string(chunk.Data)
		if chunk.Dropped > 0 {
			text = fmt.Sprintf("\n[muster: %d bytes of output dropped here]\n%s", chunk.Dropped, text)
		}
		if text == "" {
			return l.control.Flush()
		}
		l.at = chunk.Next
		if err := l.put(text); err != nil {
			return err
		}
		if len(chunk.Data) == 0 {
			return l.control.Flush()
		}
	}
}
