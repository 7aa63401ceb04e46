package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/musterdl/muster/unit"
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
	out = binary.AppendUvarint(out, uint64(len(records)))
	for _, r := range records {
		out = appendBytes(out, []byte(r.Kind))
		out = binary.AppendVarint(out, int64(r.At))
		out = appendBytes(out, r.Data)
	}
	return out
}

func appendKeys(out []byte, keys []Key) []byte {
	out = binary.AppendUvarint(out, uint64(len(keys)))
	for _, k := range keys {
		out = appendBytes(out, []byte(k.Key))
		out = appendBytes(out, k.Value)
		out = binary.AppendVarint(out, int64(k.ExpiresAt))
	}
	return out
}

func appendBytes(out, b []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

// decode reads what encode wrote. The slices of the result share body's memory.
func decode(seq Seq, body []byte) (Batch, error) {
	c := cursor{rest: body}
	b := Batch{Seq: seq, Events: c.records(), Commits: c.records(), Keys: c.keys()}
	if c.broken || len(c.rest) > 0 {
		return Batch{}, fmt.Errorf("batch %d: its %d bytes are not a batch", seq, len(body))
	}
	return b, nil
}

// cursor reads a body from the front; after the first thing that does not fit it
// is broken and everything further reads as nothing.
type cursor struct {
	rest   []byte
	broken bool
}

func (c *cursor) records() []Record {
	var out []Record
	for n := c.count(); n > 0 && !c.broken; n-- {
		out = append(out, Record{Kind: string(c.bytes()), At: unit.Time(c.varint()), Data: c.bytes()})
	}
	return out
}

func (c *cursor) keys() []Key {
	var out []Key
	for n := c.count(); n > 0 && !c.broken; n-- {
		out = append(out, Key{Key: string(c.bytes()), Value: c.bytes(), ExpiresAt: unit.Time(c.varint())})
	}
	return out
}

func (c *cursor) bytes() []byte {
	n := c.count()
	if n == 0 {
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// count reads a length. Whatever it counts takes at least a byte each, so one that
// exceeds what is left is damage, and refusing it here bounds every allocation.
func (c *cursor) count() int {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 || v > uint64(len(c.rest)-n) {
		c.rest, c.broken = nil, true
		return 0
	}
	c.rest = c.rest[n:]
	return int(v)
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.rest)
	if n <= 0 {
		c.rest, c.broken = nil, true
		return 0
	}
	c.rest = c.rest[n:]
	return v
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
	h.Write(appendBytes(nil, []byte(table)))
	for _, p := range parts {
		h.Write(number(int64(len(p))))
		h.Write(p)
	}
	return digest(h.Sum(nil))
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
