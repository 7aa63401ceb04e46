package plan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestTermsAreWritten: every field of every part has a name, comes back by it, and is
// written in an order that only grows at its end: decisions are compared by it.
func TestTermsAreWritten(t *testing.T) {
	var terms Terms
	n := int64(0)
	for part := range reflect.ValueOf(&terms).Elem().NumField() {
		p := reflect.ValueOf(&terms).Elem().Field(part)
		for i := range p.NumField() {
			if n++; p.Field(i).CanInt() {
				p.Field(i).SetInt(n)
			} else {
				p.Field(i).SetUint(uint64(n))
			}
		}
	}
	b, err := json.Marshal(terms)
	const want = `{"batch":1,"plan":9,"class":12,"weight":13,"shift_us":11,"turn":2,"guest":5,"bond":7,"ceiling":6,"fence":8,"share":3,"swap_mib":4,"reserved_mbps":14,"keeps":10}`
	if err != nil || string(b) != want {
		t.Errorf("terms are written %s, %v, want %s", b, err, want)
	}
	if int(n) != len(termNames) {
		t.Errorf("%d fields have %d names", n, len(termNames))
	}
	for _, was := range []Terms{terms, {}, DefaultTerms()} {
		again := terms
		if b, err := json.Marshal(was); err != nil || json.Unmarshal(b, &again) != nil || again != was {
			t.Errorf("%+v came back as %+v from %s, %v", was, again, b, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"Batch":0}`), &terms); err == nil || !strings.Contains(err.Error(), `"Batch"`) {
		t.Errorf("terms of another program are read: %v", err)
	}
}
