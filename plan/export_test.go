package plan

import "fmt"

// Transition is a legal step of a noun from one state to another.
type Transition struct{ Noun, From, To string }

// Transitions returns the one table of legal transitions, as the documentation
// prints it.
func Transitions() []Transition {
	var t []Transition
	add(&t, "job", phaseTable[:])
	add(&t, "run", runTable[:])
	add(&t, "device", deviceTable[:])
	add(&t, "node", nodeTable[:])
	return t
}

func add[S interface {
	~uint8
	fmt.Stringer
}](t *[]Transition, noun string, table [][]S) {
	for from, tos := range table {
		for _, to := range tos {
			*t = append(*t, Transition{Noun: noun, From: S(from).String(), To: to.String()})
		}
	}
}
