package shape

// tally counts a layer, by token where nothing else is said. What devices that split the layer
// share is apart from what each has whole.
type tally struct {
	name         string
	split, whole float64 // parameters of the layer
	linear       float64 // operations of the forward pass with weights
	core         float64 // and of attention without
	wide         float64 // figures kept that are split
	narrow       float64 // figures kept as wide as the model, which only a split by sequence divides
	masks        float64 // bytes kept of narrow masks
	scores       float64 // bytes of attention scores kept
	sums         float64 // times that the split parts are summed up in the forward pass
	output       float64 // figures sent on
	mixture      mixture
}

// mixture is the experts of a layer, which may stand on other devices than the rest.
type mixture struct {
	count        int
	chosen       float64 // that a token goes to
	split, whole float64 // as of the layer
	linear, wide float64
}

// layers counts a model's layers: the embedding, the blocks and the head.
func (s *Shape) layers() []tally {
	list := []tally{s.embedding("embedding")}
	for range s.Encoder {
		list = append(list, s.block(false, false))
	}
	for i := range s.Blocks {
		list = append(list, s.block(s.Encoder > 0, s.Experts != nil && i >= s.Experts.Dense))
	}
	return append(list, s.head())
}

func (s *Shape) embedding(name string) tally {
	h := float64(s.Hidden)
	t := tally{name: name, whole: h * float64(s.Positions), narrow: h, output: h}
	if s.Patch > 0 {
		t.whole += h * float64(s.Patch+1) // with a bias, as it is a convolution
		t.linear = 2 * h * float64(s.Patch)
		return t
	}
	// Each device looks up the words that it holds; the sum is what all of them found.
	t.split, t.sums = h*float64(s.Vocabulary), 1
	return t
}

func (s *Shape) head() tally {
	h, v := float64(s.Hidden), float64(s.Vocabulary)
	t := tally{name: "head", whole: s.norm(), narrow: 2 * h}
	if s.Headless {
		return t
	}
	t.split, t.sums = h*v, 1
	if t.linear, t.wide = 2*h*v, 2*v; s.Patch > 0 { // one token of an image has a class
		t.linear, t.wide, t.sums = t.linear/float64(s.Sequence), t.wide/float64(s.Sequence), 0
	}
	return t
}

// block is attention, where it is crossed a second one to what the encoder made, and a
// feed-forward of one network or of experts.
func (s *Shape) block(crossed, experts bool) tally {
	t := tally{name: "block", output: float64(s.Hidden)}
	s.attention(&t)
	if crossed {
		t.name = "crossed block"
		t.output *= 2 // what the encoder made goes along
		s.attention(&t)
	}
	t.sums++ // behind the second matrix of the network
	t.whole += s.norm()
	t.narrow += 2 * float64(s.Hidden) // what the norm and the network take
	if s.Dropout {
		t.masks += float64(s.Hidden)
	}
	if !experts {
		s.network(&t, s.FFN, 1, 1)
		return t
	}
	e := s.Experts
	t.name = "block of experts"
	// Every device chooses for all tokens, so that it knows which to take.
	t.whole += float64(s.Hidden * e.Count)
	t.linear += 2 * float64(s.Hidden*e.Count)
	t.narrow += 2 * float64(s.Hidden*e.Chosen) // what goes to experts, and what comes back
	var apart tally
	s.network(&apart, e.FFN, e.Count, e.Chosen)
	t.mixture = mixture{count: e.Count, chosen: float64(e.Chosen), split: apart.split, whole: apart.whole, linear: apart.linear, wide: apart.wide}
	s.network(&t, e.FFN, e.Count+e.Shared, e.Chosen+e.Shared)
	return t
}

// network adds feed-forward networks, of which a token passes some.
func (s *Shape) network(t *tally, ffn, count, passed int) {
	h, f, matrices := float64(s.Hidden), float64(ffn), 2.
	if s.Gated {
		matrices = 3
	}
	t.split += float64(count) * matrices * h * f
	t.linear += float64(passed) * 2 * matrices * h * f
	t.wide += float64(passed) * matrices * f
	if s.Bias {
		t.split += float64(count) * f
		t.whole += float64(count) * h
	}
}

// attention adds one, with its norm.
func (s *Shape) attention(t *tally) {
	h, heads, d := float64(s.Hidden), float64(s.Heads), float64(s.width())
	query, key, value := heads*d, float64(s.kv())*d, float64(s.kv())*d // widths of a token's
	split, whole := h*(query+key+value), 0.
	if l := s.Latent; l != nil {
		query, key, value = heads*float64(l.Plain+l.Turned), heads*float64(l.Plain+l.Turned), heads*float64(l.Value)
		short := float64(l.Query + l.KeyValue)
		whole = h*(short+float64(l.Turned)) + short // short vectors have norms of their own
		split = float64(l.Query)*query + float64(l.KeyValue)*heads*float64(l.Plain+l.Value)
		t.narrow += 2 * short
		d = float64(l.Value)
	}
	out := heads * d // what the heads make
	split += out * h
	t.split, t.whole = t.split+split, t.whole+whole+s.norm()
	t.linear += 2 * (split + whole)
	if s.Bias {
		t.split, t.whole = t.split+query+key+value, t.whole+h
	}
	// Scores of every token with every other, and what these weigh; that a mask makes half of
	// them nothing is not counted, as nobody does who publishes figures.
	t.core += 2 * float64(s.Sequence) * (query + out)
	t.narrow += 2 * h // what the norm and the projections take
	t.wide += query + key + value + out
	t.sums++
	if s.Dropout {
		t.masks += h // a byte for each figure
	}
	if !s.Fused {
		t.scores += heads * float64(s.Sequence)
	}
}

// norm is the parameters of one.
func (s *Shape) norm() float64 {
	if s.Bias {
		return 2 * float64(s.Hidden)
	}
	return float64(s.Hidden)
}

// Parameters counts those of a model, and how many of them a token passes.
func (s *Shape) Parameters() (all, active float64) {
	list := s.layers()
	for i := range list {
		all += list[i].split + list[i].whole
	}
	if s.Tied && !s.Headless {
		all -= float64(s.Hidden * s.Vocabulary)
	}
	active = all
	if e := s.Experts; e != nil {
		none, idle := tally{}, e.Count-e.Chosen
		s.network(&none, e.FFN, idle, 0)
		active -= float64(s.Blocks-e.Dense) * (none.split + none.whole)
	}
	return all, active
}
