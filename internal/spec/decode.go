// Package spec reads the YAML files that a user writes into the nouns of packages
// cluster and workload, and typed configuration of other packages likewise. It is
// strict, so that a misspelt field is an error and not a default, and it answers
// with all the problems of a file at once, each with its place, what was found,
// what was expected and what to do. FORMAT.md describes the files.
package spec

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Decode reads the one document in data into the struct that into points to. A
// field is called as its yaml tag says or, without one, as its Go name in lower
// case with dashes (TimeLimit is time-limit). What the file does not say stays as
// it was, so fill in defaults first. Fields may be text, numbers, true or false,
// the quantities of package unit, anything that reads itself from text
// (encoding.TextUnmarshaler), pointers to these, lists, maps by text, and structs.
// An error of the file is of type Problems.
func Decode(file string, data []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("decode %s: cannot read into %T, expected a pointer", file, into)
	}
	d := newDecoder(file)
	d.document(data, v.Elem())
	return d.problems.err()
}

// Fields are the fields of a mapping that Decode reads like those of a struct, where what
// they are is not known before the program runs.
type Fields []Field

// Field is one of them: Into points to what is read.
type Field struct {
	Name string
	Into any
}

// decoder reads one file and gathers its problems.
type decoder struct {
	file     string
	problems Problems
	// at is where each field of the current document stands, by path; checks that
	// follow the reading find their places, and what was given at all, here.
	at map[string]*token.Position
	// bad are the fields with a problem: one is enough, what follows from it is noise.
	bad     map[string]bool
	anchors map[string]ast.Node
	depth   int
	values  int // read so far; over maxValues nothing more is
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, bad: map[string]bool{}, at: map[string]*token.Position{"": {Line: 1, Column: 1}}}
}

// document reads a file that holds one document into v; an empty one says nothing.
func (d *decoder) document(data []byte, v reflect.Value) {
	bodies := d.parse(data)
	if len(bodies) > 1 {
		d.report(position(bodies[1]), "", "a second document", "one document in this file", "split the file, or remove the line ---")
	}
	if len(bodies) > 0 {
		d.root(bodies[0], v)
	}
}

// root reads one document into v.
func (d *decoder) root(body ast.Node, v reflect.Value) {
	d.anchors, d.at, d.bad = map[string]ast.Node{}, map[string]*token.Position{}, map[string]bool{}
	ast.Walk(d, body)
	d.value(body, "", v)
}

// Visit notes the anchors of a document, for ast.Walk.
func (d *decoder) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		name := a.Name.GetToken().Value
		if d.anchors[name] != nil {
			d.report(position(n), "", "the anchor &"+name+" again", "one of that name in a document", "rename one of them")
		}
		d.anchors[name] = a.Value
	}
	return d
}

func (d *decoder) report(at *token.Position, path, found, expected, do string) {
	if !d.full() {
		d.problems = append(d.problems, Problem{File: d.file, Line: at.Line, Column: max(at.Column, 1),
			Field: path, Found: found, Expected: expected, Do: do})
	}
}

// wrong reports the problem of the field at path, or of what would hold that field.
func (d *decoder) wrong(path, found, expected, do string) {
	if d.bad[path] {
		return
	}
	d.bad[path] = true
	place := path
	for d.at[place] == nil && place != "" {
		place = place[:max(strings.LastIndexAny(place, ".["), 0)]
	}
	if at := d.at[place]; at != nil {
		d.report(at, path, found, expected, do)
	}
}

// has says whether the file gives the field at path.
func (d *decoder) has(path string) bool { return d.at[path] != nil }

// spend counts one value read; false is that the file has had its share, or that enough
// is wrong with it.
func (d *decoder) spend(n ast.Node, path string) bool {
	d.values++
	if d.values == maxValues+1 {
		d.report(position(n), path, fmt.Sprintf("more than %d values, aliases followed", maxValues), "", "split the file")
	}
	return d.values <= maxValues && !d.full()
}

