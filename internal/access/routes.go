package access

import (
	"fmt"
	"net/http"
	"slices"
)

// Routes is the table of an API: what answers, and the right that it takes. There is
// no other way to a handler in it, so none is left without a right.
type Routes struct {
	mux    *http.ServeMux
	refuse func(w http.ResponseWriter, r *http.Request, takes Right)
	list   []Route
}

// Route is one line of the table.
type Route struct {
	Pattern string // as of http.ServeMux
	Right   Right
}

// NewRoutes returns an empty table; refuse answers whoever lacks a right.
func NewRoutes(refuse func(w http.ResponseWriter, r *http.Request, takes Right)) *Routes {
	return &Routes{mux: http.NewServeMux(), refuse: refuse}
}

// Add adds a line. It panics where the pattern or the right is none, which is a
// mistake of who wrote the table.
func (t *Routes) Add(pattern string, right Right, h http.Handler) {
	if right < Anyone || right > Operate {
		panic(fmt.Sprintf("route %s: say what right it takes", pattern))
	}
	t.list = append(t.list, Route{pattern, right})
	t.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		call := CallOf(r.Context())
		call.Right = right
		if !call.Identity.May(right) {
			t.refuse(w, r, right)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ServeHTTP answers a call whose context carries who calls.
func (t *Routes) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.mux.ServeHTTP(w, r) }

// All are the lines of the table, in the order they were added.
func (t *Routes) All() []Route { return slices.Clone(t.list) }
