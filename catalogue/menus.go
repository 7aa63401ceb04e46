package catalogue

import (
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/spread"
	"github.com/musterdl/muster/run"
)

// orders are those that a planner chooses from: each is another trade of bubble for memory, and
// cheap to write. Frameworks know them (docs/plan.md).
var orders = [...]string{"1f1b", "interleaved", "zb-h1", "zbv"}

// Menus is a maker of menus for a cluster, with the planner of a composition or, where it has none, ptd-p.
func Menus(c *cluster.Cluster, of Composition) (*spread.Maker, error) {
	return menus(c, of, run.Simulated)
}

// LiveMenus is one whose plans a driver carries out: of the sequences that it can, and none of which a
// run cannot be told.
func LiveMenus(c *cluster.Cluster, of Composition, can strategy.Ability) (*spread.Maker, error) {
	m, err := menus(c, of, can)
	if err == nil {
		m.Live = true
	}
	return m, err
}

func menus(c *cluster.Cluster, of Composition, can strategy.Ability) (*spread.Maker, error) {
	m := &spread.Maker{Cluster: c}
	for _, name := range orders {
		one, err := Parse("the planner", "sequence: "+name+"\n")
		if err != nil {
			return nil, err
		}
		if one.Refuse(can) != nil {
			continue
		}
		filled, err := one.Fill(Env{})
		if err != nil {
			return nil, err
		}
		m.Sequences = append(m.Sequences, parallel.Sequence{Name: name, Order: strategy.In[pipeline.Ordering](filled, pipeline.SequencePart)})
	}
	filled, err := of.Fill(Env{})
	if err == nil && filled[parallel.PlannerPart].Strategy == nil {
		filled, err = fill("planner: ptd-p\n")
	}
	if err != nil {
		return nil, err
	}
	m.Planner = strategy.In[parallel.Planner](filled, parallel.PlannerPart)
	return m, nil
}

func fill(text string) (strategy.Filled, error) {
	c, err := Parse("the planner", text)
	if err != nil {
		return nil, err
	}
	return c.Fill(Env{})
}