// full reports whether enough is wrong with the file.
func (d *decoder) full() bool { return len(d.problems) >= problemsKept }

// resolve follows anchors and aliases; ok is false where that fails or goes too
// far, which is reported.
func (d *decoder) resolve(n ast.Node, path string) (resolved ast.Node, ok bool) {
	for hops := 0; ; hops++ {
		if !d.spend(n, path) {
			return nil, false
		}
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			name := x.Value.GetToken().Value
			if n = d.anchors[name]; n == nil || hops > maxDepth {
				d.report(position(x), path, "the alias *"+name, "the name of an anchor outside itself", "write &"+name+" before the value it stands for")
				return nil, false
			}
		default:
			return n, true
		}
	}
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// value reads the node into v.
func (d *decoder) value(n ast.Node, path string, v reflect.Value) {
	d.at[path] = position(n)
	n, ok := d.resolve(n, path)
	if !ok {
		return
	}
	if d.depth++; d.depth > maxDepth {
		d.wrong(path, "an alias inside the value it stands for", "", "write the value out")
	} else if n.Type() == ast.NullType {
		d.wrong(path, "nothing", "a value", "give one or remove the field")
	} else {
		d.read(n, path, v)
	}
	d.depth--
}

func (d *decoder) read(n ast.Node, path string, v reflect.Value) {
	if q, ok := quantities[v.Type()]; ok {
		d.quantity(n, path, v, q)
		return
	}
	if v.Type() == reflect.TypeFor[amounts]() {
		d.amounts(n, path, v)
		return
	}
	if fields, ok := v.Interface().(Fields); ok {
		d.fields(n, path, fields)
		return
	}
	if reflect.PointerTo(v.Type()).Implements(textType) {
		if text, ok := d.scalar(n, path, "text"); ok {
			if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
				d.wrong(path, describe(n), "another value", err.Error())
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v)
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Array:
		items := reflect.New(reflect.SliceOf(v.Type().Elem())).Elem()
		d.list(n, path, items)
		if items.Len() != v.Len() {
			d.wrong(path, fmt.Sprintf("%d items", items.Len()), fmt.Sprint(v.Len()), "")
		}
		reflect.Copy(v, items)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.read(n, path, v.Elem())
	default:
		d.plain(n, path, v)
	}
}

// plain reads text, a number, or true or false.
func (d *decoder) plain(n ast.Node, path string, v reflect.Value) {
	var expected string
	var set func(text string) error
	switch {
	case v.Kind() == reflect.String:
		expected, set = "text", func(text string) error { v.SetString(text); return nil }
	case v.Kind() == reflect.Bool:
		expected, set = "true or false", func(text string) error {
			if n.Type() != ast.BoolType { // quoted, or a number
				return strconv.ErrSyntax
			}
			v.SetBool(strings.EqualFold(text, "true"))
			return nil
		}
	case v.CanInt():
		bits := v.Type().Bits()
		expected, set = fmt.Sprintf("a whole number up to %d", math.MaxInt64>>(64-bits)), func(text string) error {
			x, err := strconv.ParseInt(text, 10, bits)
			v.SetInt(x)
			return err
		}
	case v.CanUint():
		bits := v.Type().Bits()
		expected, set = fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-bits)), func(text string) error {
			x, err := strconv.ParseUint(text, 10, bits)
			v.SetUint(x)
			return err
		}
	case v.CanFloat():
		expected, set = "a number", func(text string) error {
			x, err := strconv.ParseFloat(text, v.Type().Bits())
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return strconv.ErrRange
			}
			v.SetFloat(x)
			return err
		}
	default:
		panic(fmt.Sprintf("spec: %s cannot be read into a %s", path, v.Type()))
	}
	if text, ok := d.scalar(n, path, expected); ok && set(text) != nil {
		d.wrong(path, describe(n), expected, "")
	}
}

