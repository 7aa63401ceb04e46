// Package shape tells what a transformer costs from its shape alone: parameters, operations,
// bytes and time of each layer on a kind of device, split over some, with or without what the
// backward pass computes again. One constant per kind of device and precision stands for how
// well its kernels do.
package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/pipeline"
)

// Shape is a transformer: an embedding, blocks of attention and feed-forward, and a head.
type Shape struct {
	Name string `json:"name"`
	// Encoder is how many blocks read the whole input; where there are any, each of Blocks
	// attends to what they made of it besides.
	Encoder int `json:"encoder,omitempty"`
	Blocks  int `json:"blocks"`
	Hidden  int `json:"hidden"`
	FFN     int `json:"ffn"`
	// KVHeads are those of keys and values; 0 is as many as Heads. HeadWidth 0 is Hidden / Heads.
	Heads      int `json:"heads"`
	KVHeads    int `json:"kv-heads,omitempty"`
	HeadWidth  int `json:"head-width,omitempty"`
	Sequence   int `json:"sequence"`   // tokens of a sample
	Vocabulary int `json:"vocabulary"` // the head is as wide; of images their classes
	// Patch is how many figures a token of an image has, which take the place of the vocabulary
	// on the way in.
	Patch     int      `json:"patch,omitempty"`
	Positions int      `json:"positions,omitempty"` // learned ones
	Tied      bool     `json:"tied,omitempty"`      // the head has the weights of the embedding
	Headless  bool     `json:"headless,omitempty"`  // the head is a norm alone
	Gated     bool     `json:"gated,omitempty"`     // a third matrix of the feed-forward, as in SwiGLU
	Bias      bool     `json:"bias,omitempty"`
	Dropout   bool     `json:"dropout,omitempty"` // its masks are kept
	Fused     bool     `json:"fused,omitempty"`   // attention is one kernel, which keeps no scores
	Experts   *Experts `json:"experts,omitempty"`
	Latent    *Latent  `json:"latent,omitempty"`
}

// Experts stand in the place of the feed-forward.
type Experts struct {
	Count  int `json:"count"`
	FFN    int `json:"ffn"`
	Chosen int `json:"chosen"` // of Count, by each token
	Shared int `json:"shared"` // that every token passes besides
	Dense  int `json:"dense"`  // first blocks that have none
}

// Latent is attention whose keys, values and queries are made of short vectors.
type Latent struct {
	Query    int `json:"query"` // the short vectors
	KeyValue int `json:"key-value"`
	Turned   int `json:"turned"` // of a head's query and key: with and without position
	Plain    int `json:"plain"`
	Value    int `json:"value"`
}

// Check says what is wrong with a shape, all at once.
func (s *Shape) Check() (all []objection.Objection) {
	wrong := func(field, found, expected, do string) {
		all = append(all, objection.Objection{Field: field, Found: found, Expected: expected, Do: do})
	}
	for _, f := range []struct {
		name  string
		value int
		least int
	}{
		{"blocks", s.Blocks, 1}, {"encoder", s.Encoder, 0}, {"hidden", s.Hidden, 1}, {"ffn", s.FFN, 1}, {"heads", s.Heads, 1}, {"kv-heads", s.KVHeads, 0},
		{"head-width", s.HeadWidth, 0}, {"sequence", s.Sequence, 1}, {"vocabulary", s.Vocabulary, 1}, {"patch", s.Patch, 0}, {"positions", s.Positions, 0},
	} {
		if f.value < f.least || f.value > 1<<24 {
			wrong(f.name, fmt.Sprint(f.value), fmt.Sprintf("%d to %d", f.least, 1<<24), "")
		}
	}
	if s.Heads > 0 && s.HeadWidth == 0 && s.Hidden%s.Heads != 0 {
		wrong("heads", fmt.Sprintf("%d, which do not divide hidden %d", s.Heads, s.Hidden), "a divisor, or head-width", fmt.Sprintf("the nearest is %d", Nearest(s.Heads, s.Hidden)))
	}
	if s.Heads > 0 && s.KVHeads > 0 && s.Heads%s.KVHeads != 0 {
		wrong("kv-heads", fmt.Sprintf("%d, which do not divide the %d heads", s.KVHeads, s.Heads), "a divisor", fmt.Sprintf("the nearest is %d", Nearest(s.KVHeads, s.Heads)))
	}
	if e := s.Experts; e != nil && (e.Count < 1 || e.FFN < 1 || e.Chosen < 1 || e.Chosen > e.Count || e.Shared < 0 || e.Dense < 0 || e.Dense > s.Blocks) {
		wrong("experts", fmt.Sprintf("%d of width %d, %d chosen, %d shared, %d blocks without", e.Count, e.FFN, e.Chosen, e.Shared, e.Dense),
			"at least one chosen, and no more than there are", "")
	}
	if l := s.Latent; l != nil && min(l.Query, l.KeyValue, l.Plain, l.Value) < 1 {
		wrong("latent", fmt.Sprintf("%+v", *l), "at least 1 of query, key-value, plain and value", "")
	}
	return all
}

