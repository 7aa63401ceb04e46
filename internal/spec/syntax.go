package spec

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a file. They are far above what people write, and keep the parser,
// which is recursive and in places quadratic, from running out of stack or time.
const (
	maxFileBytes = 4 << 20
	maxDepth     = 64
	maxDocuments = 10_000
	maxFields    = 4096 // of one mapping
	maxEmpty     = 1000 // fields and items without a value
	maxAnchors   = 1000
	maxMarks     = 150_000 // see marks
	maxValues    = 150_000 // after aliases are followed: an alias bomb stops here
)

// separates holds the bytes that a token can begin or end with, plain text left out.
var separates = func() (is [256]bool) {
	for _, c := range []byte("\n\r,:[]{}'\"&*!?|>%@`") {
		is[c] = true
	}
	return is
}()

// marks counts what can separate tokens: a file has at most about twice as many tokens.
// The scanner takes the whole file at once and some hundred bytes for each token, so the
// count comes first.
func marks(data []byte) (n int) {
	for i, c := range data {
		if separates[c] || c == '-' && (i+1 == len(data) || bytes.IndexByte([]byte(" \t\n\r"), data[i+1]) >= 0) {
			n++
		}
	}
	return n
}

// Documents reads every document of another system's file into a T. What T does not have is no mistake, other than in Decode;
// the limits of a file hold all the same.
func Documents[T any](data []byte) (all []T, err error) {
	d := newDecoder("")
	defer func() {
		if r := recover(); r != nil { // as in parse
			all, err = nil, fmt.Errorf("the YAML parser gives up on it (%v)", r)
		}
	}()
	for _, body := range d.parse(data) {
		var one T
		if err := yaml.NodeToValue(body, &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, d.problems.err()
}

// parse returns the bodies of the documents in data; what is wrong is reported.
func (d *decoder) parse(data []byte) (bodies []ast.Node) {
	start := &token.Position{Line: 1, Column: 1}
	if len(data) > maxFileBytes {
		d.report(start, "", fmt.Sprintf("a file of %d bytes", len(data)), fmt.Sprintf("at most %d", maxFileBytes), "split the file")
		return nil
	}
	if n := marks(data); n > maxMarks {
		d.report(start, "", fmt.Sprintf("%d line ends, brackets, quotes, commas and colons", n), fmt.Sprintf("at most %d", maxMarks), "split the file")
		return nil
	}
	if i := badByte(data); i >= 0 {
		at := &token.Position{Line: 1 + bytes.Count(data[:i], []byte("\n")), Column: i - bytes.LastIndexByte(data[:i], '\n')}
		d.report(at, "", fmt.Sprintf("the byte 0x%02x", data[i]), "text in UTF-8", "save the file as UTF-8")
		return nil
	}
	defer func() {
		// The parser is not ours and the input is anyone's: a panic in it must not
		// take the server down.
		if r := recover(); r != nil {
			d.report(start, "", fmt.Sprintf("text that the YAML parser gives up on (%v)", r), "YAML", "simplify the file")
			bodies = nil
		}
	}()
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(data, []byte("\ufeff"))))
	if !d.guard(tokens) {
		return nil
	}
	// Repeated keys are allowed here and reported by the decoder, with the rest.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := start, "no document"
		// Error would draw the source around the place, in quadratic time.
		if syntax := yaml.Error(nil); errors.As(err, &syntax) {
			message = syntax.GetMessage()
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				at = t.Position
			}
		}
		d.report(at, "", "text that is not YAML ("+message+")", "", "look at the indentation, quotes and brackets here and just above")
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.NullType {
			bodies = append(bodies, doc.Body)
		}
	}
	return bodies
}

