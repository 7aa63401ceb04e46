package catalogue

import (
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/spread"
)

// orders are those that a planner chooses from: each is another trade of bubble for memory, and
// cheap to write. Frameworks know them (docs/plan.md).
var orders = [...]string{"1f1b", "interleaved", "zb-h1", "zbv"}

// Menus is a maker of menus for a cluster, with the planner of a composition or, where it has none, ptd-p.
func Menus(c *cluster.Cluster, of Composition) (*spread.Maker, error) {
	m := &spread.Maker{Cluster: c}
	for _, name := range orders {
		filled, err := fill("sequence: " + name + "\n")
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
