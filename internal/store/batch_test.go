package store

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// bytesOrNil draws bytes, nil for none, as decode gives them back.
func bytesOrNil(t *rapid.T, label string) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, label)
	if len(b) == 0 {
		return nil
	}
	return b
}

func drawRecords(t *rapid.T, label string) []Record {
	var out []Record
	for range rapid.IntRange(0, 4).Draw(t, label) {
		out = append(out, Record{
			Kind: rapid.StringN(1, 20, -1).Draw(t, "kind"),
			At:   unit.Time(rapid.Int64().Draw(t, "at")),
			Data: bytesOrNil(t, "data"),
		})
	}
	return out
}

func drawBatch(t *rapid.T) Batch {
	b := Batch{Seq: 7, Events: drawRecords(t, "events"), Commits: drawRecords(t, "commits")}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		b.Keys = append(b.Keys, Key{
			Key:       rapid.StringN(1, 20, -1).Draw(t, "key"),
			Value:     bytesOrNil(t, "value"),
			ExpiresAt: unit.Time(rapid.Int64().Draw(t, "expires")),
		})
	}
	return b
}

func TestEncodingIsReadBack(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		got, err := decode(7, b.encode())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, b) {
			t.Fatalf("wrote %+v, read %+v", b, got)
		}
	})
}

// A body that was cut, or has something behind it, is not a batch.
func TestDecodeRefusesOtherLengths(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		body := drawBatch(t).encode()
		cut := rapid.IntRange(0, len(body)-1).Draw(t, "cut")
		if b, err := decode(1, body[:cut]); err == nil {
			t.Fatalf("%d of %d bytes were read as %+v", cut, len(body), b)
		}
		if b, err := decode(1, append(body, 0)); err == nil {
			t.Fatalf("a byte too many was read as %+v", b)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 1, 'k', 2, 1, 'd', 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := decode(1, body)
		if err != nil {
			return
		}
		if again, err := decode(1, b.encode()); err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%+v became %+v, %v", b, again, err)
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	ok := []Record{{Kind: "submit"}}
	for _, c := range []struct {
		name string
		give Batch
		want string
	}{
		{"nothing", Batch{}, "empty"},
		{"event without kind", Batch{Events: []Record{{Kind: "a"}, {}}}, "event 1 of the batch has no kind"},
		{"commit without kind", Batch{Commits: []Record{{}}}, "commit 0 of the batch has no kind"},
		{"key without name", Batch{Events: ok, Keys: []Key{{}}}, `key 0 of the batch is ""`},
		{"key twice", Batch{Events: ok, Keys: []Key{{Key: "a"}, {Key: "a"}}}, `key 1 of the batch is "a"`},
	} {
		if err := c.give.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// The chain tells order and number apart, not only content.
func TestChainDependsOnOrderAndNumber(t *testing.T) {
	a, b := []byte("a"), []byte("b")
	places := map[digest]string{}
	for name, at := range map[string]link{
		"a":   genesis().next(a),
		"b":   genesis().next(b),
		"a b": genesis().next(a).next(b),
		"b a": genesis().next(b).next(a),
		"ab":  genesis().next([]byte("ab")),
		"5a":  link{seq: 4, chain: genesis().chain}.next(a),
	} {
		if other, taken := places[at.chain]; taken {
			t.Errorf("%q and %q have the same hash", name, other)
		}
		places[at.chain] = name
	}
}
