package reproduce

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/musterdl/muster/run/report"
)

// Difference is the first commit that a simulation decides otherwise than it is
// recorded. A commit that is missing on one side is empty there.
type Difference struct {
	Line              int64
	Recorded, Decided string
}

// Verify simulates a setup and compares its commits, byte by byte, with those that
// were written by such a simulation before. It stops at the first that differs.
func Verify(s Setup, recorded io.Reader) (same int64, d *Difference, err error) {
	v := &verifier{recorded: bufio.NewReaderSize(recorded, 1<<20)}
	s.Decisions, s.Limits = v, report.Limits{Points: 2, Jobs: 1}
	if _, err := Simulate(s); err != nil && !errors.Is(err, errDiffers) {
		return v.same, nil, err
	}
	if v.difference != nil {
		return v.same, v.difference, nil
	}
	rest, err := v.line()
	if err != nil {
		return v.same, nil, err
	}
	if len(rest) > 0 {
		d = &Difference{Line: v.same + 1, Recorded: text(rest)}
	}
	return v.same, d, nil
}

// errDiffers ends a simulation that need not go on.
var errDiffers = errors.New("a commit differs")

// verifier is where a simulation writes its commits, one per call.
type verifier struct {
	recorded   *bufio.Reader
	same       int64
	difference *Difference
}

// Write compares one commit.
func (v *verifier) Write(decided []byte) (int, error) {
	line, err := v.line()
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(line, decided) {
		v.difference = &Difference{Line: v.same + 1, Recorded: text(line), Decided: text(decided)}
		return 0, errDiffers
	}
	v.same++
	return len(decided), nil
}

// line is the next recorded commit; none is left when it is empty.
func (v *verifier) line() ([]byte, error) {
	line, err := v.recorded.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading recorded commits: %w", err)
	}
	return line, nil
}

func text(line []byte) string { return string(bytes.TrimSpace(line)) }
