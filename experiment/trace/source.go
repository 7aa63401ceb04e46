package trace

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// source is a file that can be opened more than once; gzip is recognised by its
// first bytes, not by its name.
type source struct {
	name   string // for messages
	member string // of a tar archive, or ""
	file   func() (io.ReadCloser, error)
}

// locate finds the file of a path; in a directory that is the well-known one.
func locate(where, wellKnown string) (source, error) {
	info, err := os.Stat(where)
	if err == nil && info.IsDir() {
		if wellKnown == "" {
			return source{}, fmt.Errorf("%s is a directory: expected a file", where)
		}
		where = filepath.Join(where, wellKnown)
		info, err = os.Stat(where)
	}
	file, member := where, ""
	if err != nil {
		if i := strings.LastIndexByte(where, '#'); i >= 0 {
			file, member = where[:i], where[i+1:]
			info, err = os.Stat(file)
		}
	}
	if err != nil {
		return source{}, err
	}
	if !info.Mode().IsRegular() {
		return source{}, fmt.Errorf("%s is not a regular file: traces are read twice", file)
	}
	return source{name: where, member: member, file: func() (io.ReadCloser, error) { return os.Open(file) }}, nil
}

// content is the plain content of a source; closing it closes the file underneath.
type content struct {
	io.Reader
	io.Closer
}

func (s source) open() (_ io.ReadCloser, err error) {
	f, err := s.file()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	in := bufio.NewReaderSize(f, 1<<16)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(z, 1<<16)
	}
	head, _ := in.Peek(262)
	isTar := len(head) == 262 && string(head[257:]) == "ustar"
	switch {
	case isTar:
		member, err := findMember(tar.NewReader(in), s.member)
		if err != nil {
			return nil, err
		}
		return content{member, f}, nil
	case s.member != "":
		return nil, fmt.Errorf("not a tar archive, so it has no member %q", s.member)
	}
	return content{in, f}, nil
}

// findMember winds the archive forward to a member.
func findMember(t *tar.Reader, want string) (io.Reader, error) {
	const shown = 5 // members named where the wanted one is missing
	var names []string
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the tar archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if want != "" && path.Clean(h.Name) == path.Clean(want) {
			return t, nil
		}
		if len(names) < shown {
			names = append(names, h.Name)
		}
	}
	have := "it holds " + strings.Join(names, ", ")
	if len(names) == shown {
		have += ", ..."
	}
	if want == "" {
		return nil, fmt.Errorf("a tar archive: expected a member after #; %s", have)
	}
	return nil, fmt.Errorf("the archive has no member %q; %s", want, have)
}

// Plain opens the content of a file, unpacked where it is packed: FILE, or ARCHIVE#MEMBER.
func Plain(where string) (io.ReadCloser, error) {
	src, err := locate(where, "")
	if err != nil {
		return nil, err
	}
	return src.open()
}