// scalar returns the text of a single value as it was written, without quotes.
func (d *decoder) scalar(n ast.Node, path, expected string) (string, bool) {
	text, ok := textOf(n)
	switch {
	case !ok:
		d.wrong(path, describe(n), expected, "")
	case strings.ContainsRune(text, 0):
		d.wrong(path, "text with a zero byte", expected, "remove the zero byte")
		ok = false
	}
	return text, ok
}

// list reads the items of a list into a slice.
func (d *decoder) list(n ast.Node, path string, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		do := ""
		if text, ok := textOf(n); ok {
			do = "write [" + quote(text) + "]"
		}
		d.wrong(path, describe(n), "a list", do)
		return
	}
	if len(seq.Values) == 0 {
		v.SetZero() // no second way to say nothing
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		if start, ok := starts[v.Type().Elem()]; ok {
			v.Index(i).Set(start)
		}
		d.value(item, path+"["+strconv.Itoa(i)+"]", v.Index(i))
	}
}

// mapping reads fields of any name into a map.
func (d *decoder) mapping(n ast.Node, path string, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.entries(n, path) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, join(path, e.name), item)
		v.SetMapIndex(reflect.ValueOf(e.name).Convert(v.Type().Key()), item)
	}
}

// structure reads known fields into a struct.
func (d *decoder) structure(n ast.Node, path string, v reflect.Value) {
	fields := fieldsOf(v.Type())
	for _, e := range d.entries(n, path) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.name })
		switch p := join(path, e.name); {
		case i < 0:
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.name
			}
			d.unknown(e, p, names)
		case fields[i].form == asTyped:
			d.value(e.value, p, v.FieldByIndex(fields[i].index))
		default:
			d.special(fields[i].form, e.value, p, v.FieldByIndex(fields[i].index))
		}
	}
}

// fields reads known fields into what each points to.
func (d *decoder) fields(n ast.Node, path string, fields Fields) {
	for _, e := range d.entries(n, path) {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == e.name })
		if p := join(path, e.name); i >= 0 {
			d.value(e.value, p, reflect.ValueOf(fields[i].Into).Elem())
		} else {
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.Name
			}
			d.unknown(e, p, names)
		}
	}
}

func (d *decoder) unknown(e entry, path string, known []string) {
	d.report(e.at, path, "an unknown field", "", didYouMean(e.name, known))
}

// entry is one field of a mapping.
type entry struct {
	name  string
	at    *token.Position // of the name
	value ast.Node
}

// entries lists the fields of a mapping: its own in the order of the file, then
// those that its merge keys (<<) bring in and that it does not have itself.
func (d *decoder) entries(n ast.Node, path string) []entry {
	m, ok := n.(ast.MapNode)
	if _, alias := n.(*ast.AliasNode); !ok || alias {
		d.wrong(path, describe(n), "fields, each NAME: VALUE", "")
		return nil
	}
	var own, merged []entry
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next() && d.spend(n, path); {
		if it.Key().IsMergeKey() {
			merged = append(merged, d.merged(it.Value(), path)...)
			continue
		}
		at := position(it.Key())
		switch name, ok := textOf(it.Key()); {
		case !ok:
			d.report(at, path, "a name that is not plain text", "NAME: VALUE", "")
		case seen[name]:
			d.report(at, join(path, name), "the field a second time", "", "remove one of the two")
		default:
			seen[name] = true
			own = append(own, entry{name, at, it.Value()})
		}
	}
	for _, e := range merged {
		if !seen[e.name] {
			seen[e.name] = true
			own = append(own, e)
		}
	}
	return own
}

// merged lists the fields that the value of a merge key brings in.
func (d *decoder) merged(n ast.Node, path string) (all []entry) {
	at := position(n)
	n, ok := d.resolve(n, path)
	if !ok {
		return nil
	}
	if d.depth++; d.depth > maxDepth {
		d.report(at, path, "an alias inside the value it stands for", "", "write the value out")
	} else if seq, ok := n.(*ast.SequenceNode); ok {
		for _, item := range seq.Values {
			all = append(all, d.merged(item, path)...)
		}
	} else {
		all = d.entries(n, path)
	}
	d.depth--
	return all
}
