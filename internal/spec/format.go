package spec

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// FormatJob writes a job as a file that Jobs reads back as the same job, but for
// Submit, which no file has. Fields at their default are left out. Spans of more
// than ten years may lose their microseconds.
func FormatJob(job workload.Job) []byte {
	var w writer
	v := reflect.ValueOf(job)
	w.structure("", v, starts[v.Type()])
	if w.Len() == 0 {
		w.WriteString("workers: 1\n") // an empty file holds no job
	}
	return w.Bytes()
}

// writer writes what a decoder reads.
type writer struct{ bytes.Buffer }

// structure writes the fields of v that differ from those of start, a line each.
func (w *writer) structure(indent string, v, start reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		x := v.FieldByIndex(f.index)
		if reflect.DeepEqual(x.Interface(), start.FieldByIndex(f.index).Interface()) || x.Kind() == reflect.Slice && x.Len() == 0 {
			continue
		}
		fmt.Fprintf(w, "%s%s:", indent, f.name)
		switch {
		case f.form == asEnv:
			w.WriteByte('\n')
			for _, kv := range x.Interface().([]string) {
				name, value, _ := strings.Cut(kv, "=")
				fmt.Fprintf(w, "%s  %s: %s\n", indent, text(name), text(value))
			}
		case x.Kind() == reflect.Struct:
			w.WriteByte('\n')
			w.structure(indent+"  ", x, reflect.Zero(x.Type()))
		case x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Struct:
			w.WriteByte('\n')
			for i := range x.Len() {
				fmt.Fprintf(w, "%s  - {%s}\n", indent, line(x.Index(i)))
			}
		case x.Kind() == reflect.Slice:
			items := make([]string, x.Len())
			for i := range items {
				items[i] = plain(asTyped, x.Index(i))
			}
			fmt.Fprintf(w, " [%s]\n", strings.Join(items, ", "))
		default:
			fmt.Fprintf(w, " %s\n", plain(f.form, x))
		}
	}
}

// line writes the fields of v that are not zero on one line.
func line(v reflect.Value) string {
	var parts []string
	for _, f := range fieldsOf(v.Type()) {
		if x := v.FieldByIndex(f.index); !x.IsZero() {
			parts = append(parts, f.name+": "+plain(f.form, x))
		}
	}
	return strings.Join(parts, ", ")
}

// plain writes a single value. The String methods of package unit are for reading
// and round; a file must give back the same number.
func plain(f form, v reflect.Value) string {
	if f == inKiB {
		return scaled(v.Int(), 1<<10, "KiB", "MiB", "GiB")
	}
	switch x := v.Interface().(type) {
	case unit.MiB:
		return scaled(int64(x), 1<<10, "MiB", "GiB", "TiB")
	case unit.Mbps:
		return scaled(int64(x), 1000, "Mbps", "Gbps", "Tbps")
	case unit.Duration:
		return exactDuration(x)
	case string:
		return text(x)
	}
	return fmt.Sprint(v.Interface())
}

// scaled writes v in the largest unit in which it is whole.
func scaled(v, step int64, units ...string) string {
	i := 0
	for ; i+1 < len(units) && v != 0 && v%step == 0; i++ {
		v /= step
	}
	return strconv.FormatInt(v, 10) + units[i]
}

func exactDuration(d unit.Duration) string {
	var b strings.Builder
	for _, u := range []struct {
		size unit.Duration
		name string
	}{{unit.Hour, "h"}, {unit.Minute, "m"}, {unit.Second, "s"}, {unit.Millisecond, "ms"}, {unit.Microsecond, "us"}} {
		if n := d / u.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.size
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

var (
	bare     = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./-]*$`)
	reserved = regexp.MustCompile(`(?i)^(null|true|false|yes|no|on|off|y|n|\.inf|\.nan)$`)
)

// text writes a string bare where no reader of YAML could take it for anything else.
func text(s string) string {
	if bare.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
