package workload

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A standing counts the pods of every template that count for an [Exposure] by the groups in which
// they run. It is kept from snapshot to snapshot, since little changes in between. For any snapshot
// its content equals that of a standing that is rebuilt.
type standing struct {
	mark                     policy.Mark
	templates, groups, zones int

	// spot and zone are the groups of every node, None where it is in none.
	spot []policy.MarketID
	zone []policy.ZoneID

	pods  []standingPod
	lists scratch.Lists // of those that count, by node

	// counts[t*groups+g] is the number of pods of template t in group g, fixed[t*zones+z] that
	// of those which a volume ties to zone z, and bound[t] that of all.
	counts, fixed, bound []int32
}

// A standingPod is a pod that counts; its node is None of others.
type standingPod struct {
	node     policy.NodeID
	template policy.TemplateID
	volume   policy.ZoneID
}

// read brings the counts to s.
func (x *standing) read(s *policy.Snapshot) {
	groups := len(s.Markets) + len(s.Zones)
	if !s.Follows(x.mark) || x.templates != len(s.Templates) || x.groups != groups || x.zones != len(s.Zones) {
		x.mark, x.templates, x.groups, x.zones = policy.Mark{}, len(s.Templates), groups, len(s.Zones)
		x.spot, x.zone, x.pods = x.spot[:0], x.zone[:0], x.pods[:0]
		x.lists.Clear()
		x.counts, x.fixed, x.bound = scratch.Zeroed(x.counts, x.templates*groups), scratch.Zeroed(x.fixed,
			x.templates*x.zones), scratch.Zeroed(x.bound, x.templates)
	}
	for len(x.spot) < len(s.Nodes) {
		x.spot, x.zone = append(x.spot, policy.None), append(x.zone, policy.None)
	}
	for len(x.pods) < len(s.Pods) {
		x.pods = append(x.pods, standingPod{node: policy.None})
	}
	for c := s.NodesSince(x.mark); c.Next(); {
		id := c.ID
		x.readNode(s, &s.Nodes[id], id)
	}
	for c := s.PodsSince(x.mark); c.Next(); {
		id := c.ID
		x.readPod(&s.Pods[id], id)
	}
	x.mark = s.Mark()
}

// readNode finds the groups of a node, and counts its pods there.
func (x *standing) readNode(s *policy.Snapshot, n *policy.Node, id policy.NodeID) {
	spot, zone := policy.MarketID(policy.None), policy.ZoneID(policy.None)
	switch {
	case !n.Live():
	case n.Market >= 0:
		zone = s.Markets[n.Market].Zone
		if s.Markets[n.Market].Capacity == policy.Spot {
			spot = n.Market
		}
	default:
		zone = zoneNamed(s, n)
	}
	if spot == x.spot[id] && zone == x.zone[id] {
		return
	}
	for p := x.lists.First(int(id)); p >= 0; p = x.lists.Next(p) {
		x.count(&x.pods[p], -1)
	}
	x.spot[id], x.zone[id] = spot, zone
	for p := x.lists.First(int(id)); p >= 0; p = x.lists.Next(p) {
		x.count(&x.pods[p], 1)
	}
}

// readPod counts a pod where it stands.
func (x *standing) readPod(p *policy.Pod, id policy.PodID) {
	now := standingPod{policy.None, p.Template, p.VolumeZone}
	if counts(p) {
		now.node = p.Node
	}
	was := &x.pods[id]
	if *was == now {
		return
	}
	x.count(was, -1)
	*was = now
	x.count(was, 1)
	x.lists.Put(int(id), int(now.node))
}

// counts reports whether p is bound and not leaving.
func counts(p *policy.Pod) bool {
	return (p.Phase == policy.PodStarting || p.Phase == policy.PodReady) && p.Node >= 0
}

// count takes in (1) a pod, or takes it out (-1).
func (x *standing) count(p *standingPod, sign int32) {
	if p.node < 0 {
		return
	}
	x.bound[p.template] += sign
	at := int(p.template) * x.groups
	if market := x.spot[p.node]; market >= 0 {
		x.counts[at+int(market)] += sign
	}
	if zone := x.zone[p.node]; zone >= 0 {
		x.counts[at+x.groups-x.zones+int(zone)] += sign
	}
	if p.volume >= 0 {
		x.fixed[int(p.template)*x.zones+int(p.volume)] += sign
	}
}
