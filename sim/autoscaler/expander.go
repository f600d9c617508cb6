package autoscaler

import (
	"math"
	"regexp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Expander chooses which group grows.
type Expander uint8

// The expanders.
const (
	LeastWaste Expander = iota
	MostPods
	LeastNodes
	ByPriority
	Random
)

// A Priority is one entry of the ConfigMap of the priority expander.
type Priority struct {
	Value int
	Names []*regexp.Regexp
}

// Best returns the options with the best score of the expander, in their order. Options without
// nodes are left out. The Cluster Autoscaler chooses among the result at random
// (expander/random/random.go).
func (c *Cluster) Best(pods []policy.Pod, options []Option) (best []Option) {
	value := func(*Option) float64 { return 0 }
	switch c.Expander {
	case LeastWaste:
		value = func(o *Option) float64 { return -c.waste(o, pods) }
	case MostPods:
		value = func(o *Option) float64 { return float64(len(o.Pods)) }
	case LeastNodes:
		value = func(o *Option) float64 { return -float64(o.Nodes) }
	case ByPriority:
		value = func(o *Option) float64 { return c.priorityOf(c.Groups[o.Group].Name) }
	}
	most := math.Inf(-1)
	for i := range options {
		o := &options[i]
		if o.Nodes == 0 || len(o.Pods) == 0 {
			continue
		}
		v := value(o)
		if v > most || len(best) == 0 {
			best, most = best[:0], v
		}
		if v == most {
			best = append(best, *o)
		}
	}
	return best
}

// waste returns the sum of the fractions of CPU and of memory that an option adds and no pod
// requests (expander/waste/waste.go).
func (c *Cluster) waste(o *Option, pods []policy.Pod) float64 {
	var asked policy.Resources
	for _, i := range o.Pods {
		asked = asked.Plus(c.Templates[pods[i].Template].Requests)
	}
	bought := c.Groups[o.Group].Capacity.Scale(int64(o.Nodes))
	part := func(bought, asked int64) float64 { return float64(bought-asked) / float64(max(bought, 1)) }
	return part(bought.CPU, asked.CPU) + part(bought.Memory, asked.Memory)
}

// priorityOf returns the highest priority of a group, or negative infinity if no entry matches its
// name (expander/priority/priority.go).
func (c *Cluster) priorityOf(group string) float64 {
	most := math.Inf(-1)
	for _, p := range c.Priorities {
		if slices.ContainsFunc(p.Names, func(r *regexp.Regexp) bool { return r.MatchString(group) }) {
			most = max(most, float64(p.Value))
		}
	}
	return most
}