// Splits says whether the layers can be split over so many devices, and if not what could.
func (s *Shape) Splits(tensor int) pipeline.Why {
	parts := []struct {
		name string
		n    int
	}{{"heads", s.Heads}, {"kv-heads", s.kv()}, {"ffn", s.FFN}}
	if s.Experts != nil {
		parts = append(parts, struct {
			name string
			n    int
		}{"ffn of an expert", s.Experts.FFN})
	}
	// The vocabulary is filled up until it divides, as Megatron-LM does, and so is no obstacle.
	all := 0
	for _, p := range parts {
		all = gcd(all, p.n)
	}
	for _, p := range parts {
		if tensor < 1 || p.n%tensor != 0 {
			return whyf("tensor %d does not divide the %d %s of %s: the nearest that divides all is %d", tensor, p.n, p.name, s.Name, Nearest(tensor, all))
		}
	}
	return ""
}

func (s *Shape) kv() int {
	if s.KVHeads == 0 {
		return s.Heads
	}
	return s.KVHeads
}

func (s *Shape) width() int {
	if s.HeadWidth == 0 {
		return s.Hidden / s.Heads
	}
	return s.HeadWidth
}

// gcd is the greatest common divisor; that of 0 and n is n.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Nearest is the divisor of n nearest to k, of two the smaller.
func Nearest(k, n int) int {
	best := 1
	for d := 1; d*d <= n; d++ {
		if n%d != 0 {
			continue
		}
		for _, x := range []int{d, n / d} {
			if away, least := abs(x-k), abs(best-k); away < least || away == least && x < best {
				best = x
			}
		}
	}
	return best
}

func abs(x int) int { return max(x, -x) }

func whyf(format string, args ...any) pipeline.Why { return pipeline.Why(fmt.Sprintf(format, args...)) }

// Find is a preset by its name, or why there is none.
func Find(name string) (Shape, pipeline.Why) {
	all := append([]Shape{Tiny}, Presets...)
	if i := slices.IndexFunc(all, func(s Shape) bool { return s.Name == name }); i >= 0 {
		return all[i], ""
	}
	names := make([]string, len(all))
	for i := range all {
		n, _ := all[i].Parameters()
		names[i] = fmt.Sprintf("%s (%.3g billion parameters)", all[i].Name, n/1e9)
	}
	return Shape{}, whyf("there is no model %q: choose one of %s", name, strings.Join(names, ", "))
}

// Of is the model that a job names: a preset or, where text is its shape in JSON, that one.
func Of(name, text string) (s Shape, why pipeline.Why) {
	if text == "" {
		return Find(name)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, whyf("the shape of %s cannot be read: %v", name, err)
	}
	if wrong := s.Check(); len(wrong) > 0 {
		return s, whyf("the shape of %s: %v", name, wrong[0].Error())
	}
	s.Name = name
	return s, ""
}
