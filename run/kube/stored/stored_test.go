package stored_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/plan/plantest"
	"github.com/musterdl/muster/run/kube/stored"
)

// inPieces writes a state in pieces and reads them again, as a store would keep them.
func inPieces(t *rapid.T, s *plan.State) (stored.Rest, []stored.Piece) {
	var pieces []stored.Piece
	for id := range s.Jobs {
		pieces = append(pieces, through(t, stored.PieceOf(s, plan.JobID(id))))
	}
	return through(t, stored.RestOf(s)), pieces
}

func through[T any](t *rapid.T, v T) (read T) {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// told is all that a state says in pieces, but for the numbers that tables give.
func told(t *rapid.T, s *plan.State) []byte {
	rest, pieces := inPieces(t, s)
	for i := range pieces {
		j := &pieces[i].Job
		j.Shape, j.Tenant, j.User, j.Class, j.Command, j.Account, j.Profile = 0, 0, 0, 0, 0, 0, 0
		for k := range pieces[i].Runs {
			pieces[i].Runs[k].Run.Terms.Plan.ID = 0
		}
	}
	b, err := json.MarshalIndent(struct {
		Rest   stored.Rest
		Pieces []stored.Piece
	}{rest, pieces}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// firstDifference are the lines of two texts around where they part.
func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			from := max(0, i-12)
			return string(bytes.Join(x[from:i+1], []byte("\n"))) + "\n--- not\n" + string(y[i])
		}
	}
	return "one is longer"
}

// TestPieces takes states to pieces: whole ones give the same state again, those of
// different moments a legal one.
func TestPieces(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		m := plantest.NewMachine(t)
		m.Around = true
		var old []stored.Piece
		var oldRest stored.Rest
		for range rapid.IntRange(1, 25).Draw(t, "rounds") {
			m.Happen(t)
			d := m.S.Edit()
			for range rapid.IntRange(0, 4).Draw(t, "edits") {
				m.Edit(t, d)
			}
			m.Commit(t, d)
			rest, pieces := inPieces(t, m.S)
			again, err := stored.Assemble(m.S.Cluster, rest, pieces)
			if err != nil {
				t.Fatalf("whole pieces do not give a state: %v", err)
			}
			if a, b := told(t, m.S), told(t, again); !bytes.Equal(a, b) {
				t.Fatalf("the state in pieces is another one:\n%s", firstDifference(a, b))
			}
			if len(old) > 0 {
				for i := range old {
					if rapid.Bool().Draw(t, "written") {
						old[i] = pieces[i]
					}
				}
				old = append(old, pieces[len(old):]...)
				if rapid.Bool().Draw(t, "the rest was written") {
					oldRest = rest
				}
				if _, _, err := stored.Salvage(m.S.Cluster, through(t, oldRest), old); err != nil {
					t.Fatalf("pieces of different moments: %v", err)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "remember") == 0 {
				oldRest, old = rest, pieces
			}
		}
	})
}

// TestPiecesOfSome leaves out the jobs of which nothing is known any more.
func TestPiecesOfSome(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		m := plantest.NewMachine(t)
		for range 20 {
			m.Happen(t)
			d := m.S.Edit()
			m.Edit(t, d)
			m.Commit(t, d)
		}
		rest, pieces := inPieces(t, m.S)
		kept := pieces[:0]
		for _, p := range pieces {
			if len(p.Runs) > 0 || !p.Job.Phase.Over() {
				kept = append(kept, p)
			}
		}
		again, err := stored.Assemble(m.S.Cluster, rest, kept)
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Jobs) != len(m.S.Jobs) {
			t.Fatalf("%d jobs, there were %d", len(again.Jobs), len(m.S.Jobs))
		}
		for id := range again.Accounts {
			if a, b := again.View().Account(id), m.S.View().Account(id); a.Used != b.Used || a.Held != b.Held {
				t.Fatalf("account %d says %+v, it said %+v", id, a, b)
			}
		}
	})
}
