package trainer

import (
	_ "embed" // the default text
	"fmt"
	"math/rand/v2"
)

//go:embed corpus.txt
var corpus []byte

// sequence is Seq+1 consecutive bytes: inputs, and each input's successor.
type sequence []byte

// draw returns the global batch of a step. It depends on the seed and the step
// only, so a resumed job sees what it would have seen.
func draw(text []byte, c Config, step int) []sequence {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(step)<<1|1))
	batch := make([]sequence, c.Batch)
	for i := range batch {
		from := rng.IntN(len(text) - c.Seq)
		batch[i] = text[from : from+c.Seq+1]
	}
	return batch
}

// share returns the k-th of n nearly equal parts of a batch.
func share(batch []sequence, k, n int) []sequence {
	return batch[k*len(batch)/n : (k+1)*len(batch)/n]
}

// checkText makes sure that draw has something to draw from.
func checkText(text []byte, s Shape) error {
	if len(text) <= s.Seq {
		return fmt.Errorf("text has %d bytes: a sequence of %d needs at least %d", len(text), s.Seq, s.Seq+1)
	}
	for i, b := range text {
		if int(b) >= s.Vocab {
			return fmt.Errorf("text has byte %d at offset %d: the vocabulary has %d", b, i, s.Vocab)
		}
	}
	return nil
}
