package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
)

// Seq numbers the batches of a journal: 1, 2, 3, in the order in which they became durable.
type Seq int64

// Record is one event, or one commit that events caused. What Data means is the caller's business.
type Record struct {
	Kind string
	At   unit.Time
	Data []byte
}

// Key is an idempotency key: a request that was acknowledged under this name, and what was answered.
type Key struct {
	Key       string
	Value     []byte
	ExpiresAt unit.Time
}

// Batch is what becomes durable together or not at all. Seq is given by Append and
// filled in by Replay; a Batch handed to Append carries none. Empty and nil slices
// are the same in a batch that was read back: nil.
type Batch struct {
	Seq     Seq
	Events  []Record
	Commits []Record
	Keys    []Key
}

// check refuses a batch that must not become durable.
func (b Batch) check() error {
	if len(b.Events)+len(b.Commits)+len(b.Keys) == 0 {
		return errors.New("the batch is empty: expected at least one event, commit or key")
	}
	for i, r := range b.Events {
		if r.Kind == "" {
			return fmt.Errorf("event %d of the batch has no kind", i)
		}
	}
	for i, r := range b.Commits {
		if r.Kind == "" {
			return fmt.Errorf("commit %d of the batch has no kind", i)
		}
	}
	names := make(map[string]bool, len(b.Keys))
	for i, k := range b.Keys {
		if k.Key == "" || names[k.Key] {
			return fmt.Errorf("key %d of the batch is %q: expected a name, each once", i, k.Key)
		}
		names[k.Key] = true
	}
	return nil
}

// encode writes the content of b; the sequence number is not part of it, the chain adds it.
func (b Batch) encode() []byte {
	size := 16
	for _, r := range b.Events {
		size += len(r.Kind) + len(r.Data) + 16
	}
	for _, r := range b.Commits {
		size += len(r.Kind) + len(r.Data) + 16
	}
	for _, k := range b.Keys {
		size += len(k.Key) + len(k.Value) + 16
	}
	out := make([]byte, 0, size)
	out = appendRecords(out, b.Events)
	out = appendRecords(out, b.Commits)
	return appendKeys(out, b.Keys)
}

func appendRecords(out []byte, records []Record) []byte {
	out = figures.PutCount(out, len(records))
	for _, r := range records {
		out = figures.PutBytes(out, []byte(r.Kind))
		out = figures.Put(out, int64(r.At))
		out = figures.PutBytes(out, r.Data)
	}
	return out
}

func appendKeys(out []byte, keys []Key) []byte {
	out = figures.PutCount(out, len(keys))
	for _, k := range keys {
		out = figures.PutBytes(out, []byte(k.Key))
		out = figures.PutBytes(out, k.Value)
		out = figures.Put(out, int64(k.ExpiresAt))
	}
	return out
}

// decode reads what encode wrote. The slices of the result share body's memory.
func decode(seq Seq, body []byte) (Batch, error) {
	r := figures.Read(body)
	b := Batch{Seq: seq, Events: readRecords(r), Commits: readRecords(r), Keys: readKeys(r)}
	if err := r.End(); err != nil {
		return Batch{}, fmt.Errorf("batch %d: its %d bytes are not a batch: %w", seq, len(body), err)
	}
	return b, nil
}

func readRecords(r *figures.Reader) (records []Record) {
	for range r.Counted {
		records = append(records, Record{Kind: string(r.Bytes()), At: unit.Time(r.Next()), Data: r.Bytes()})
	}
	return records
}

func readKeys(r *figures.Reader) (keys []Key) {
	for range r.Counted {
		keys = append(keys, Key{Key: string(r.Bytes()), Value: r.Bytes(), ExpiresAt: unit.Time(r.Next())})
	}
	return keys
}

// digest is a SHA-256.
type digest [sha256.Size]byte

// link is a place in the chain: a batch's number, and the hash of everything up to and including it.
type link struct {
	seq   Seq
	chain digest
}

// genesis is the place before the first batch.
func genesis() link { return link{chain: sha256.Sum256([]byte("muster journal"))} }

// next returns the place after a batch of this content.
func (l link) next(body []byte) link {
	return link{seq: l.seq + 1, chain: sum("batch", l.chain[:], number(int64(l.seq+1)), body)}
}

// sum hashes the parts of a row, each with its length, under the name of its table,
// so that no row passes for another.
func sum(table string, parts ...[]byte) digest {
	h := sha256.New()
	h.Write(figures.PutBytes(nil, []byte(table)))
	for _, p := range parts {
		h.Write(number(int64(len(p))))
		h.Write(p)
	}
	return digest(h.Sum(nil))
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
