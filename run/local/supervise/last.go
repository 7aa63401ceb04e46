package supervise

import (
	"bytes"
	"regexp"
	"strings"
)

// What is shown of the end of a log.
const (
	lastBytes  = 8 << 10
	lastLines  = 20
	lastColumn = 400
)

// LastLines are the last lines that a worker printed, as they are to be read: without colours
// and what was printed over. Who shows them sees to what else a terminal would obey.
func LastLines(dir string) ([]string, error) {
	files, err := logFiles(dir)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	from := max(0, files[len(files)-1].end-lastBytes)
	var text []byte
	for at := from; ; {
		chunk, err := ReadLog(dir, at, lastBytes)
		if err != nil {
			return nil, err
		}
		if len(chunk.Data) == 0 {
			break
		}
		text, at = append(text, chunk.Data...), chunk.Next
	}
	if _, rest, cut := bytes.Cut(text, []byte("\n")); cut && from > 0 {
		text = rest // the first is likely only a part of a line
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		lines = append(lines, plain(line[strings.LastIndexByte(line, '\r')+1:])) // a bar of progress was printed over itself
	}
	return lines[max(0, len(lines)-lastLines):], nil
}

// sequence is what a terminal takes for an order: CSI, as colours are, and OSC.
var sequence = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?)")

// plain is a line without colours, cut where it is long.
func plain(line string) string {
	line = sequence.ReplaceAllString(line, "")
	if runes := []rune(line); len(runes) > lastColumn {
		return string(runes[:lastColumn]) + "…"
	}
	return line
}
