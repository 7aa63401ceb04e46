package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Suspend implements Owners.
func (c *Client) Suspend(ctx context.Context, object corev1.ObjectReference, field string, suspended bool) error {
	note := any(nil) // which takes it away
	if suspended {
		note = "true"
	}
	return c.set(ctx, object, []string{field}, suspended, map[string]any{Stopped: note})
}

// Set implements Owners. What the server does not let change is an error that
// IsRefused knows, with the server's words.
func (c *Client) Set(ctx context.Context, object corev1.ObjectReference, fields []string, value int32) error {
	return c.set(ctx, object, fields, value, nil)
}

func (c *Client) set(ctx context.Context, object corev1.ObjectReference, fields []string, value any, notes map[string]any) error {
	err := func() error {
		kind, patch, err := patchOf(object.UID, fields, value, notes)
		if err != nil {
			return err
		}
		resource, err := c.served.resourceOf(object.APIVersion, object.Kind)
		if err != nil {
			return err
		}
		root := []string{"/apis", resource.Group, resource.Version}
		if resource.Group == "" {
			root = []string{"/api", resource.Version}
		}
		if object.Namespace != "" {
			root = append(root, "namespaces", object.Namespace)
		}
		path := append(root, resource.Resource, object.Name)
		return send(ctx, c.owners.Patch(kind).AbsPath(path...).SetHeader("Accept", onlyMetadata).Body(patch))
	}()
	if err != nil {
		return fmt.Errorf("setting %s of %s %s/%s to %v: %w", strings.Join(fields, ", "), object.Kind, object.Namespace, object.Name, value, err)
	}
	return nil
}

// patchOf is the patch that sets all fields to a value, if the object still has the
// UID. A merge patch makes what lies above a field where it is not there yet, such as
// spec.runPolicy; elements of lists only a JSON patch can name, which takes no notes.
func patchOf(uid types.UID, fields []string, value any, notes map[string]any) (types.PatchType, []byte, error) {
	if uid == "" || len(fields) == 0 {
		return "", nil, errors.New("expected the object's UID and at least one field")
	}
	paths, inLists := make([][]string, len(fields)), false
	for i, field := range fields {
		path, list, err := pathOf(field)
		if err != nil {
			return "", nil, err
		}
		paths[i], inLists = path, inLists || list
	}
	if inLists {
		patch, err := json.Marshal(operations(uid, paths, value))
		return types.JSONPatchType, patch, err
	}
	all := merged(uid, paths, value)
	if notes != nil {
		all["metadata"].(map[string]any)["annotations"] = notes
	}
	patch, err := json.Marshal(all)
	return types.MergePatchType, patch, err
}

// pathOf splits a field such as spec.replicatedJobs[1].replicas.
func pathOf(field string) (path []string, list bool, err error) {
	wrong := fmt.Errorf("field %q: expected names with dots between them, and indexes such as [1] behind them", field)
	for name := range strings.SplitSeq(field, ".") {
		name, rest, indexed := strings.Cut(name, "[")
		if name == "" {
			return nil, false, wrong
		}
		path = append(path, name)
		for indexed {
			var index string
			var closed bool
			index, rest, closed = strings.Cut(rest, "]")
			if n, err := strconv.ParseUint(index, 10, 31); err != nil || !closed || strconv.FormatUint(n, 10) != index {
				return nil, false, wrong
			}
			path, list = append(path, index), true
			if rest, indexed = strings.CutPrefix(rest, "["); !indexed && rest != "" {
				return nil, false, wrong
			}
		}
	}
	return path, list, nil
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// operations are a JSON patch: add replaces a field that is there. The UID is not
// compared by a test, as of a test that fails the server says only that the patch was
// wrong: it refuses to change a UID, and says so.
func operations(uid types.UID, paths [][]string, value any) []operation {
	all := []operation{{"replace", "/metadata/uid", uid}}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, path := range paths {
		pointer := ""
		for _, name := range path {
			pointer += "/" + escape.Replace(name)
		}
		all = append(all, operation{"add", pointer, value})
	}
	return all
}

// merged is a merge patch. The server refuses one that would change the UID.
func merged(uid types.UID, paths [][]string, value any) map[string]any {
	all := map[string]any{"metadata": map[string]any{"uid": uid}}
	for _, path := range paths {
		at := all
		for _, name := range path[:len(path)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[name] = below
			}
			at = below
		}
		at[path[len(path)-1]] = value
	}
	return all
}
