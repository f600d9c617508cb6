package workload

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A standing counts the pods of every template that matter for an [Exposure] by the groups in which
// they run. It is updated from snapshot to snapshot, because little changes in between. Its content
// is the same as if it had been rebuilt from the last snapshot.
type standing struct {
	mark                     policy.Mark
	templates, groups, zones int

	// spot and zone are the groups of every node, or None if it is in no such group.
	spot []policy.MarketID
	zone []policy.ZoneID

	pods  []standingPod
	lists scratch.Lists // the pods that count, by node

	// counts[t*groups+g] is the number of pods of template t in group g. fixed[t*zones+z] is the
	// number of those that a volume binds to zone z. bound[t] is the total number.
	counts, fixed, bound []int32
}

// A standingPod is the counted state of a pod; its node is None if the pod does not count.
type standingPod struct {
	node     policy.NodeID
	template policy.TemplateID
	volume   policy.ZoneID
}

// read updates the counts to s.
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

// readNode updates the groups of a node and the counts of its pods.
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

// readPod updates the counts with the current state of a pod.
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

// counts reports whether p is bound and not terminating.
func counts(p *policy.Pod) bool {
	return (p.Phase == policy.PodStarting || p.Phase == policy.PodReady) && p.Node >= 0
}

// count adds a pod to the counts (sign 1), or removes it (sign -1).
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
