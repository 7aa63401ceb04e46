package workload

import (
	"strings"
	"testing"
)

func TestCopies(t *testing.T) {
	job := Job{Name: "a", Resources: Resources{Gang: 2}, Array: 3}
	var names []string
	for i, j := range job.Copies() {
		names = append(names, j.Name)
		if j.Array != 0 || j.Gang != 2 || j.Copy != int32(i)+1 || j.ArrayName() != "a" {
			t.Errorf("copy %+v", j)
		}
	}
	if got := strings.Join(names, " "); got != "a-0 a-1 a-2" {
		t.Errorf("copies %s", got)
	}
	job.Array = 1
	if all := job.Copies(); len(all) != 1 || all[0].Name != "a" || all[0].Copy != 0 || all[0].ArrayName() != "a" {
		t.Errorf("one copy is %+v", all)
	}
}
