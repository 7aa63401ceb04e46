package view

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"resnet-50":                  "resnet-50",
		"Jörg wartet auf 東京 👩‍🔬":     "Jörg wartet auf 東京 👩‍🔬",
		"two\nlines\tand a tab":      "two\nlines\tand a tab",
		"\x1b[31mred":                `\x1b[31mred`,
		"\x1b]0;title\a":             `\x1b]0;title\x07`,
		"back\b\rover":               `back\x08\x0dover`,
		"gpu\u202etxt.exe":           `gpu\u202etxt.exe`,
		"\u2066isolated\u2069":       `\u2066isolated\u2069`,
		"\u009b31m, as one sign":     `\u009b31m, as one sign`,
		"no UTF-8: \xff\x9b":         `no UTF-8: \xff\x9b`,
		"a tag \U000e0041, del \x7f": `a tag \U000e0041, del \x7f`,
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is shown as %q, expected %q", text, got, want)
		}
	}
	draws.Check(t, func(t *rapid.T) {
		got := Plain(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if i := strings.IndexFunc(got, steers); i >= 0 || Plain(got) != got {
			t.Fatalf("%q", got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
			t.Fatalf("%q", got)
		}
	})
}

// JSON says the same, in signs that do nothing.
func TestPlainJSON(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text") + "\u202e\U000e0041\x7f\u009b"
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		text, got := PlainJSON(string(data)), ""
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want || strings.ContainsFunc(text, steers) {
			t.Fatalf("%q is %q, read back %q (%v)", want, text, got, err)
		}
	})
}

// Every text of an answer is made plain, wherever in it, and nothing else is changed.
func TestPlainAll(t *testing.T) {
	const evil, shown = "a\x1b[31m", `a\x1b[31m`
	type inner struct {
		Text string
		List []string
	}
	type outer struct {
		inner
		At     time.Time
		By     map[string]inner
		One    *inner
		Any    any
		Number float64
		none   *inner
	}
	at := time.Unix(5, 6)
	made := func(s string) outer {
		return outer{inner{s, []string{s, s}}, at, map[string]inner{s: {Text: s}}, &inner{Text: s}, &inner{List: []string{s}}, 3, nil}
	}
	got := made(evil)
	PlainAll(&got)
	if want := made(shown); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
