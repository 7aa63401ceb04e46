package catalogue

import (
	_ "embed"
	"strings"
)

// optionsText says what options mean, a line "STRATEGY OPTION: MEANING" each. It is made of the comments beside the fields
// when a version is cut, by go test ./catalogue -run Meanings -update: until then a new option has none.
//
//go:embed options.txt
var optionsText string

// meaningOf is what an option means; "" is not said.
func meaningOf(strategy, option string) string {
	_, rest, _ := strings.Cut("\n"+optionsText, "\n"+strategy+" "+option+": ")
	meaning, _, _ := strings.Cut(rest, "\n")
	return meaning
}
