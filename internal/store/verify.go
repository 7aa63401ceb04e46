package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Loss is a run of batches that were acknowledged and are not there any more, or not
// as they were written: at least Batches of them from number From on.
type Loss struct {
	From    Seq
	Batches int64
	Why     string
}

// String says which batches are lost and why.
func (l Loss) String() string {
	return fmt.Sprintf("lost %d batches from batch %d on: %s", l.Batches, l.From, l.Why)
}

// Report is what a check of the journal found.
type Report struct {
	First     Seq      // First to Last were checked and are intact; none if First > Last
	Last      Seq      // the newest batch that can be trusted
	Snapshots []Seq    // intact snapshots, newest first
	Keys      int      // intact idempotency keys, expired ones included
	Loss      *Loss    // what is missing at the end; nil if nothing is
	Damage    []string // everything else that is wrong
	Mended    []string // what was wrong with what follows from the batches, which are all there: it was made anew
	Accepted  []Loss   // earlier losses that the operator accepted
}

// Intact says whether nothing is wrong.
func (r Report) Intact() bool { return r.Loss == nil && len(r.Damage) == 0 }

// String is the report in one line.
func (r Report) String() string {
	parts := []string{"no batches held"}
	if r.First <= r.Last {
		parts[0] = fmt.Sprintf("batches %d to %d are intact", r.First, r.Last)
	}
	if r.Loss != nil {
		parts = append(parts, r.Loss.String())
	}
	parts = append(parts, r.Damage...)
	for _, m := range r.Mended {
		parts = append(parts, "mended: "+m)
	}
	for _, l := range r.Accepted {
		parts = append(parts, "accepted earlier: "+l.String())
	}
	return strings.Join(parts, "; ")
}

// DamageError is returned where the journal cannot give what it once acknowledged.
type DamageError struct {
	Dir    string
	Report Report
}

// Error says what is wrong and what the operator can do.
func (e *DamageError) Error() string {
	return fmt.Sprintf("the journal %s is damaged: %s: restore the folder from a backup, or accept the loss (AcceptTruncatedTail) to go on from batch %d",
		e.Dir, e.Report, e.Report.Last)
}

// depth says how much inspect looks at.
type depth int

const (
	tailOnly   depth = iota // what recovery needs: from the newest intact snapshot on
	everything              // the history before it too
)

// findings are a report and the places that a rebuild needs.
type findings struct {
	report Report
	origin *origin // nil where its row is damaged
	base   link    // the newest intact snapshot, else the origin
	tail   link    // the newest batch that can be trusted
	harm   int     // how many of report.Damage are of what cannot be made anew from the batches
}

// harms notes damage of what no batch says.
func (f *findings) harms(format string, args ...any) {
	f.harm++
	f.damage(format, args...)
}

func (f *findings) damage(format string, args ...any) {
	f.report.Damage = append(f.report.Damage, fmt.Sprintf(format, args...))
}

// Verify checks everything that the journal holds up to the newest batch at the time of
// the call; appends go on meanwhile. The error says why the check could not be done.
func (s *Store) Verify() (Report, error) {
	s.upkeep.Lock()
	defer s.upkeep.Unlock()
	found, err := s.inspect(everything)
	if err != nil {
		return Report{}, s.wrap(err)
	}
	return found.report, nil
}

// inspect checks the journal; it changes nothing.
func (s *Store) inspect(depth depth) (findings, error) {
	// The head file is read first: batches that come later must not look like a loss.
	head, headFound := s.head.read()
	to := Seq(math.MaxInt64)
	if depth == everything {
		to = max(s.Last(), head.seq)
	}
	var f findings
	for _, step := range []func(querier) error{f.findBase, f.readAccepted, f.checkStructure} {
		if err := step(s.readers); err != nil {
			return f, err
		}
	}
	keys, err := f.readKeys(s.readers)
	if err != nil {
		return f, err
	}
	if depth == everything {
		if err := f.checkHistory(s.readers, keys); err != nil {
			return f, err
		}
	}
	if err := f.followTail(s.readers, keys, to, head); err != nil {
		return f, err
	}
	if !headFound && f.tail.seq > 0 && f.report.Loss == nil {
		f.harms("the head file is missing or damaged: whether batches after %d were lost cannot be told", f.tail.seq)
	}
	return f, nil
}

