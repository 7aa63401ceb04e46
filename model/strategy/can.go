package strategy

// Can finds an ability of a part: an interface A that is declared beside the part's
// contract, for what some strategies can do and others cannot. What stands around another
// strategy and lacks the ability itself is looked through, so that no wrapper has to pass
// it on.
func Can[A any](part any) (a A, can bool) {
	for part != nil {
		if a, can = part.(A); can {
			return a, true
		}
		w, around := part.(interface{ Unwrap() any })
		if !around {
			break
		}
		part = w.Unwrap()
	}
	return a, false
}

// Around is embedded by a strategy that stands around another one of the contract T.
type Around[T any] struct{ Inner T }

// Unwrap is the strategy inside, for Can.
func (a Around[T]) Unwrap() any { return a.Inner }

// Remembering is a Scheduler, or a part of a composed one, that remembers what no
// State holds. The engine keeps what Remember returns in the State after every
// decision, so that it is journaled and part of snapshots: equal memories must give
// equal bytes. They hold until the next call. Recall is called after the caches were built anew and replaces all that
// was remembered.
type Remembering interface {
	Remember() []byte
	Recall(memory []byte) error
}
