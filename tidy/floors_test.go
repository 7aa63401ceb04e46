package tidy

import (
	"slices"
	"strings"
	"testing"
)

// floors are the rooms of the root from the ground up: a room imports what stands below it.
var floors = []string{"model", "mechanism", "plan", "serve", "pipeline", "flow", "profile", "allocate", "schedule",
	"strategies", "engine", "catalogue", "run", "experiment", "internal", "cmd"}

// TestFloors: imports run down. testdata/upward.txt lists the pairs of rooms between which
// one runs up, with the reason; it may only shrink. A suite is a test, and draws as tests do.
func TestFloors(t *testing.T) {
	allowed := reasons(t, "testdata/upward.txt")
	met := map[string]bool{}
	for _, s := range sources(t) {
		from := slices.Index(floors, room(s.folder))
		for _, imp := range s.imports {
			to := slices.Index(floors, room(imp))
			if from < 0 || to <= from || suite(s.folder) && imp == "internal/draws" {
				continue
			}
			pair := floors[from] + " " + floors[to]
			if _, listed := allowed[pair]; !listed {
				t.Errorf("%s imports %s, which stands above it: let the upper one call the lower, or move what both need below", s.path, imp)
			}
			met[pair] = true
		}
	}
	for pair := range allowed {
		if !met[pair] {
			t.Errorf("testdata/upward.txt: no import runs from %s any more: take it out", pair)
		}
	}
}

// room is the folder of the root that a folder or import is in.
func room(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}

// owners are the packages that answer one question each for a decision: a row imports those above it, and nobody of
// its own row. Only they and the cycle, which is below them all, import them.
var owners = [][]string{
	{"engine/agenda", "engine/claims", "engine/lines", "engine/placing"},
	{"engine/room"},
	{"engine/booking", "engine/filing", "engine/rounds"},
	{"engine/compose"},
}

// TestOwnersApart: owners ask those above them alone.
func TestOwnersApart(t *testing.T) {
	row := map[string]int{}
	for i, names := range owners {
		for _, name := range names {
			row[name] = i + 1
		}
	}
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			if row[imp] > 0 && imp != "engine/compose" && s.folder != imp && row[s.folder] <= row[imp] {
				t.Errorf("%s imports %s: ask the Scheduler, or let engine/compose hand over what is needed", s.path, imp)
			}
		}
	}
}