// findBase finds the newest intact snapshot, or the origin, from which the chain is followed.
func (f *findings) findBase(q querier) error {
	o, err := loadOrigin(q)
	switch {
	case err == nil:
		f.origin = &o
	case isDamage(err):
		f.harms("%v", err)
	default:
		return err
	}
	held, err := snapshotSeqs(q)
	if err != nil && !isDamage(err) {
		return err
	}
	if err != nil {
		f.damage("%v", err)
	}
	for _, seq := range held {
		at, _, err := loadSnapshot(q, seq)
		switch {
		case err == nil && len(f.report.Snapshots) == 0:
			f.base = at
			fallthrough
		case err == nil:
			f.report.Snapshots = append(f.report.Snapshots, seq)
		case isDamage(err):
			f.damage("%v", err)
		default:
			return err
		}
	}
	if len(f.report.Snapshots) == 0 {
		if f.origin == nil {
			return fmt.Errorf("neither the origin nor a snapshot is intact: %w", errDamaged)
		}
		if f.origin.at.seq > 0 {
			return unopenable{noState(*f.origin, nil)}
		}
		f.base = f.origin.at
	}
	return nil
}

// readAccepted lists the losses that were accepted before.
func (f *findings) readAccepted(q querier) error {
	rows, err := q.Query("SELECT seq, lost, why, sum FROM accepted ORDER BY id")
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var seq, lost whole
			var why text
			var hash blob
			if err = rows.Scan(&seq, &lost, &why, &hash); err != nil {
				break
			}
			l := Loss{Seq(seq), int64(lost), string(why)}
			if l.sum() != asDigest(hash) {
				err = errDamaged
				break
			}
			f.report.Accepted = append(f.report.Accepted, l)
		}
		err = errors.Join(err, rows.Err())
	}
	if isDamage(err) {
		f.harms("the list of accepted losses: %v", err)
		return nil
	}
	return err
}

func (l Loss) sum() digest {
	return sum("accepted", number(int64(l.From)), number(l.Batches), []byte(l.Why))
}

func putAccepted(tx *sql.Tx, l Loss) error {
	s := l.sum()
	_, err := tx.Exec("INSERT INTO accepted (seq, lost, why, sum) VALUES (?, ?, ?, ?)", l.From, l.Batches, l.Why, s[:])
	return err
}

// checkStructure lets SQLite check its pages: damage there may hide rows, or make a
// later write overwrite good ones, though every row that we read is right.
func (f *findings) checkStructure(q querier) error {
	rows, err := q.Query("PRAGMA quick_check(5)")
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var line string
			if err = rows.Scan(&line); err != nil {
				break
			}
			if line != "ok" {
				f.damage("database structure: %s", strings.ReplaceAll(line, "\n", " "))
			}
		}
		err = errors.Join(err, rows.Err())
	}
	if isDamage(err) {
		f.damage("database structure: %v", err)
		return nil
	}
	return err
}

// keyPlace is what the check of the batches needs to know of a key's row.
type keyPlace struct {
	seq Seq
	sum digest
}

// readKeys checks all rows of the key table.
func (f *findings) readKeys(q querier) (map[string]keyPlace, error) {
	keys := make(map[string]keyPlace)
	err := eachKey(q, func(k keyRow, err error) error {
		if err != nil {
			f.damage("idempotency key number %d: %v", len(keys)+1, err)
			return nil
		}
		keys[k.Key.Key] = keyPlace{k.seq, k.sum()}
		return nil
	})
	if err != nil && !isDamage(err) {
		return nil, err
	}
	if err != nil {
		f.damage("%v", err)
	}
	f.report.Keys = len(keys)
	return keys, nil
}

