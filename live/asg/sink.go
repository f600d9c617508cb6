package asg

import (
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A sinkReport is what the sink is to learn, collected so that nothing is locked
// while it listens.
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

// Notice takes a warning from the provider and returns which other controller drains the node
// because of it. EKS does so for the Spot instances of its managed node groups under a rebalance
// recommendation, so Spotter need not drain them. A node that the provider reclaims is prepared
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
