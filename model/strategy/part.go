package strategy

// Part is a place in a composition, with the contract that the strategy in it fulfils. It
// is declared beside that contract, by NewPart. The catalogue knows it from the first
// strategy that says to fill it.
type Part struct {
	Name string // in a composition file
	Does string // in words, as a user is told who names it beside a part that it forbids
	// Rank orders the parts wherever they are listed: smaller goes first.
	Rank int
	// Step is the step that has the part. It is empty for a part that does the work of
	// several steps: there the strategy says of which one it is.
	Step string
	// Null is what fills the part where its step is left out, and Default what fills it
	// where the user leaves it open. Empty is nobody.
	Null, Default string
	// Forbids are the parts, by name, whose work the strategy in this one does itself.
	Forbids []string
	// Chain makes one strategy of several, each of which leaves to the next what it does
	// not take. It returns the index of one that leaves nothing though it is not the
	// last, and else -1. It is nil for a part that only one strategy may fill.
	Chain func(links []any) (chain any, greedy int)
	// Words are the choices of a part that no strategy fills.
	Words []string

	fulfils func(strategy any) bool
}

// NewPart declares a part whose contract is T.
func NewPart[T any](p Part) *Part {
	p.fulfils = func(strategy any) bool {
		_, ok := strategy.(T)
		return ok
	}
	return &p
}

// MarshalText writes the name of the part.
func (p *Part) MarshalText() ([]byte, error) { return []byte(p.Name), nil }

// Fulfils reports whether a strategy fulfils the contract of the part.
func (p *Part) Fulfils(strategy any) bool { return p.fulfils(strategy) }

// Filled is a composition that has been made: the strategy in each part, and its name.
type Filled map[*Part]Filling

// Filling is what fills a part.
type Filling struct {
	Name     string
	Strategy any
}

// In returns the strategy in a part, as the part's contract T; the zero T where there is
// none.
func In[T any](f Filled, p *Part) (strategy T) {
	if s := f[p].Strategy; s != nil {
		return s.(T)
	}
	return strategy
}
