package strategy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// bounds are the tags by which a field of a strategy's options says which numbers it may
// be: `yaml:"lanes" least:"1" most:"10"`.
var bounds = []struct {
	tag, words string
	holds      func(number, bound float64) bool
}{
	{"least", "at least", func(number, bound float64) bool { return number >= bound }},
	{"above", "above", func(number, bound float64) bool { return number > bound }},
	{"most", "at most", func(number, bound float64) bool { return number <= bound }},
	{"below", "below", func(number, bound float64) bool { return number < bound }},
}

// Check says what is wrong with the options of a strategy: first which field is beyond its
// bounds or none of the words in its tag `of`, then what Validate, where there is one, says
// of several fields together. Tags of a list are those of its elements.
func Check(options any) error {
	if err := within(reflect.ValueOf(options), "", ""); err != nil {
		return err
	}
	if v, ok := options.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// within holds a value, named as in YAML, to the tags of its field.
func within(v reflect.Value, name string, tag reflect.StructTag) error {
	switch v = reflect.Indirect(v); {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			word, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if err := within(v.Field(i), strings.TrimPrefix(name+"."+word, "."), field.Tag); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			if err := within(v.Index(i), fmt.Sprintf("%s[%d]", name, i), tag); err != nil {
				return err
			}
		}
	case v.CanInt():
		return inBounds(v, float64(v.Int()), name, tag)
	case v.CanFloat():
		return inBounds(v, v.Float(), name, tag)
	case v.Kind() == reflect.String:
		if words := strings.Fields(tag.Get("of")); len(words) > 0 && !slices.Contains(words, v.String()) {
			return fmt.Errorf("%s is %q: it must be one of %s", name, v, strings.Join(words, ", "))
		}
	}
	return nil
}

func inBounds(v reflect.Value, number float64, name string, tag reflect.StructTag) error {
	var must []string
	ok := true
	for _, b := range bounds {
		if text := tag.Get(b.tag); text != "" {
			bound, err := strconv.ParseFloat(text, 64)
			if err != nil {
				panic(fmt.Sprintf("%s: tag %s: %v", name, b.tag, err))
			}
			like := reflect.ValueOf(bound).Convert(v.Type()) // in its unit
			must, ok = append(must, fmt.Sprint(b.words, " ", like)), ok && b.holds(number, bound)
		}
	}
	if !ok {
		return fmt.Errorf("%s is %v: it must be %s", name, v, strings.Join(must, " and "))
	}
	return nil
}
