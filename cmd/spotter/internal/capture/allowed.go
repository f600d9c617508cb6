package capture

import (
	"math"
	"slices"
	"strconv"
	"strings"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A seller is a NodePool or node group, a source of a pool's nodes.
type seller struct {
	name           string
	spot, onDemand bool // whether it allows the capacity type
}

// allowed returns the annotations for what a pool buys without Spotter; nil for a pool without
// nodes. The pool buys the capacity types that its sellers allow. If each seller has only one
// capacity type, the Spot share is included: the share that the pool was steered to, otherwise the
// share of its nodes.
func (c *poolSet) allowed(p *pool) map[string]string {
	var spot, onDemand, both bool
	for _, x := range c.sellers(p) {
		spot, onDemand, both = spot || x.spot, onDemand || x.onDemand, both || x.spot && x.onDemand
	}
	share, steered := c.share(p), c.steered(p)
	if steered != nil && len(p.nodes) > 0 {
		share = steered.Steer.Share
		spot, onDemand = spot || share > 0, onDemand || share < 1 || steered.OnDemandFallback
	}
	share = math.Round(1000*share) / 1000
	var types []string
	if onDemand {
		types = append(types, karpv1.CapacityTypeOnDemand)
	}
	if spot {
		types = append(types, karpv1.CapacityTypeSpot)
	}
	if len(types) == 0 {
		return nil
	}
	out := map[string]string{v1alpha1.AnnotationCapacityTypes: strings.Join(types, ",")}
	if spot && onDemand && (steered != nil || !both) && share > 0 && share < 1 {
		out[v1alpha1.AnnotationOwnShare] = strconv.FormatFloat(share, 'g', -1, 64)
	}
	return out
}

// sellers returns the sources of a pool's nodes. If a node has no known NodePool, the capacity
// types of the nodes are assumed to be the allowed ones, and the assumption is recorded.
func (c *poolSet) sellers(p *pool) (out []seller) {
	var guessed []string
	for _, id := range p.nodes {
		n := &c.s.Nodes[id]
		name := groupOf(n)
		i := slices.IndexFunc(out, func(x seller) bool { return x.name == name })
		if i < 0 {
			i, out = len(out), append(out, seller{name: name})
		}
		if x := c.nodePoolOf(n); x != nil {
			out[i].spot, out[i].onDemand = Permits(x, karpv1.CapacityTypeSpot), Permits(x, karpv1.CapacityTypeOnDemand)
			continue
		}
		capacity := c.places[id].capacity
		out[i].spot, out[i].onDemand = out[i].spot || capacity == policy.Spot, out[i].onDemand || capacity != policy.Spot
		if s := capacity.String(); !slices.Contains(guessed, s) {
			guessed = append(guessed, s)
		}
	}
	if len(guessed) > 0 {
		slices.Sort(guessed)
		c.assume("pool %s buys %s by itself, as its nodes are", c.names.pool(p.name), strings.Join(guessed, " and "))
	}
	return out
}

// steered returns the pool of the snapshot if a share was set for it, otherwise nil.
func (c *source) steered(p *pool) *policy.Pool {
	i := slices.IndexFunc(c.s.Pools, func(x policy.Pool) bool { return x.Name == p.name && x.Steer.Set })
	if i < 0 {
		return nil
	}
	return &c.s.Pools[i]
}

// share returns the Spot share of a pool's vCPUs, in [0, 1].
func (c *poolSet) share(p *pool) float64 {
	spot, all := int64(0), int64(0)
	for _, id := range p.nodes {
		at := &c.places[id]
		t, _ := catalog.Lookup(at.provider, at.kind)
		all += t.VCPU
		if at.capacity == policy.Spot {
			spot += t.VCPU
		}
	}
	return float64(spot) / float64(max(all, 1))
}

// nodePoolOf returns the NodePool of n, or nil if it is unknown.
func (c *source) nodePoolOf(n *policy.Node) *karpv1.NodePool {
	name, _ := n.Label(karpv1.NodePoolLabelKey)
	i := slices.IndexFunc(c.o.NodePools, func(p karpv1.NodePool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.o.NodePools[i]
}

// Permits reports whether the requirements of a NodePool allow a capacity type. A NodePool without
// a requirement on the capacity type allows all.
func Permits(p *karpv1.NodePool, capacity string) bool {
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
