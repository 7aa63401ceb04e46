// Package web is the console: static files that are part of the program, and the
// handler that serves them. The files are what people wrote, in the language of
// browsers: there is nothing to build, nothing of others is in them, and nothing is
// fetched from anywhere but the server they came from. What they show is what the
// API under /v1 answers.
//
// The policy that goes out with every file lets a browser run and load only what
// this handler serves, and turn no text into markup.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var embedded embed.FS

// policy is the Content-Security-Policy. Styles and scripts are files, so nothing
// inline is let through; trusted types refuse every way of making elements of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// kinds are the types of what may be in the folder; a file of another kind is a mistake.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// edition stands in the page for the digest of all files: modules and styles are asked
// for under it and kept by browsers for good, as another edition has other addresses.
// That keeps a reload to one question, and a new page from meeting old modules.
const edition = "EDITION"

// file is one file as it goes out.
type file struct {
	body []byte
	kind string
	etag string
}

// Handler serves the console. It expects paths without the prefix that it is mounted
// under, the empty one and "/" being the page itself. The page asks for the API at
// ../v1, so it is to be mounted one folder deep.
func Handler() http.Handler {
	files, digest, err := load(embedded)
	if err != nil {
		panic(err) // the program was built of a folder that it cannot serve
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the console is only read", http.StatusMethodNotAllowed)
			return
		}
		name, kept := strings.CutPrefix(strings.TrimPrefix(r.URL.Path, "/"), digest+"/")
		if name == "" {
			name = "index.html"
		}
		f, ok := files[name]
		if !ok {
			http.Error(w, "the console has no such file; its page is at the folder itself", http.StatusNotFound)
			return
		}
		h.Set("Content-Type", f.kind)
		h.Set("ETag", f.etag)
		h.Set("Cache-Control", "no-cache")
		if kept {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.body))
	})
}

// load reads the folder into memory, with the digest of each file as its tag: files
// that are embedded have no time. It returns the digest of all of them too.
func load(from fs.FS) (files map[string]file, digest string, err error) {
	files, all := map[string]file{}, sha256.New()
	err = fs.WalkDir(from, "static", func(name string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || d.IsDir() {
			return err
		}
		kind, ok := kinds[path.Ext(name)]
		if !ok {
			return fmt.Errorf("%s: the console serves no file of this kind", name)
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(all, "%s %d\n", name, len(body))
		all.Write(body)
		files[strings.TrimPrefix(name, "static/")] = file{body: body, kind: kind}
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("reading the console's files: %w", err)
	}
	digest = hex.EncodeToString(all.Sum(nil)[:8])
	for name, f := range files {
		if path.Ext(name) == ".html" {
			f.body = bytes.ReplaceAll(f.body, []byte(edition), []byte(digest))
		}
		sum := sha256.Sum256(f.body)
		f.etag = `"` + hex.EncodeToString(sum[:12]) + `"`
		files[name] = f
	}
	return files, digest, nil
}
