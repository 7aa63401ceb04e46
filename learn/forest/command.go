package forest

import (
	"slices"
	"strconv"
	"strings"
)

// Columns are the features that command lines have: for each parameter its number, or
// one for each word that it took.
type Columns []string

// Parse reads the parameters of a command line: --name value, --name=value, and --name
// alone, with one or two dashes. Words that belong to no parameter are left out.
func Parse(line string) map[string]string {
	parameters := map[string]string{}
	words := strings.Fields(line)
	for i, w := range words {
		name, dashed := strings.CutPrefix(w, "-")
		if !dashed || numeric(w) {
			continue
		}
		name, value, set := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !set {
			value = "1" // a switch
			if i+1 < len(words) && (!strings.HasPrefix(words[i+1], "-") || numeric(words[i+1])) {
				value = words[i+1]
			}
		}
		if name != "" {
			parameters[name] = value
		}
	}
	return parameters
}

func numeric(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

// ColumnsOf lists the features of some command lines, in order of their names.
func ColumnsOf(lines []string) Columns {
	var c Columns
	for _, line := range lines {
		for name, value := range Parse(line) {
			c = append(c, column(name, value))
		}
	}
	slices.Sort(c)
	return slices.Compact(c)
}

func column(name, value string) string {
	if numeric(value) {
		return name
	}
	return name + "=" + value
}

// Row is a command line by its features; a parameter that it lacks is 0, and so is a word
// that no line had before.
func (c Columns) Row(line string) []float64 {
	row := make([]float64, len(c))
	for name, value := range Parse(line) {
		i, known := slices.BinarySearch(c, column(name, value))
		if !known {
			continue
		}
		if row[i] = 1; numeric(value) {
			row[i], _ = strconv.ParseFloat(value, 64)
		}
	}
	return row
}
