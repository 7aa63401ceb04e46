package server

import (
	"net/http"
	"sync"
	"time"

	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/model/unit"
)

// snapshots returns the handler that sends a snapshot of everything: what all jobs run
// is in it, so it takes the right to operate. With ?anonymise=1 no name leaves the server. It
// reads the journal and follows it beside the plane, which is not asked for anything;
// that takes memory, so there is one at a time.
//
// A failure half way cannot be told any more: the file then has no end, and who reads it
// says so.
func (s *Server) snapshots() func(w http.ResponseWriter, r *http.Request) error {
	var one sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) error {
		anonymise := r.URL.Query().Get("anonymise")
		if anonymise != "" && anonymise != "0" && anonymise != "1" {
			return door.Refuse(http.StatusBadRequest, "anonymise is neither 0 nor 1")
		}
		if !one.TryLock() {
			return &door.Failure{Status: http.StatusTooManyRequests, Retry: 10, Message: "another snapshot is being taken: try again when it is done"}
		}
		defer one.Unlock()
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", `attachment; filename="snapshot.zip"`)
		_, err := snapshot.Save(w, s.config.Plane.History, snapshot.Options{Anonymise: anonymise == "1", Program: s.config.Version,
			MadeAt: unit.Time(time.Now().UnixMicro())})
		return err
	}
}
