package asg

import (
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A sinkReport collects the changes to report to the sink, so that no lock is held while the sink
// handles them.
type sinkReport struct {
	machines []backend.Machine
	dropped  []string
	events   []backend.Event
	steers   map[string]policy.SteerState
	wake     string
}

func (t *sinkReport) send(s backend.Sink) {
	for _, m := range t.machines {
		s.SetMachine(Name, m)
	}
	for _, name := range t.dropped {
		s.DropMachine(Name, name)
	}
	for _, pool := range slices.Sorted(maps.Keys(t.steers)) {
		s.SetSteer(pool, t.steers[pool])
	}
	for _, e := range t.events {
		s.Meet(e)
	}
	if t.wake != "" {
		s.Wake(t.wake)
	}
}

// Notice handles a notice from the provider. It returns the other controller that drains the node
// because of it, or ActorNone. EKS drains the Spot instances of its managed node groups after a
// rebalance recommendation, so Spotter need not. A node that the provider reclaims is prepared
// whatever its group.
func (b *Backend) Notice(n backend.Notice) policy.Actor {
	id, ok := instanceID(n.Machine)
	if !ok {
		return policy.ActorNone
	}
	b.groups.mu.Lock()
	defer b.groups.mu.Unlock()
	if n.ReclaimAt != 0 {
		b.instances.reclaims[id] = n.ReclaimAt
		return policy.ActorNone
	}
	for _, g := range b.groups.all {
		if g.has(id) && g.managed.name != "" && b.instances.isSpot(g, id) {
			b.instances.advised[id] = n.At
			return policy.ActorEKS
		}
	}
	return policy.ActorNone
}
