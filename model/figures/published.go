package figures

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Open opens a file by its path in the folder of published data.
type Open = func(path string) (io.ReadCloser, error)

// with has a file read, unpacked where its name ends in .gz. The error of one that is not there
// is returned wrapped.
func with(open Open, path string, read func(io.Reader) error) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := io.Reader(f)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return read(in)
}

// FromJSON reads a published file of JSON.
func FromJSON(open Open, path string, into any) error {
	return with(open, path, func(in io.Reader) error {
		if err := json.NewDecoder(in).Decode(into); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		return nil
	})
}

// FromTable reads a published file of comma-separated values; see Table.
func FromTable(open Open, path string, columns []string, row func(fields []string) error) error {
	return with(open, path, func(in io.Reader) error { return Table(path, in, columns, row) })
}

// Table reads comma-separated values under a header: of each row the fields of the named
// columns, in the order of the names. Errors say file and line; fields are those of one row only.
func Table(name string, r io.Reader, columns []string, row func(fields []string) error) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s:1: expected a header: %w", name, err)
	}
	at, fields := make([]int, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		if at[i] = slices.Index(header, c); at[i] < 0 {
			return fmt.Errorf("%s:1: expected a column %s", name, c)
		}
	}
	for line := 2; ; line++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		for i := range fields {
			fields[i] = record[at[i]]
		}
		if err := row(fields); err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}
