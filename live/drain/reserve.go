package drain

import (
	"context"
	"fmt"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// counts contains the node counts of each pool in the last snapshot.
type counts struct {
	at    policy.Time
	pools map[string]*poolCount
}

// A poolCount contains the number of initialized nodes of a pool, and the names of those that are
// disrupted by any controller.
type poolCount struct {
	nodes int
	down  map[string]bool
}

// count counts the nodes of all pools, once for each snapshot.
func (t *drainTable) count(s *policy.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pools.pools != nil && t.pools.at == s.Now {
		return
	}
	t.pools = counts{at: s.Now, pools: map[string]*poolCount{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == policy.None || n.Phase == policy.NodeGone || n.Phase < policy.NodeInitialized {
			continue
		}
		c := t.pools.pools[s.Pools[n.Pool].Name]
		if c == nil {
			c = &poolCount{down: map[string]bool{}}
			t.pools.pools[s.Pools[n.Pool].Name] = c
		}
		c.nodes++
		if n.NotReady || n.Phase > policy.NodeInitialized ||
			n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorPerson {
			c.down[n.Name] = true
		}
	}
}

// reserve returns a [backend.Held] if the current disruption budget of the pool does not allow
// another node to be drained. Otherwise the drain counts against the budget until it has ended. Of
// two drains that call reserve at the same time, the second is refused if the budget allows only
// one.
func (t *drainTable) reserve(ctx context.Context, d *drain) error {
	if t.cfg.Authority == nil || d.reserved || d.urgent() {
		return nil
	}
	spec, err := t.cfg.Authority.Spec(ctx, d.Pool)
	if err != nil || spec == nil {
		return err // judge has found that the pool no longer exists
	}
	now := policy.TimeOf(t.cfg.Clock.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.pools.pools[d.Pool]
	if !t.listed || c == nil {
		return fmt.Errorf("the nodes of pool %s have not been counted yet", d.Pool)
	}
	down := len(c.down)
	if c.down[d.node] {
		down--
	}
	for name, x := range t.drains {
		if x != d && x.Pool == d.Pool && (x.reserved || x.order.reclaimAt != 0) && !c.down[name] {
			down++
		}
	}
	for _, b := range spec.Pool().Budgets {
		if !kube.InForce(&b, now) {
			continue
		}
		if allowed := int(b.Nodes.Of(int32(c.nodes))); down >= allowed {
			return backend.Hold("DisruptionBudget",
				"the budget of pool %s allows %d of %d nodes to be disrupted, and %d already are", d.Pool, allowed, c.nodes, down)
		}
	}
	d.reserved = true
	return nil
}
