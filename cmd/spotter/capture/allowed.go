package capture

import (
	"slices"
	"strings"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// capacityTypes returns which capacity types a pool buys by itself, as its annotation
// has them: those that the NodePools of its nodes allow, and those of its nodes of which
// the NodePool is not known. It is empty for a pool without nodes.
func (c *capturer) capacityTypes(p *pool) string {
	var spot, onDemand, seen bool
	for _, id := range p.nodes {
		if x := c.nodePoolOf(&c.s.Nodes[id]); x != nil {
			spot, onDemand = spot || permits(x, karpv1.CapacityTypeSpot), onDemand || permits(x, karpv1.CapacityTypeOnDemand)
			continue
		}
		seen = true
		if c.places[id].capacity == policy.Spot {
			spot = true
		} else {
			onDemand = true
		}
	}
	var types []string
	for _, x := range []struct {
		is   bool
		name string
	}{{onDemand, karpv1.CapacityTypeOnDemand}, {spot, karpv1.CapacityTypeSpot}} {
		if x.is {
			types = append(types, x.name)
		}
	}
	if seen {
		c.assume("pool %s buys %s by itself, as its nodes are", c.names.pool(p.name), strings.Join(types, " and "))
	}
	return strings.Join(types, ",")
}

// nodePoolOf returns the NodePool that n is of; nil without one that is known.
func (c *capturer) nodePoolOf(n *policy.Node) *karpv1.NodePool {
	name, _ := n.Label(karpv1.NodePoolLabelKey)
	i := slices.IndexFunc(c.o.NodePools, func(p karpv1.NodePool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.o.NodePools[i]
}

// permits reports whether the requirements of a NodePool allow a capacity type. One
// that asks for none allows all.
func permits(p *karpv1.NodePool, capacity string) bool {
	for _, q := range p.Spec.Template.Spec.Requirements {
		if q.Key != karpv1.CapacityTypeLabelKey {
			continue
		}
		named := slices.Contains(q.Values, capacity)
		if q.Operator == "In" && !named || q.Operator == "NotIn" && named || q.Operator == "DoesNotExist" {
			return false
		}
	}
	return true
}
