package stand

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

func nothing(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }

func TestOpenSaysWhatIsWrong(t *testing.T) {
	register("tried", "for this test", func(_ Data, o *Options, _ uint64) (*Stand, error) {
		o.Int("devices", 4)
		o.Float("load", 1)
		return &Stand{Jobs: &List{}}, nil
	})
	defer delete(stands, "tried")
	if _, err := Open("stand:tried?devices=8&load=.5", nothing, 1); err != nil {
		t.Error(err)
	}
	for ref, say := range map[string]string{
		"nowhere":              `there is no stand "nowhere": choose one of`,
		"tried?devices=many":   "stand tried?devices=many: devices: invalid syntax",
		"tried?devises=8":      `there is no option "devises": it has ["devices" "load"]`,
		"stand:tried?load=;;;": "invalid semicolon",
	} {
		if _, err := Open(ref, nothing, 1); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: got %v, want %q", ref, err, say)
		}
	}
}

// TestStandsWithoutData: a stand of published data says that it is absent in a way that
// skips its claim; one that is drawn needs none. Whatever is drawn, it is drawn by seed.
func TestStandsWithoutData(t *testing.T) {
	for _, name := range Names() {
		if stands[name].about == "" {
			t.Errorf("stand %s says nothing about itself", name)
		}
		s, err := Open(name, nothing, 1)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("stand %s: %v", name, err)
			}
			continue
		}
		again, err := Open(name, nothing, 1)
		if err != nil {
			t.Fatal(err)
		}
		jobs := 0
		for ; ; jobs++ {
			a, truth, err := s.Jobs.Next()
			b, other, err2 := again.Jobs.Next()
			if errors.Is(err, io.EOF) && errors.Is(err2, io.EOF) {
				break
			}
			if err != nil || err2 != nil || a.Name != b.Name || a.Submit != b.Submit || truth.Duration != other.Duration {
				t.Fatalf("stand %s: job %d is drawn differently the second time: %v, %v", name, jobs, err, err2)
			}
		}
		if jobs == 0 || s.Cluster == nil || len(s.Cluster.Devices) == 0 {
			t.Errorf("stand %s has %d jobs, or no devices", name, jobs)
		}
	}
}

// TestChronusPrices: saving takes 6 s and restoring 24 s, and four times as long for eight
// devices; with restarts of a minute twice that.
func TestChronusPrices(t *testing.T) {
	for _, c := range []struct {
		restartSec float64
		save, load unit.Duration
	}{{30, 24 * unit.Second, 96 * unit.Second}, {60, 48 * unit.Second, 192 * unit.Second}, {0, 0, 0}} {
		all := list([]item{{Job: workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1}}}, {Job: workload.Job{Resources: workload.Resources{Gang: 2, Devices: 4}}}})
		got, err := sample(all, 1, c.restartSec, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if one, eight := got.Jobs[0].Checkpoint, got.Jobs[1].Checkpoint; one.Save != c.save/4 || one.Load != c.load/4 || eight.Save != c.save || eight.Load != c.load {
			t.Errorf("restarts of %g s: %+v on one device, %+v on eight", c.restartSec, one, eight)
		}
	}
}
