package pipeline

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of pass, by its letter.
type Kind byte

// The kinds of pass. A backward pass is whole, or in two halves of which only the first is
// awaited by the stage before. A forward pass is whole, or one of half the microbatch's samples
// and then one of the others, each of which the next stage takes up by itself.
const (
	Forward    Kind = 'F'
	FirstHalf  Kind = 'G' // the forward pass of half the samples
	SecondHalf Kind = 'H' // that of the others
	Recompute  Kind = 'R' // the forward pass once more, for activations that were not kept
	Backward   Kind = 'B' // Input and Weight in one
	Input      Kind = 'I' // gradients of the inputs
	Weight     Kind = 'W' // gradients of the weights
)

// Kinds lists them all.
const Kinds = "FGHRBIW"

// begins reports whether a pass of this kind is the first of a microbatch at its stage.
func (k Kind) begins() bool { return k == Forward || k == FirstHalf }

// share is what of a whole forward pass belongs to a pass of a kind: of its time, of what it sends
// or of what it keeps.
func share[T ~int64](k Kind, whole T) T {
	switch k {
	case Forward:
		return whole
	case FirstHalf:
		return whole / 2
	case SecondHalf:
		return whole - whole/2
	}
	return 0
}

// Op is one pass of one microbatch through a stage.
type Op struct {
	Kind         Kind
	Stage, Micro int32
	// Paired runs the pass at once with the next of its rank: they start together, and end
	// together.
	Paired bool
}

// String writes a pass as plans are exchanged, stage, kind, microbatch: "0F3", and "0F3&"
// where the next runs at the same time.
func (o Op) String() string { return string(o.append(nil)) }

func (o Op) append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(o.Stage), 10)
	b = append(b, byte(o.Kind))
	b = strconv.AppendInt(b, int64(o.Micro), 10)
	if o.Paired {
		b = append(b, '&')
	}
	return b
}

// MarshalText makes a pass a JSON string.
func (o Op) MarshalText() ([]byte, error) { return o.append(nil), nil }

// UnmarshalText reads what MarshalText writes.
func (o *Op) UnmarshalText(text []byte) error {
	word, paired := strings.CutSuffix(string(text), "&")
	at := strings.IndexAny(word, Kinds)
	if at < 1 {
		return fmt.Errorf("operation %q: expected a stage, one of %s and a microbatch, such as 0F3", text, Kinds)
	}
	stage, err := strconv.ParseUint(word[:at], 10, 31)
	if err != nil {
		return fmt.Errorf("operation %q: expected the number of a stage before %c", text, word[at])
	}
	micro, err := strconv.ParseUint(word[at+1:], 10, 31)
	if err != nil {
		return fmt.Errorf("operation %q: expected the number of a microbatch after %c", text, word[at])
	}
	*o = Op{Kind(word[at]), int32(stage), int32(micro), paired}
	return nil
}
