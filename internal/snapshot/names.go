package snapshot

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated/world/speed"
)

// names gives strings pseudonyms: equal ones the same, whatever they name, and others
// others. Which is which is known to this value alone, and gone with it.
//
// It finds the strings by reflection, so that a field that is added to an event or to
// what hangs below one is covered by default; only what is listed in kept stays.
type names struct {
	of     map[string]string // pseudonyms, by what they stand for
	counts map[string]int    // by kind
}

func newNames() *names {
	return &names{of: map[string]string{}, counts: map[string]int{}}
}

// kept are the fields that decisions depend on and that name nothing of the owner's:
// device models and their partitions, which sizes and speeds are looked up by, and names
// of strategies and laws.
var kept = map[string]bool{
	"Model.Name": true, "Geometry.Name": true, "Job.Models": true, "Amount.Model": true,
	"Job.Law": true, "Event.Asker": true, "setting.Strategy": true,
}

// kinds say what the pseudonyms of a field begin with, where it is not "text". Names of
// tenants and queues are paths, and the path of a tenant says which queue it is in.
var kinds = map[string]string{
	"Job.Name": "job", "Job.After": "job", "Job.Tenant": "tenant", "Job.User": "user", "Event.By": "user",
	"Job.Class": "class", "Layer.Name": "layer", "Cluster.Name": "cluster", "Rack.Name": "rack", "Node.Name": "node",
	"Queue.Name": "tenant",
}

// event gives everything in an event another name.
func (n *names) event(e *engine.Event) error {
	setting, err := n.setting(e.Setting)
	if err != nil {
		return err
	}
	var copies []workload.Job
	if e.Spec != nil && e.Spec.Array > 1 {
		copies = e.Spec.Copies()
	}
	n.walk(reflect.ValueOf(e).Elem(), "")
	for i := range copies { // who comes after one of them names it so
		n.of[copies[i].Name] = fmt.Sprintf("%s-%d", e.Spec.Name, i)
	}
	e.Setting = setting
	return nil
}

// setting gives everything in an encoded setting another name.
func (n *names) setting(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	s, err := plane.ReadSetting(data)
	if err != nil {
		return nil, err
	}
	if s.Strategy, err = n.strategy(s.Strategy); err != nil {
		return nil, err
	}
	n.walk(reflect.ValueOf(&s).Elem(), "")
	again, err := json.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("encoding the setting: %w", err)
	}
	return again, nil
}

// walk replaces the strings below a value; field is the name of the field it is in.
func (n *names) walk(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		if !kept[field] {
			v.SetString(n.in(field, v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n.walk(v.Elem(), field)
		}
	case reflect.Interface:
		v.SetZero() // nothing that is decided by has one
	case reflect.Struct:
		n.walkFields(v, v.Type().Name())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetZero() // bytes may say anything
			return
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			n.walk(v.Index(i), field)
		}
	case reflect.Map:
		n.walkMap(v, field)
	}
}

// walkFields replaces the strings in the fields of a struct. A part of one is told by the
// name of the whole.
func (n *names) walkFields(v reflect.Value, whole string) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			n.walkFields(v.Field(i), whole)
		case f.IsExported():
			n.walk(v.Field(i), whole+"."+f.Name)
		}
	}
}

// walkMap replaces the strings in the keys and values of a map.
func (n *names) walkMap(v reflect.Value, field string) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	other := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, k := range keys {
		key, value := reflect.New(k.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(k)
		value.Set(v.MapIndex(k))
		n.walk(key, field)
		n.walk(value, field)
		other.SetMapIndex(key, value)
	}
	if v.Len() > 0 {
		v.Set(other)
	}
}

// in is what a string in a field becomes.
func (n *names) in(field, text string) string {
	switch kind := kinds[field]; {
	case text == "":
		return ""
	case kind == "":
		return n.pseudonym("text", text)
	case kind == "tenant":
		path := strings.Split(text, "/")
		for i, part := range path {
			if part != "" {
				path[i] = n.pseudonym(kind, part)
			}
		}
		return strings.Join(path, "/")
	case field == "Job.After":
		name, _ := workload.ParseAfter(text)
		return workload.AfterOf(text, n.pseudonym(kind, name))
	case field == "Event.By":
		name, _, _ := strings.Cut(text, " ") // the rest is the user's number
		return n.pseudonym(kind, name)
	case kind == "class" && slices.Contains(speed.Classes(), text):
		return text // a published kind of work, whose measured speeds may be looked up
	default:
		return n.pseudonym(kind, text)
	}
}

// pseudonym is what a name is called instead.
func (n *names) pseudonym(kind, name string) string {
	if p, ok := n.of[name]; ok {
		return p
	}
	for {
		n.counts[kind]++
		p := kind + "-" + strconv.Itoa(n.counts[kind])
		if _, original := n.of[p]; original {
			continue // somebody's real name
		}
		n.of[name] = p
		return p
	}
}

// strategy keeps what a composition says and drops its name and comments.
func (n *names) strategy(text string) (string, error) {
	if !strings.Contains(text, ":") {
		return text, nil // names of strategies
	}
	var fields yaml.MapSlice
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return "", fmt.Errorf("reading the strategy: %w", err)
	}
	for i := range fields {
		if name, ok := fields[i].Value.(string); ok && fields[i].Key == "name" {
			fields[i].Value = n.pseudonym("strategy", name)
		}
	}
	again, err := yaml.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("writing the strategy: %w", err)
	}
	return string(again), nil
}
