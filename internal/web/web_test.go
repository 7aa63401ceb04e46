package web_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/web"
)

func get(method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w.Result()
}

// Every file goes out with its type, a tag to ask again with, and the policy.
func TestFiles(t *testing.T) {
	kinds := map[string]string{"/": "text/html; charset=utf-8", "/index.html": "text/html; charset=utf-8", "/console.css": "text/css; charset=utf-8",
		"/main.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml"}
	names, err := filepath.Glob("static/*")
	if err != nil || len(names) < 10 {
		t.Fatalf("the folder has %v (%v)", names, err)
	}
	for _, name := range names {
		if path := "/" + filepath.Base(name); kinds[path] == "" {
			kinds[path] = map[string]string{".js": kinds["/main.js"], ".css": kinds["/console.css"]}[filepath.Ext(path)]
		}
	}
	for path, kind := range kinds {
		resp := get("GET", path)
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != kind || len(body) == 0 {
			t.Errorf("%s: %d %q, want %q, with %d bytes", path, resp.StatusCode, resp.Header.Get("Content-Type"), kind, len(body))
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q does not say %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy %q lets too much through", path, policy)
		}
		again := get("GET", path, "If-None-Match", resp.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified || again.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: asked again: %d", path, again.StatusCode)
		}
		if other := get("GET", path, "If-None-Match", `"another"`); other.StatusCode != 200 {
			t.Errorf("%s: with an old tag: %d", path, other.StatusCode)
		}
	}
}

// What the page asks for has an address of its own for each edition, and is kept.
func TestEdition(t *testing.T) {
	page, _ := io.ReadAll(get("GET", "/").Body)
	names := regexp.MustCompile(`(?:src|href)="([0-9a-f]{16}/[a-z.]+)"`).FindAllStringSubmatch(string(page), -1)
	if len(names) != 4 {
		t.Fatalf("the page asks for %v, want two styles, a script and an icon:\n%s", names, page)
	}
	for _, m := range names {
		resp := get("GET", "/"+m[1])
		if resp.StatusCode != 200 || resp.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d, kept for %q", m[1], resp.StatusCode, resp.Header.Get("Cache-Control"))
		}
		if old := get("GET", "/0123456789abcdef/"+path.Base(m[1])); old.StatusCode != 404 {
			t.Errorf("%s of another edition: %d", m[1], old.StatusCode)
		}
	}
}

// What is not a file is not there: no listing, no way out of the folder, no change.
func TestNothingElse(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/static/", 404}, {"GET", "/static", 404}, {"GET", "/../web.go", 404}, {"GET", "/web.go", 404}, {"GET", "/main.js/", 404},
		{"GET", "//index.html", 404}, {"GET", "/%2e%2e/web.go", 404}, {"POST", "/", 405}, {"DELETE", "/main.js", 405}, {"HEAD", "/", 200},
	} {
		if resp := get(c.method, c.path); resp.StatusCode != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, resp.StatusCode, c.status)
		}
	}
}

// The files hold to what the policy enforces, so that nothing is found out in a browser
// only; and name nothing of others.
func TestSources(t *testing.T) {
	names, err := filepath.Glob("static/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), `"http://www.w3.org/2000/svg"`, "")
		for _, banned := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", "<style", " style=", "javascript:", "@import", "url("} {
			if strings.Contains(text, banned) {
				t.Errorf("%s has %s", name, banned)
			}
		}
		if lines := strings.Count(text, "\n"); lines > 500 {
			t.Errorf("%s has %d lines, at most 500 are for one file", name, lines)
		}
	}
}

// The colours of data are told apart by all: seen as people with the three kinds of
// colour blindness see them, any two still differ, and each differs from the ground.
func TestColours(t *testing.T) {
	data, err := os.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	schemes := strings.SplitN(string(data), "@media (prefers-color-scheme: dark)", 2)
	if len(schemes) != 2 {
		t.Fatal("there is no dark scheme")
	}
	// Machado, Oliveira and Fernandes (2009), table 1, severity 1.
	kinds := map[string][9]float64{"all": {1, 0, 0, 0, 1, 0, 0, 0, 1},
		"protanopia":   {.152286, 1.052583, -.204868, .114503, .786281, .099216, -.003882, -.048116, 1.051998},
		"deuteranopia": {.367322, .860646, -.227968, .280085, .672501, .047413, -.011820, .042940, .968881},
		"tritanopia":   {1.255528, -.076749, -.178779, -.078411, .930809, .147602, .004733, .691367, .303900}}
	const least = 9 // of the CIE76 difference; about 2.3 can just be noticed
	for scheme, css := range map[string]string{"light": schemes[0], "dark": schemes[1]} {
		colours := map[string][3]float64{}
		for _, m := range regexp.MustCompile(`--(c[0-6x]|card): #([0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			n, _ := strconv.ParseUint(m[2], 16, 32)
			colours[m[1]] = [3]float64{linear(n >> 16), linear(n >> 8 & 255), linear(n & 255)}
		}
		if len(colours) != 9 {
			t.Fatalf("%s has %d colours", scheme, len(colours))
		}
		for kind, m := range kinds {
			for a, x := range colours {
				for b, y := range colours {
					if d := difference(seen(m, x), seen(m, y)); a < b && d < least {
						t.Errorf("%s, %s: %s and %s differ by %.1f only", scheme, kind, a, b, d)
					}
				}
			}
		}
	}
}

func linear(channel uint64) float64 {
	v := float64(channel) / 255
	if v <= .04045 {
		return v / 12.92
	}
	return math.Pow((v+.055)/1.055, 2.4)
}

// seen is what is left of a colour, in CIELAB.
func seen(m [9]float64, c [3]float64) (lab [3]float64) {
	var rgb [3]float64
	for i := range rgb {
		rgb[i] = min(1, max(0, m[3*i]*c[0]+m[3*i+1]*c[1]+m[3*i+2]*c[2]))
	}
	f := func(r, g, b, white float64) float64 {
		t := (r*rgb[0] + g*rgb[1] + b*rgb[2]) / white
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (t*24389/27 + 16) / 116
	}
	x, y, z := f(.4124, .3576, .1805, .95047), f(.2126, .7152, .0722, 1), f(.0193, .1192, .9505, 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func difference(a, b [3]float64) (d float64) {
	for i := range a {
		d += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(d)
}

// ExampleHandler serves the console as a server does.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("GET /console/", http.StripPrefix("/console", web.Handler()))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/console", nil))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 307 /console/
}
