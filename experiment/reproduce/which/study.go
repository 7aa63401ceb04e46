// Package which runs what an operator may choose between on the histories of four clusters, and
// writes the page that says which to choose (docs/which.md).
package which

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterdl/muster/experiment/reproduce"
)

// Choice is a composition that an operator may run, with what it is told of running times.
type Choice struct {
	Strategy string `json:"strategy"`
	Knows    string `json:"knows"`
}

// Choices are what is compared, behind what all are measured against: the shortest remaining service
// first, told the true times, which nobody can run.
var Choices = []Choice{
	{"srsf+oracle", "all times"},
	{"muster", "nothing"},
	{"las", "nothing"},
	{"tiresias", "nothing"},
	{"history+srsf", "history"},
	{"fifo+chance", "nothing"},
	{"history+fifo+easy", "history"},
	{"fifo", "nothing"},
}

// Work is a history of jobs, and the cluster that they come to.
type Work struct {
	Name    string
	Trace   string // generated, or published data by its format and the path below its folder
	Cluster string
	Load    float64 // 0 leaves it as it was
	Limit   int     // of jobs; 0 is all
}

// Works are the four histories: one that is drawn, and three that happened.
var Works = []Work{
	{Name: "RW-A", Trace: "gen:rw-a", Cluster: "gpus:15x4"},
	{Name: "Venus", Trace: "helios:helios", Cluster: "gpus:74x8"},
	{Name: "Philly", Trace: "philly:philly", Cluster: "philly", Load: .95},
	{Name: "PAI", Trace: "pai:pai2020", Cluster: "gpus:100x8", Load: 1, Limit: 30_000},
}

// Study is every choice on every history.
type Study struct {
	Seeds     int       `json:"seeds"` // how often what is drawn is drawn
	Choices   []Choice  `json:"choices"`
	Histories []History `json:"histories"`

	Data     string              `json:"-"` // the folder of published data
	Workers  int                 `json:"-"` // simulations at once; 0 is one per core
	Progress func(done, all int) `json:"-"`
}

// History is what the choices came to on one of the works, or why it was left out.
type History struct {
	Name   string `json:"name"`
	Absent string `json:"absent,omitempty"`
	// Compared is where every job saves when asked, and Never where neverSave of them never do.
	Compared *reproduce.Compared `json:"compared,omitempty"`
	Never    *reproduce.Compared `json:"one_in_three_never_saves,omitempty"`
}

// neverSave is the part of the jobs that never save in the second of both runs.
const neverSave = 1. / 3

// Run compares the choices on one history after the other, twice: each job saves when asked, and some never do.
func (s *Study) Run() error { return s.run(Works) }

func (s *Study) run(works []Work) error {
	s.Choices = Choices
	for i := range works {
		h := History{Name: works[i].Name}
		c := s.comparison(&works[i])
		if format, path, _ := strings.Cut(c.Setup.Trace, ":"); format != "gen" {
			if _, err := os.Stat(path); err != nil {
				h.Absent = fmt.Sprintf("%s is not there: name the folder of published data with --data", path)
				s.Histories = append(s.Histories, h)
				continue
			}
		}
		var err error
		for k, to := range []**reproduce.Compared{&h.Compared, &h.Never} {
			c.Setup.Saving.Never = float64(k) * neverSave
			c.Progress = func(p reproduce.Progress) {
				if s.Progress != nil {
					s.Progress((2*i+k)*p.Runs+p.Done, 2*len(works)*p.Runs)
				}
			}
			if *to, err = reproduce.Compare(c); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		s.Histories = append(s.Histories, h)
	}
	return nil
}

// comparison is the choices on one of the works.
func (s *Study) comparison(w *Work) reproduce.Comparison {
	c := reproduce.Comparison{Setup: reproduce.Defaults(), Seeds: s.Seeds, Workers: s.Workers}
	c.Setup.Trace, c.Setup.Cluster, c.Setup.Load, c.Setup.Limit = w.Trace, w.Cluster, w.Load, w.Limit
	if format, path, _ := strings.Cut(w.Trace, ":"); format != "gen" {
		c.Setup.Trace = format + ":" + filepath.Join(s.Data, path)
	}
	for _, choice := range s.Choices {
		c.Strategies = append(c.Strategies, choice.Strategy)
	}
	return c
}
