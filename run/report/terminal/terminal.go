// Package terminal fits text to the terminal that it is read on: its width and its colours.
package terminal

import "unicode/utf8"

// Options say what the reader's terminal can do. Whoever calls knows the terminal, and
// whether NO_COLOR is set.
type Options struct {
	Width int // of a line in columns; 0 is no limit
	Color bool
}

// Style is how text looks; the zero value is as all other text.
type Style string

// The styles.
const (
	Bold   Style = "\x1b[1m"
	Dim    Style = "\x1b[2m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
)

// Paint gives text a style, where the terminal has colours.
func (o Options) Paint(style Style, text string) string {
	if !o.Color || style == "" || text == "" {
		return text
	}
	return string(style) + text + "\x1b[0m"
}

// Columns are how many columns text takes.
func Columns(text string) int { return utf8.RuneCountInString(text) }

// Cut shortens text to so many columns; 0 is no limit.
func Cut(text string, columns int) string {
	if columns <= 0 || Columns(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}
