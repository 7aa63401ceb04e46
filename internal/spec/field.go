package spec

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// field is how one field of a struct is called and written in a file.
type field struct {
	name  string
	index []int
	form  form
}

// form is how a field is written where its type does not say.
type form int

const (
	asTyped form = iota
	inKiB
	asCommand // a list of arguments, or one line for a shell
	asEnv     // NAME: VALUE fields
	asPart    // its fields are those of the whole
)

// renamed holds the fields of the nouns that are called otherwise in a file, or
// read otherwise than their type says: the nouns know nothing of YAML, so they
// carry no tags.
var renamed = map[reflect.Type]map[string]field{
	reflect.TypeFor[workload.Job](): {
		"Submit":    {name: "-"}, // when a job arrives is not for its owner to say
		"Resources": {form: asPart}, "Traits": {form: asPart}, "Program": {form: asPart},
	},
	reflect.TypeFor[workload.Resources](): {"Gang": {name: "workers"}, "Devices": {name: "devices-per-worker"}},
	reflect.TypeFor[workload.Program]():   {"Command": {name: "command", form: asCommand}, "Env": {name: "env", form: asEnv}},
	reflect.TypeFor[workload.Layer](): {
		"ParamKiB":      {name: "params", form: inKiB},
		"OutputKiB":     {name: "output", form: inKiB},
		"ActivationKiB": {name: "activations", form: inKiB},
	},
	reflect.TypeFor[cluster.Part](): {"Milli": {name: "compute"}},
}

// starts holds what the items of a list are before the file is read.
var starts = map[reflect.Type]reflect.Value{
	reflect.TypeFor[workload.Job]():  reflect.ValueOf(workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}),
	reflect.TypeFor[cluster.Model](): reflect.ValueOf(cluster.Model{Speed: 1}),
	reflect.TypeFor[nodeFile]():      reflect.ValueOf(nodeFile{Count: 1}),
	reflect.TypeFor[queueFile]():     reflect.ValueOf(queueFile{Weight: unit.Whole}),
}

// special reads a field whose type does not say how.
func (d *decoder) special(f form, n ast.Node, path string, v reflect.Value) {
	d.at[path] = position(n)
	n, ok := d.resolve(n, path)
	switch {
	case !ok:
	case f == inKiB:
		d.quantity(n, path, v, kibQuantity)
	case f == asCommand:
		d.command(n, path, v)
	case f == asEnv:
		d.env(n, path, v)
	}
}

// knownFields keeps what fieldsOf found of a type: a file asks for each of its mappings.
var knownFields sync.Map // reflect.Type -> []field

// fieldsOf lists the fields of a struct type as a file calls them, those of its parts
// among them. Nobody changes the list.
func fieldsOf(t reflect.Type) (fields []field) {
	if known, ok := knownFields.Load(t); ok {
		return known.([]field)
	}
	defer func() { knownFields.Store(t, fields) }()
	for i := range t.NumField() {
		f := renamed[t][t.Field(i).Name]
		if f.form == asPart || t.Field(i).Anonymous {
			for _, of := range fieldsOf(t.Field(i).Type) {
				of.index = append([]int{i}, of.index...)
				fields = append(fields, of)
			}
			continue
		}
		f.index = []int{i}
		if f.name == "" {
			f.name, _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		}
		if f.name == "" {
			f.name = dashed(t.Field(i).Name)
		}
		if f.name != "-" && t.Field(i).IsExported() {
			fields = append(fields, f)
		}
	}
	return fields
}

