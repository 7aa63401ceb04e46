package figures

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
)

// TestPublished: a packed table and packed JSON are read as those that are not, and mistakes
// are named with file and line.
func TestPublished(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	files := map[string]string{"a.csv": "x,y\n1,2\n3,4\n", "a.csv.gz": pack("y,x\n2,1\n4,3\n"), "a.json.gz": pack(`{"x": 5}`), "bad.gz": "no"}
	open := func(path string) (io.ReadCloser, error) {
		text, there := files[path]
		if !there {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
	for _, path := range []string{"a.csv", "a.csv.gz"} {
		sum := ""
		err := FromTable(open, path, []string{"y", "x"}, func(f []string) error { sum += f[0] + f[1]; return nil })
		if err != nil || sum != "2143" {
			t.Errorf("%s: %q, %v", path, sum, err)
		}
	}
	var into struct{ X int }
	if err := FromJSON(open, "a.json.gz", &into); err != nil || into.X != 5 {
		t.Errorf("%+v, %v", into, err)
	}
	if err := FromJSON(open, "none", &into); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	all := func([]string) error { return nil }
	for _, c := range []struct {
		err  error
		want string
	}{
		{FromJSON(open, "a.csv", &into), "reading a.csv: "},
		{FromJSON(open, "bad.gz", &into), "reading bad.gz: "},
		{FromTable(open, "a.csv", []string{"z"}, all), "a.csv:1: expected a column z"},
		{FromTable(open, "a.csv", []string{"x"}, func(f []string) error {
			if f[0] == "3" {
				return errors.New("three")
			}
			return nil
		}), "a.csv:3: three"},
		{Table("empty", strings.NewReader(""), nil, all), "empty:1: expected a header"},
		{Table("short", strings.NewReader("a,b\n1\n"), nil, all), "reading short: "},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v: expected %q", c.err, c.want)
		}
	}
}
