package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/objection"
)

// Problem is one thing that is wrong in a file: where, what, and what to do.
type Problem struct {
	File         string
	Line, Column int    // from 1
	Field        string // the path, such as jobs[2].checkpoint.every; empty for the file as a whole
	Found        string
	Expected     string // empty where Found says it all
	Do           string // empty where Expected says it all
}

// Error writes the problem on one line, the place first, as compilers do.
func (p Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", p.File, p.Line, p.Column, objection.Objection{Field: p.Field, Found: p.Found, Expected: p.Expected, Do: p.Do})
}

// Problems are all the problems of one file, by position.
type Problems []Problem

const (
	problemsShown = 50
	// problemsKept bounds the memory a file of nothing but mistakes can take; the
	// shown ones are the first of these by position.
	problemsKept = 1000
)

// Error writes one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	if len(ps) == problemsShown {
		lines = append(lines, fmt.Sprintf("(only the first %d problems are shown)", problemsShown))
	}
	return strings.Join(lines, "\n")
}

// err returns the problems as an error, or nil where there is none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	// An alias brings the same mistake to many fields; it is made in one place.
	ps = slices.CompactFunc(ps, func(a, b Problem) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Found == b.Found
	})
	return ps[:min(len(ps), problemsShown)]
}

// quote shows text of the user's in a message, cut where it is long.
func quote(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return strconv.Quote(s)
}

// Nearest returns the known word that a misspelt one most likely means, or "".
// Case and the choice of separator do not count.
func Nearest(word string, known []string) string {
	plain := func(s string) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if r == '-' || r == '_' || r == ' ' {
				return -1
			}
			return r
		}, strings.ToLower(s)))
	}
	if len(word) > 64 { // no known word is as long, and the distance is quadratic
		return ""
	}
	w, best, bestDistance := plain(word), "", 3
	for _, k := range known {
		p := plain(k)
		if d := distance(w, p); d < bestDistance && d < max(1, len(p)-1) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, drop, replace or swap with their
// neighbour to turn a into b.
func distance(a, b []rune) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// didYouMean is the advice for a word that is not one of the known ones.
func didYouMean(word string, known []string) string {
	if k := Nearest(word, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return "use one of " + strings.Join(known, ", ")
}