// dashed turns a Go name into the name in a file: HostMemory into host-memory, CPU
// into cpu.
func dashed(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// quantity is how a type of package unit is read and explained.
type quantity struct {
	expected string
	units    string // the units to choose from; empty where a plain number will do
	example  string // the unit in the advice to who forgot it
	parse    func(string) (int64, error)
}

var quantities = map[reflect.Type]quantity{
	reflect.TypeFor[unit.MiB]():      {"an amount of memory such as 16GiB, up to 1EiB", "B, KiB, MiB, GiB, TiB, KB, MB, GB, TB", "GiB", parsed(unit.ParseMiB)},
	reflect.TypeFor[unit.Mbps]():     {"a bandwidth such as 25Gbps", "Mbps, Gbps, Tbps", "Gbps", parsed(unit.ParseMbps)},
	reflect.TypeFor[unit.Duration](): {"a span of time such as 90s or 2h30m, up to 1000 years", "us, ms, s, m, h, d", "s", parsed(unit.ParseDuration)},
	reflect.TypeFor[unit.Milli]():    {"a count such as 2, 0.5 or 500m", "", "", parsed(unit.ParseMilli)},
}

var kibQuantity = quantity{"an amount of memory such as 512KiB", "KiB, MiB, GiB", "KiB", parseKiB}

func parsed[T ~int64](parse func(string) (T, error)) func(string) (int64, error) {
	return func(s string) (int64, error) {
		v, err := parse(s)
		return int64(v), err
	}
}

// parseKiB reads memory in KiB: package unit counts in MiB, so it is asked for the
// number of MiB in a thousand times as much.
func parseKiB(s string) (int64, error) {
	for _, u := range [][2]string{{"KiB", "MiB"}, {"MiB", "GiB"}, {"GiB", "TiB"}} {
		if number, ok := strings.CutSuffix(s, u[0]); ok {
			v, err := unit.ParseMiB(number + u[1])
			return int64(v), err
		}
	}
	return 0, strconv.ErrSyntax
}

// quantity reads a number with its unit. One without is refused, quoted or not: a
// bare 16 has meant bytes, megabytes and gigabytes to different people.
func (d *decoder) quantity(n ast.Node, path string, v reflect.Value, q quantity) {
	text, ok := d.scalar(n, path, q.expected)
	if !ok {
		return
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && q.units != "" {
		d.wrong(path, "the plain number "+text, q.expected, "add a unit ("+q.units+"), as in "+text+q.example)
		return
	}
	x, err := q.parse(text)
	if err != nil {
		do := ""
		if q.units != "" {
			do = "the units are " + q.units
		}
		d.wrong(path, describe(n), q.expected, do)
		return
	}
	v.SetInt(x)
}

// command reads a list of arguments, or one line for a shell.
func (d *decoder) command(n ast.Node, path string, v reflect.Value) {
	if text, ok := textOf(n); ok && n.Type() != ast.NullType {
		if _, ok := d.scalar(n, path, "a command"); ok {
			v.Set(reflect.ValueOf(ShellLine(text)))
		}
		return
	}
	d.value(n, path, v)
}

// ShellMarks mean something to a shell: a word without them is the same to it and to a program.
const ShellMarks = " \t\n;&|<>()$`\"'*?~={}[]!#\\"

// ShellLine is the command that has a shell run a line.
func ShellLine(line string) []string { return []string{"sh", "-c", line} }

// env reads NAME: VALUE fields into NAME=VALUE, in the order of the file.
func (d *decoder) env(n ast.Node, path string, v reflect.Value) {
	var env []string
	for _, e := range d.entries(n, path) {
		p, value := join(path, e.name), ""
		if e.name == "" || strings.ContainsAny(e.name, "=\x00") {
			d.report(e.at, path, "the name "+quote(e.name), "the name of an environment variable", "")
			continue
		}
		d.value(e.value, p, reflect.ValueOf(&value).Elem())
		env = append(env, e.name+"="+value)
	}
	v.Set(reflect.ValueOf(env))
}

// textOf returns a single value as written, without quotes.
func textOf(n ast.Node) (string, bool) {
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		return x.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode, *ast.NullNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// describe says in a message what a node is.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "fields"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := textOf(n)
		return quote(text)
	}
	return strings.Trim(quote(n.GetToken().Value), `"`)
}

// position is where a node starts.
func position(n ast.Node) *token.Position {
	switch x := n.(type) {
	case *ast.MappingNode:
		if !x.IsFlowStyle && len(x.Values) > 0 {
			return position(x.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(x.Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position
	}
	return &token.Position{Line: 1, Column: 1}
}
