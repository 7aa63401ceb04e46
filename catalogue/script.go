package catalogue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/strategies/schedule/external"
)

// Exchange is the conversation with a script that decides.
type Exchange = external.Exchange

// Scripts keeps the processes of scripts. A program that may start them sets it, before
// it builds anything; where it is nil a script is never asked, so that a history with
// one is decided again without it.
var Scripts func(command []string, limit unit.Duration) Exchange

func newExternal(c external.Config, _ Env) any {
	if Scripts == nil {
		return external.New(nil)
	}
	return external.New(Scripts(c.Command, unit.Seconds(c.LimitSec)))
}

// scripted begins the reference of a strategy that is a script: script:PATH, with other
// strategies joined to it by "+".
const scripted = "script:"

// ScriptCommand is how the script at a path is run: one that ends in .py by python3,
// which does not hold its lines back.
func ScriptCommand(path string) []string {
	if filepath.Ext(path) == ".py" {
		return []string{"python3", "-u", path}
	}
	return []string{path}
}

// fromScript composes the strategy of such a reference. Its text is a whole file, so
// that a journal says what was run.
func fromScript(ref string) (Composition, error) {
	path, others, _ := strings.Cut(strings.TrimPrefix(ref, scripted), "+")
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return Composition{}, fmt.Errorf("the script of %s: %w", ref, err)
	}
	names := external.Description.Name
	if others != "" {
		names += "+" + others
	}
	c, err := named(names)
	if err != nil {
		return c, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: %q\n", ref)
	for _, p := range Parts() {
		if name := c.Choices[p]; name != "" {
			fmt.Fprintf(&b, "%s: %s\n", p.Name, name)
		}
	}
	fmt.Fprintf(&b, "options: {%s: {command: [", external.Description.Name)
	for i, word := range ScriptCommand(path) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", word)
	}
	b.WriteString("]}}\n")
	return Read(ref, []byte(b.String()))
}

// Command is the command of the script that decides; nil where none does.
func (c Composition) Command() []string {
	if c.Choices[allocate.JointPart] != external.Description.Name {
		return nil
	}
	config, _ := c.options[external.Description.Name].(external.Config)
	return config.Command
}
