package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/internal/whatif"
	"github.com/musterdl/muster/model/queue"
)

// evil is a name that colours what follows it, sets the window's title, and turns the
// writing direction round.
const evil = "e\x1b[31mvi\x1b]0;t\al\u202e\u009b2J"

// spoil puts evil into every text of a value, and something into everything else.
func spoil(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		spoil(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		spoil(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		spoil(key, depth+1)
		spoil(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i), depth+1)
			}
		}
	}
}

// filled is a T full of evil, as JSON.
func filled[T any]() []byte {
	var x T
	spoil(reflect.ValueOf(&x).Elem(), 0)
	data, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return data
}

// No name and no message of a server's reaches the terminal as it is, in any command's
// text, JSON or error.
func TestNothingSteersTheTerminal(t *testing.T) {
	dir, err := os.MkdirTemp("", "mst") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var answer []byte
	status := http.StatusOK
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(answer)
		}))
	}()
	defer l.Close()
	refusal, err := json.Marshal(map[string]any{"error": map[string]any{"message": evil, "problems": []map[string]string{{"text": evil}}}})
	if err != nil {
		t.Fatal(err)
	}
	for line, data := range map[string][]byte{
		"ls": filled[view.Jobs](), "show j": filled[view.Job](), "show j --steps": filled[view.Steps](), "why j": filled[view.Why](), "when j": filled[view.When](),
		"nodes": filled[view.Nodes](), "status": filled[view.Cluster](), "queues": filled[queue.Tree](), "share": filled[view.Shares](),
		"share --accounts": filled[view.Accounts](), "calendar": filled[view.Calendar](), "promises": filled[view.Promises](), "shadow ls": filled[view.Shadows](),
		"whatif --strategy las": filled[whatif.Answer](), "strategies switch las": filled[whatif.Switched](), "defrag": filled[defrag.Shown](),
		"user ls": filled[access.UserList](), "token ls": filled[access.TokenList](), "audit": filled[access.AuditList](),
		"cancel j": filled[view.Job](), "pause": filled[view.Cluster](), "cordon n": filled[view.Node](),
	} {
		for _, mode := range []string{"text", "json", "refused"} {
			args := append(strings.Fields(line), "--socket", socket)
			answer, status = data, http.StatusOK
			switch mode {
			case "json":
				args = append(args, "--json")
			case "refused":
				answer, status = refusal, http.StatusConflict
			}
			said, failed := saidBy(t, args)
			if mode == "refused" {
				if failed == nil {
					t.Errorf("%s: not refused", line)
					continue
				}
				said += failed.Error()
			} else if failed != nil {
				var code exit
				if code, _ = failed.(exit); code == 0 {
					t.Errorf("%s, %s: %v", line, mode, failed)
				}
			}
			if i := strings.IndexFunc(said, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s, %s: %q", line, mode, said[max(0, i-20):min(len(said), i+20)])
			}
			if mode == "refused" && !strings.Contains(said, `e\x1b[31m`) || mode == "json" && !strings.Contains(said, `e\u001b[31m`) {
				t.Errorf("%s, %s: the name is not told: %.300s", line, mode, said)
			}
		}
	}
}

// saidBy runs a command and returns all that it prints.
func saidBy(t *testing.T, args []string) (string, error) {
	t.Helper()
	var b bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&b)
	cmd.SetErr(io.MultiWriter(&b))
	err := cmd.ExecuteContext(t.Context())
	return b.String(), err
}
