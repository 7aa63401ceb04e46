package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/musterdl/muster/model/unit"
)

// config stands for the typed configuration of another package.
type config struct {
	Queues     int
	Thresholds []unit.Duration
	HalfLife   unit.Duration
	Weights    map[string]float64
	Mode       mode
	Unsigned   uint16
	Ratio      float64
	Limit      *int64 `yaml:"limit,omitempty"`
	Flag       bool
	Name       string
	Nested     struct {
		Level int8
		On    bool
	}
	unexported int
}

type mode string

func (m *mode) UnmarshalText(text []byte) error {
	if string(text) != "las" && string(text) != "gittins" {
		return fmt.Errorf("use las or gittins")
	}
	*m = mode(text)
	return nil
}

// TestMessages compares the text of what users see, word by word.
func TestMessages(t *testing.T) {
	for _, name := range []string{"jobs", "cluster", "config"} {
		t.Run(name, func(t *testing.T) {
			datadriven.RunTest(t, "testdata/bad-"+name+".txt", func(t *testing.T, c *datadriven.TestData) string {
				var err error
				switch file := "f.yaml"; c.Cmd {
				case "jobs":
					_, err = Jobs(file, []byte(c.Input))
				case "cluster":
					_, err = Cluster(file, []byte(c.Input))
				case "config":
					err = Decode(file, []byte(c.Input), &config{})
				default:
					c.Fatalf(t, "unknown command %s", c.Cmd)
				}
				if err == nil {
					return "no problem"
				}
				return strings.ReplaceAll(err.Error(), "f.yaml:", "") + "\n"
			})
		})
	}
}