// eachKey calls fn with each row of the key table, or with what is wrong with it.
func eachKey(q querier, fn func(keyRow, error) error) error {
	rows, err := q.Query("SELECT key, value, seq, expires, sum FROM key ORDER BY key")
	if err != nil {
		return fmt.Errorf("read the idempotency keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		k, err := scanKey(rows.Scan)
		if err := fn(k, err); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the idempotency keys: %w", err)
	}
	return nil
}

// checkBatchKeys finds keys that a batch acknowledged and the table does not know: a
// repeated request would be taken for a new one.
func (f *findings) checkBatchKeys(b Batch, keys map[string]keyPlace) {
	purged := unit.Never // unknown, so that nothing can be said to be missing
	if f.origin != nil {
		purged = f.origin.purged
	}
	for _, k := range b.Keys {
		row, held := keys[k.Key]
		right := held && (row.seq > b.Seq || row == keyPlace{b.Seq, keyRow{k, b.Seq}.sum()})
		if !right && (held || k.ExpiresAt > purged) {
			f.damage("idempotency key %q of batch %d is missing from its table", k.Key, b.Seq)
		}
	}
}

// checkHistory follows the chain from the origin to the base. What is wrong there
// costs history, not state.
func (f *findings) checkHistory(q querier, keys map[string]keyPlace) error {
	if f.origin == nil {
		f.report.First = f.base.seq + 1
		return nil
	}
	f.report.First = f.origin.at.seq + 1
	at, fault, err := walk(q, f.origin.at, f.base.seq, func(b Batch, _ stored) error {
		f.checkBatchKeys(b, keys)
		return nil
	})
	if err != nil || at == f.base {
		return err
	}
	switch {
	case at.seq == f.base.seq:
		fault = "it does not lead to the snapshot"
	case fault == "":
		fault = fmt.Sprintf("it ends at batch %d", at.seq)
	}
	f.damage("the history before the snapshot at batch %d: %s", f.base.seq, fault)
	f.report.First = f.base.seq + 1
	return nil
}

// followTail follows the chain from the base to its end and compares that with the
// last acknowledged batch, head.
func (f *findings) followTail(q querier, keys map[string]keyPlace, to Seq, head link) error {
	if f.report.First == 0 {
		f.report.First = f.base.seq + 1
	}
	acknowledged := f.base
	at, fault, err := walk(q, f.base, to, func(b Batch, row stored) error {
		f.checkBatchKeys(b, keys)
		if row.at.seq == head.seq {
			acknowledged = row.at
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.tail, f.report.Last = at, at.seq
	if head.seq > 0 && head.seq < f.base.seq {
		if acknowledged, err = linkAt(q, head.seq); err != nil {
			acknowledged = head // compacted or damaged: there is nothing to compare
		}
	}
	if head.seq == acknowledged.seq && head.seq > 0 && head != acknowledged {
		return unopenable{fmt.Errorf("batch %d is not the batch %d that was acknowledged: %s and the file %s are not of one journal: restore both from the same backup",
			head.seq, head.seq, databaseName, headName)}
	}
	if fault == "" && head.seq > at.seq {
		fault = fmt.Sprintf("the database ends at batch %d, but batch %d was acknowledged", at.seq, head.seq)
	}
	if fault != "" {
		lost := max(1, head.seq-at.seq, newest(q)-at.seq)
		f.report.Loss = &Loss{From: at.seq + 1, Batches: int64(lost), Why: fault}
	}
	return nil
}

// newest returns the highest batch number in the table, trusted or not, 0 where it cannot be read.
func newest(q querier) Seq {
	var seq whole
	if err := q.QueryRow("SELECT coalesce(max(seq), 0) FROM batch").Scan(&seq); err != nil {
		return 0
	}
	return Seq(seq)
}
