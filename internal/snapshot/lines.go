package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
)

// line is one batch as it is written: the records' data are JSON already and stay what
// they were to the byte, since commits are compared so.
type line struct {
	Batch   store.Seq `json:"batch"`
	Events  []entry   `json:"events,omitempty"`
	Commits []entry   `json:"commits,omitempty"`
}

// entry is one record.
type entry struct {
	Kind string          `json:"kind"`
	At   unit.Time       `json:"at_us"`
	Data json.RawMessage `json:"data,omitempty"`
	// Newline says that the data end in one, which a line cannot hold; Raw is what is no
	// JSON on one line.
	Newline bool   `json:"newline,omitempty"`
	Raw     []byte `json:"raw,omitempty"`
}

// appendLine writes a batch.
func appendLine(out []byte, b store.Batch) []byte {
	out = append(out, `{"batch":`...)
	out = strconv.AppendInt(out, int64(b.Seq), 10)
	out = appendEntries(out, "events", b.Events)
	out = appendEntries(out, "commits", b.Commits)
	return append(out, "}\n"...)
}

func appendEntries(out []byte, name string, records []store.Record) []byte {
	if len(records) == 0 {
		return out
	}
	out = append(append(append(out, `,"`...), name...), `":[`...)
	for i, r := range records {
		if i > 0 {
			out = append(out, ',')
		}
		kind, _ := json.Marshal(r.Kind) // of a string: it cannot fail
		out = append(append(out, `{"kind":`...), kind...)
		out = strconv.AppendInt(append(out, `,"at_us":`...), int64(r.At), 10)
		out = append(appendData(out, r.Data), '}')
	}
	return append(out, ']')
}

func appendData(out, data []byte) []byte {
	text, newline := bytes.CutSuffix(data, []byte("\n"))
	if len(text) == 0 || bytes.ContainsAny(text, "\r\n") || !json.Valid(text) || text[0] <= ' ' || text[len(text)-1] <= ' ' {
		raw, _ := json.Marshal(data) // of bytes: it cannot fail
		return append(append(out, `,"raw":`...), raw...)
	}
	out = append(append(out, `,"data":`...), text...)
	if newline {
		out = append(out, `,"newline":true`...)
	}
	return out
}

// parseLine reads what appendLine wrote.
func parseLine(text []byte) (store.Batch, error) {
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return store.Batch{}, fmt.Errorf("reading a batch: %w", err)
	}
	return store.Batch{Seq: l.Batch, Events: records(l.Events), Commits: records(l.Commits)}, nil
}

func records(entries []entry) []store.Record {
	var out []store.Record
	for _, e := range entries {
		r := store.Record{Kind: e.Kind, At: e.At, Data: e.Raw}
		if e.Data != nil {
			r.Data = e.Data
			if e.Newline {
				r.Data = append(r.Data, '\n')
			}
		}
		out = append(out, r)
	}
	return out
}
