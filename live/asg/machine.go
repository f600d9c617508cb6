package asg

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// tell collects what the sink does not know yet of the groups. first says that
// these were never read before: what is there then is not news.
func (b *Backend) report(nodes map[string]*corev1.Node, first bool) *sinkReport {
	t := &sinkReport{steers: map[string]policy.SteerState{}}
	seen := map[string]bool{}
	for _, g := range b.groups {
		if g.pool == conflicting {
			continue
		}
		for i := range g.instances {
			m := b.machineOf(g, &g.instances[i], nodes[g.instances[i].id])
			seen[m.Name] = true
			old, known := b.reported[m.Name]
			if !known && !first && m.Market != "" {
				t.events = append(t.events, backend.Event{Kind: backend.MetLaunch, Pool: g.pool, Market: m.Market, At: m.Launched})
			}
			if !known || !sameMachine(&old, &m) {
				t.machines = append(t.machines, m)
				b.reported[m.Name] = m
			}
		}
		b.reportRefusals(t, g)
		b.reportSteer(t, g)
	}
	for _, name := range slices.Sorted(maps.Keys(b.reported)) {
		if seen[name] {
			delete(b.absent, name)
			continue
		}
		b.absent[name]++
		if b.reported[name].Phase == policy.NodeDeleting || b.absent[name] >= absentMax {
			t.dropped = append(t.dropped, name)
			delete(b.reported, name)
			delete(b.absent, name)
			delete(b.advised, name)
			delete(b.reclaims, name)
			delete(b.endings, name)
		}
	}
	b.forgetNotices()
	return t
}

// noticeFor is how long a warning is kept of an instance that no group has.
const noticeFor = 15 * time.Minute

// forgetNotices drops warnings of instances that are in none of the groups.
func (b *Backend) forgetNotices() {
	for _, warned := range []map[string]policy.Time{b.reclaims, b.advised} {
		maps.DeleteFunc(warned, func(id string, at policy.Time) bool {
			_, ours := b.reported[id]
			return !ours && b.now().Sub(at) > noticeFor
		})
	}
}

// machineOf returns an instance as the sink gets it.
func (b *Backend) machineOf(g *group, i *instance, node *corev1.Node) backend.Machine {
	m := backend.Machine{
		Name: i.id, Pool: g.pool, ProviderID: providerID(i.zone, i.id), Phase: policy.NodeLaunching,
		Token: g.tokenOf(i.id), AtGroupMin: g.desired <= g.min, Labels: g.labels, Taints: g.taints,
	}
	how, known := b.bought[i.id]
	if known {
		m.Launched = how.at
	} else if old, ok := b.reported[i.id]; ok {
		m.Launched = old.Launched
	} else {
		m.Launched = b.now()
	}
	if known || !g.mixes() {
		m.Market = marketName(b.cfg.Region, i.zone, i.kind, capacityOf(known && how.spot || !known && g.onDemandPercent == 0))
	}
	if m.Token == "" {
		m.Token = b.reported[i.id].Token // its launch has been struck out since
	}
	if node != nil {
		m.Node, m.Phase = node.Name, policy.NodeRegistered
		if tainted(node, TaintToBeDeleted) {
			m.ActedBy = policy.ActorClusterAutoscaler
		}
	}
	if i.ending() {
		m.Phase = policy.NodeDeleting
	}
	if b.drainsItself(g, i.id) {
		m.ActedBy = policy.ActorEKS
	}
	return m
}

// sameMachine reports whether nothing has changed that was reported to the sink.
func sameMachine(a, b *backend.Machine) bool {
	return a.Pool == b.Pool && a.Market == b.Market && a.Node == b.Node && a.Phase == b.Phase && a.Token == b.Token &&
		a.Launched == b.Launched && a.ActedBy == b.ActedBy && a.AtGroupMin == b.AtGroupMin && a.ProviderID == b.ProviderID &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// reportRefusals reports the refused launches of g, once for a spell in each market,
// and asks for a step.
func (b *Backend) reportRefusals(t *sinkReport, g *group) {
	for _, a := range slices.Backward(g.activities) {
		if !a.refused || a.start < b.started {
			continue
		}
		for _, m := range b.marketsOf(g, a.zone) {
			if last, ok := b.refusals[m]; ok && a.start.Sub(last) < b.cfg.RefusalSpell {
				continue
			}
			b.refusals[m] = a.start
			t.events = append(t.events, backend.Event{Kind: backend.MetRefusal, Pool: g.pool, Market: m, At: a.start})
			t.wake = "refused"
		}
	}
}

// marketsOf returns the markets of g that a refused launch in zone speaks of: a
// group with several types has asked for all of them, on spot and on demand as it
// buys. Groups that mix the two do not say which was refused, so spot is taken.
func (b *Backend) marketsOf(g *group, zone string) []string {
	zones := g.zones
	if slices.Contains(zones, zone) {
		zones = []string{zone}
	}
	var all []string
	for _, z := range zones {
		for _, kind := range g.types {
			all = append(all, marketName(b.cfg.Region, z, kind, capacityOf(g.onDemandPercent < 100)))
		}
	}
	return all
}

func (b *Backend) reportSteer(t *sinkReport, g *group) {
	if s, ok := decodeSteer(g.tags[TagSteer]); ok && s.since >= t.steers[g.pool].Since {
		t.steers[g.pool] = policy.SteerState{Set: true, Share: s.share, Since: s.since}
	}
}

// Notice takes a warning from the provider and returns who else drains the node
// because of it. EKS does so for the spot instances of its managed node groups
// under a rebalance recommendation, and none of ours is then needed. A node that
// the provider takes is prepared whatever its group is like.
func (b *Backend) Notice(n backend.Notice) policy.Actor {
	id, ok := instanceID(n.Machine)
	if !ok {
		return policy.ActorNone
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.ReclaimAt != 0 {
		b.reclaims[id] = n.ReclaimAt
		return policy.ActorNone
	}
	for _, g := range b.groups {
		if g.has(id) && g.nodegroup != "" && b.isSpot(g, id) {
			b.advised[id] = n.At
			return policy.ActorEKS
		}
	}
	return policy.ActorNone
}

// drainsItself reports whether EKS is replacing an instance by itself.
func (b *Backend) drainsItself(g *group, id string) bool {
	_, advised := b.advised[id]
	return advised && g.nodegroup != ""
}

// isSpot reports whether an instance of g was bought as spot.
func (b *Backend) isSpot(g *group, id string) bool {
	if how, ok := b.bought[id]; ok {
		return how.spot
	}
	return g.onDemandPercent == 0
}