// badByte returns the place of the first byte that is not UTF-8, or -1.
func badByte(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// level is an open block of the file: a list, or a mapping and its fields so far.
type level struct {
	list   bool
	column int
	fields int
}

// flowLevel is an open bracket, and whether its current item has a colon.
type flowLevel struct{ mapping, colon bool }

// guard holds the tokens of a file against the limits before the parser sees them.
type guard struct {
	blocks                    []level
	flows                     []flowLevel
	empty, anchors, documents int
}

func (d *decoder) guard(all token.Tokens) bool {
	tokens := make(token.Tokens, 0, len(all))
	for _, t := range all {
		if t.Type != token.CommentType {
			tokens = append(tokens, t)
		}
	}
	var g guard
	good := true
	for i, t := range tokens {
		var prev, next *token.Token
		if i > 0 {
			prev = tokens[i-1]
		}
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		if t.Type == token.TagType {
			d.report(t.Position, "", "the tag "+quote(t.Value), "a plain value", "remove the tag")
			good = false
			continue
		}
		if broken := g.step(prev, t, next); broken != "" {
			d.report(t.Position, "", broken, "", "write a plainer file or split it")
			return false
		}
	}
	return good
}

// step takes one token in and returns the limit that it breaks, or "".
func (g *guard) step(prev, t, next *token.Token) string {
	switch t.Type {
	case token.MappingKeyType:
		return "a name marked with ?"
	case token.AnchorType:
		g.anchors++
	case token.DocumentHeaderType, token.DocumentEndType:
		g.documents++
		g.blocks, g.flows = nil, nil
	case token.MappingStartType, token.SequenceStartType:
		g.flows = append(g.flows, flowLevel{mapping: t.Type == token.MappingStartType})
	case token.MappingEndType, token.SequenceEndType, token.CollectEntryType:
		g.item(prev, t)
	case token.SequenceEntryType:
		if len(g.flows) == 0 {
			g.block(level{list: true, column: t.Position.Column}, t, next)
		}
	case token.MappingValueType:
		if n := len(g.flows); n > 0 {
			g.flows[n-1].colon = true
			break
		}
		column := t.Position.Column
		if prev != nil && prev.Position.Line == t.Position.Line {
			column = prev.Position.Column // of the key
		}
		g.block(level{column: column}, t, next)
	}
	switch n := len(g.blocks); {
	case n+len(g.flows) > maxDepth:
		return fmt.Sprintf("more than %d levels of nesting", maxDepth)
	case n > 0 && g.blocks[n-1].fields > maxFields:
		return fmt.Sprintf("more than %d fields in one mapping", maxFields)
	case g.empty > maxEmpty:
		return fmt.Sprintf("more than %d fields or items without a value", maxEmpty)
	case g.anchors > maxAnchors:
		return fmt.Sprintf("more than %d anchors", maxAnchors)
	case g.documents > maxDocuments:
		return fmt.Sprintf("more than %d documents", maxDocuments)
	}
	return ""
}

// block opens the list or mapping that t belongs to, unless it is open already,
// and closes those inside it.
func (g *guard) block(b level, t, next *token.Token) {
	n := len(g.blocks)
	for ; n > 0; n-- {
		top := g.blocks[n-1]
		if top.column < b.column || top.column == b.column && (top.list == b.list || b.list) {
			break
		}
	}
	g.blocks = g.blocks[:n]
	if n == 0 || g.blocks[n-1].column != b.column || g.blocks[n-1].list != b.list {
		g.blocks = append(g.blocks, b)
	}
	if !b.list {
		g.blocks[len(g.blocks)-1].fields++
	}
	// The value is missing if what follows belongs outside; a list may stand right
	// below its name.
	if next == nil || next.Position.Line > t.Position.Line && next.Position.Column <= b.column &&
		(b.list || next.Type != token.SequenceEntryType || next.Position.Column < b.column) {
		g.empty++
	}
}

// item ends an item between brackets, and the bracket if t closes it.
func (g *guard) item(prev, t *token.Token) {
	n := len(g.flows)
	if n == 0 {
		return
	}
	top := &g.flows[n-1]
	opened := prev.Type == token.CollectEntryType || prev.Type == token.MappingStartType || prev.Type == token.SequenceStartType
	if prev.Type == token.MappingValueType || top.mapping && !top.colon && !opened {
		g.empty++
	}
	top.colon = false
	if t.Type != token.CollectEntryType {
		g.flows = g.flows[:n-1]
	}
}
