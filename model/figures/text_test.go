package figures

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// record has figures of several kinds.
type record struct {
	A int32
	B uint8
	C int64
	D int32
}

var recordNames = Named[record]{
	By("a", 0, func(r *record) *int32 { return &r.A }),
	By("b", 0, func(r *record) *uint8 { return &r.B }),
	By("c", -1, func(r *record) *int64 { return &r.C }),
	By("d", -1, func(r *record) *int32 { return &r.D }),
}

// read reads a record among other members, which it counts.
func read(b []byte) (r record, others int, err error) {
	t := ReadText(b)
	recordNames.Clear(&r)
	for name := range t.Members {
		if !recordNames.Take(name, t, &r) {
			others++
			t.Skip()
		}
	}
	return r, others, t.End()
}

// TestNamed: figures come back by their names, also among other members; what is as it is
// unsaid is not written, and what is cut short is refused.
func TestNamed(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		want := record{rapid.Int32().Draw(t, "a"), rapid.Uint8().Draw(t, "b"), rapid.Int64Range(-2, 2).Draw(t, "c"), rapid.Int32Range(-2, 0).Draw(t, "d")}
		b := recordNames.Object(&want)
		if got, others, err := read(b); err != nil || got != want || others != 0 {
			t.Fatalf("%+v came back from %s as %+v, %v", want, b, got, err)
		}
		if !json.Valid(b) || want.D == -1 && bytes.Contains(b, []byte(`"d"`)) {
			t.Fatalf("%+v is written %s", want, b)
		}
		among := append(recordNames.Append([]byte(`{"x":[1,{"a":5},"[}"]`), &want), ` , "y" : {} }`...)
		if got, others, err := read(among); err != nil || got != want || others != 2 {
			t.Fatalf("%+v came back from %s as %+v beside %d, %v", want, among, got, others, err)
		}
		if cut := among[:rapid.IntRange(0, len(among)-1).Draw(t, "cut")]; readable(cut) {
			t.Fatalf("%s is taken for whole", cut)
		}
	})
	for _, wrong := range []string{`{"b":256}`, `{"a":2147483648}`, `{"c":9223372036854775808}`, `{"a":1.5}`, `{"a":"1"}`, `{"a":1}{`, `{"a" 1}`, `{"a":1,}`, `{,"a":1}`, `["a"]`, `{"a\"":1}`} {
		if readable([]byte(wrong)) {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func readable(b []byte) bool {
	_, _, err := read(b)
	return err == nil
}

// FuzzText: whatever is JSON without escapes is passed whole.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`{"commit":1,"changes":[{"on":[[0,1,-2]],"a":-1}]}`, ` [ ] `, `"x"`, `{}`, `[1,]`, `{"a":}`, `-`, `{"a":[{"b":{}}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		text := ReadText(b)
		text.Skip()
		if err := text.End(); err != nil && json.Valid(b) && !bytes.Contains(b, []byte(`\`)) {
			t.Errorf("%q is not passed: %v", b, err)
		}
	})
}
