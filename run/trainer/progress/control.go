package progress

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Verb is what a supervisor asks of a job.
type Verb string

// The requests.
const (
	// Save asks for a checkpoint at the next step boundary.
	Save Verb = "checkpoint"
	// Stop asks for a checkpoint and then the end of the process.
	Stop Verb = "stop"
	// Resize asks to go on with Workers workers. A job that cannot do so in place
	// treats it as Stop and is started again at the new size.
	Resize Verb = "resize"
	// Batch asks for steps of Batch samples over all workers from the next one on.
	Batch Verb = "batch"
	// Plan asks to go on by the pipeline plan in the file Path from the next step boundary on. Who
	// does, or refuses, says so with a Planned event.
	Plan Verb = "plan"
)

// Command is one line of a control file.
type Command struct {
	Verb    Verb
	Workers int    // Resize only
	Batch   int    // Batch only
	Path    string // Plan only; to the end of the line, it may hold spaces
}

// String returns the command as a line without its newline.
func (c Command) String() string {
	switch c.Verb {
	case Resize, Batch:
		return fmt.Sprintf("%s %d", c.Verb, c.Workers+c.Batch)
	case Plan:
		return string(c.Verb) + " " + oneLine(c.Path)
	}
	return string(c.Verb)
}

// ParseCommand reads one line of a control file; what it does not know is not ok.
func ParseCommand(line string) (command Command, ok bool) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return Command{}, false
	}
	switch verb := Verb(fields[0]); verb {
	case Save, Stop:
		return Command{Verb: verb}, true
	case Resize, Batch:
		if len(fields) < 2 {
			return Command{}, false
		}
		n, err := strconv.Atoi(fields[1])
		if verb == Batch {
			return Command{Verb: verb, Batch: n}, err == nil && n > 0
		}
		return Command{Verb: verb, Workers: n}, err == nil && n > 0
	case Plan:
		_, path := cutField(strings.TrimSpace(line))
		return Command{Verb: verb, Path: path}, path != ""
	}
	return Command{}, false
}

// Send appends a command to a job's control file.
func Send(path string, c Command) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("send %s: %w", c.Verb, err)
	}
	if _, err := file.WriteString(c.String() + "\n"); err != nil {
		file.Close()
		return fmt.Errorf("send %s: %w", c.Verb, err)
	}
	return file.Close()
}

// Control is the job's side of MUSTER_CONTROL. A nil Control has no commands.
type Control struct {
	tail  *Tail
	lines splitter
}

// Listen returns the commands that MUSTER_CONTROL will bring; nil if it is empty.
// The file is read from its beginning: it belongs to one attempt of one job.
func Listen(env func(string) string) *Control {
	path := env("MUSTER_CONTROL")
	if path == "" {
		return nil
	}
	return &Control{tail: NewTail(path)}
}

// Poll returns the commands that arrived since the last call.
func (c *Control) Poll() ([]Command, error) {
	if c == nil {
		return nil, nil
	}
	b, err := c.tail.Read()
	var commands []Command
	c.lines.feed(b, func(line string, tooLong bool) {
		if command, ok := ParseCommand(line); ok && !tooLong {
			commands = append(commands, command)
		}
	})
	return commands, err
}
