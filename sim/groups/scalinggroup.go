package groups

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/machines"
)

// labelZone is the label of a node's zone.
const labelZone = "topology.kubernetes.io/zone"

// scalingGroups are the Auto Scaling groups of the pools that the Cluster Autoscaler serves.
type scalingGroups struct {
	*Autoscaler

	// ordered is the capacity type that a launch of the policy requires, or nil outside such a
	// launch.
	ordered *policy.CapacityType

	all     []scalingGroup // their number is bounded by the scenario
	classes [][]class      // by pool; empty if another provisioner serves it
	of      [][]int32      // by pool and market, the index of the group, or -1; nil if the pool has no groups
}

// A scalingGroup is an Auto Scaling group: instances of one size and capacity type. The group
// itself chooses among its types and zones.
type scalingGroup struct {
	pool    policy.PoolID
	spot    bool
	markets []policy.MarketID

	// own is the description of a described group, or nil for a group of a pair. A described group
	// may contain both capacity types; spot has no meaning for it.
	own *scenarios.ScalingGroup

	// least and most are the bounds of desired. If most is 0 in a group of a pair, only the limits
	// of the pool bound it.
	least, most int

	// template is the offer that represents a new node to the Cluster Autoscaler.
	template placement.Offer

	// desired is the desired number of instances, live the current number.
	desired, live int

	// failedAt is when a launch that is still wanted was first refused, or 0. fillAt is when the
	// group tries again, or 0.
	failedAt, fillAt policy.Time

	growthBackoff
}

// A growthBackoff prevents the growth of a group until backedOff. brokenAt is the time of the last
// failure, or 0, and wait the length of the back-off.
type growthBackoff struct {
	backedOff, brokenAt policy.Time
	wait                time.Duration
}

// missing returns the number of instances that must still be launched.
func (g *scalingGroup) missing() int { return max(0, g.desired-g.live) }

// backOff prevents the Cluster Autoscaler from growing g for a while.
func (g *growthBackoff) backOff(now policy.Time) {
	switch {
	case g.brokenAt == 0 || now.Sub(g.brokenAt) > backoffReset:
		g.wait = firstBackoff
	case g.backedOff <= now:
		g.wait = min(2*g.wait, longestBackoff)
	}
	g.brokenAt, g.backedOff = now, now.Add(g.wait)
}

// recover forgets the failures of g once it has all desired instances and its back-off is over.
func (g *scalingGroup) recover(now policy.Time) {
	if g.missing() == 0 && g.backedOff <= now {
		g.brokenAt = 0
	}
}

// init creates the groups of the pools that the Cluster Autoscaler serves.
func (sg *scalingGroups) init() {
	serves := func(p policy.Pool) bool { return p.Provisioner == policy.ProvisionerClusterAutoscaler }
	if !slices.ContainsFunc(sg.Scenario.Pools, serves) {
		return
	}
	n := len(sg.Scenario.Pools)
	sg.classes, sg.of, sg.scaleDown.soft = make([][]class, n), make([][]int32, n), make([][]policy.Taint, n)
	for i := range sg.Scenario.Pools {
		if p := &sg.Scenario.Pools[i]; serves(*p) {
			sg.scaleDown.soft[i] = append(slices.Clone(p.Taints), policy.Taint{
				Key: "DeletionCandidateOfClusterAutoscaler", Effect: policy.PreferNoSchedule, Owner: policy.ActorClusterAutoscaler})
			sg.split(p)
		}
	}
	for i := range sg.all {
		g := &sg.all[i]
		g.least, g.most, g.desired = sg.Scenario.Groups.Min, sg.Scenario.Groups.Max, sg.Scenario.Groups.Min
		if g.own != nil {
			g.least, g.most, g.desired = g.own.Min, g.own.Max, g.own.Desired
		}
		if g.desired > 0 {
			sg.planFill(int32(i), sg.Clock.Now)
		}
	}
}

// A groupSize contains the properties that all nodes of a class share. The Cluster Autoscaler
// assumes that all instances of a group have equal size, and users who mix types respect this. If
// pods are bound to zones, each zone has its own groups.
type groupSize struct {
	vcpu, memory, gpu int64
	gpuResource, arch string
	zone              policy.ZoneID
}

func (s groupSize) compare(x groupSize) int {
	return cmp.Or(cmp.Compare(s.vcpu, x.vcpu), cmp.Compare(s.memory, x.memory), cmp.Compare(s.gpu, x.gpu),
		strings.Compare(s.gpuResource, x.gpuResource), strings.Compare(s.arch, x.arch), cmp.Compare(s.zone, x.zone))
}

// split creates the classes of pool p, the smallest first. A described pool becomes one group.
func (sg *scalingGroups) split(p *policy.Pool) {
	if own := sg.Prepared.Group(p.ID); own != nil {
		sg.keepWhole(p, own)
		return
	}
	zonal := sg.zoneBound()
	sizeOf := func(m policy.MarketID) groupSize {
		t := &sg.Scenario.Types[sg.Scenario.Markets[m].Type]
		s := groupSize{t.VCPU, t.Capacity.Memory, t.Capacity.GPU, t.GPUResource, t.Arch, policy.None}
		if zonal {
			s.zone = sg.Scenario.Markets[m].Zone
		}
		return s
	}
	var sizes []groupSize
	for _, m := range p.Markets {
		sizes = append(sizes, sizeOf(m))
	}
	slices.SortFunc(sizes, groupSize.compare)
	sizes = slices.Compact(sizes)
	of := slices.Repeat([]int32{-1}, len(sg.Scenario.Markets))
	sg.classes[p.ID] = slices.Repeat([]class{{[2]int32{-1, -1}}}, len(sizes))
	for _, m := range p.Markets {
		k, _ := slices.BinarySearchFunc(sizes, sizeOf(m), groupSize.compare)
		twin, spot := onDemandTwin, sg.Scenario.Markets[m].Capacity == policy.Spot
		if spot {
			twin = spotTwin
		}
		at := &sg.classes[p.ID][k].twin[twin]
		if *at < 0 {
			*at = int32(len(sg.all))
			sg.all = append(sg.all, scalingGroup{pool: p.ID, spot: spot})
		}
		of[m] = *at
		sg.all[*at].markets = append(sg.all[*at].markets, m)
	}
	for i := range sg.all {
		if g := &sg.all[i]; g.pool == p.ID {
			g.template = sg.templateOf(g)
		}
	}
	sg.of[p.ID] = of
}

// templateOf returns the offer that represents new nodes of g: the one with the least allocatable
// resources. Users list its type first for this reason.
func (sg *scalingGroups) templateOf(g *scalingGroup) placement.Offer {
	var offers []placement.Offer
	for _, o := range sg.Prepared.Offers[g.pool] {
		if slices.Contains(g.markets, o.Market) {
			offers = append(offers, o)
		}
	}
	return slices.MinFunc(offers, func(a, b placement.Offer) int {
		return cmp.Or(cmp.Compare(a.Allocatable.Memory, b.Allocatable.Memory),
			cmp.Compare(a.Allocatable.CPU, b.Allocatable.CPU),
			cmp.Compare(a.Allocatable.Pods, b.Allocatable.Pods), cmp.Compare(a.Market, b.Market))
	})
}

// zoneBound reports whether pods of the scenario must run in certain zones, or relative to pods in
// other zones. One cannot choose the zone in which a group that spans zones launches, so the AWS
// documentation recommends one group per zone in this case.
func (sg *scalingGroups) zoneBound() bool {
	return slices.ContainsFunc(sg.Scenario.Templates, func(t policy.Template) bool {
		byZone := func(e policy.PodTerm) bool { return e.TopologyKey == labelZone && e.Weight == 0 }
		return slices.ContainsFunc(t.Volumes, func(v policy.Volume) bool { return v.Zonal }) ||
			slices.ContainsFunc(t.Spread, func(s policy.Spread) bool { return s.TopologyKey == labelZone && !s.Soft }) ||
			slices.ContainsFunc(t.PodAffinity, byZone) || slices.ContainsFunc(t.PodAntiAffinity, byZone) ||
			slices.ContainsFunc(t.NodeSelector, func(l policy.Label) bool { return l.Key == labelZone }) ||
			slices.ContainsFunc(t.Affinity, func(e policy.NodeTerm) bool {
				return slices.ContainsFunc(e.Labels, func(q policy.Requirement) bool { return q.Key == labelZone })
			})
	})
}

// groupOf returns the group of node id, or nil if it has none.
func (sg *scalingGroups) groupOf(id policy.NodeID) *scalingGroup {
	if g := sg.index(id); g >= 0 {
		return &sg.all[g]
	}
	return nil
}

// serves reports whether the nodes of pool are instances of groups.
func (sg *scalingGroups) serves(pool policy.PoolID) bool { return sg.of != nil && sg.of[pool] != nil }

func (sg *scalingGroups) index(id policy.NodeID) int32 {
	if n := &sg.Nodes.All[id]; sg.serves(n.Pool) {
		return sg.of[n.Pool][n.Market]
	}
	return -1
}

// join counts a new instance. One that the group did not request, such as an initial node, raises
// its desired size.
func (sg *scalingGroups) join(id policy.NodeID) {
	if g := sg.groupOf(id); g != nil {
		g.live++
		sg.setDesired(g, max(g.desired, g.live))
		sg.Nodes.All[id].AtGroupMin = sg.atMin(g)
	}
}

// atMin reports whether g is at its minimum size.
func (sg *scalingGroups) atMin(g *scalingGroup) bool { return g.desired <= g.least }

// maySpare reports whether g may lose one more instance, given the instances that are already being
// drained.
func (sg *scalingGroups) maySpare(g *scalingGroup) bool { return g.desired-sg.leaving(g) > g.least }

// leaving returns the number of instances of g that are being drained without replacement.
func (sg *scalingGroups) leaving(g *scalingGroup) (n int) {
	for _, i := range sg.Drains.Active {
		if d := &sg.Drains.All[i]; !d.Forced && d.Actor != policy.ActorNTH && sg.groupOf(d.Node) == g {
			n++
		}
	}
	return n
}

// mayGain reports whether g may become larger.
func (sg *scalingGroups) mayGain(g *scalingGroup) bool {
	return g.most == 0 && g.own == nil || g.desired < g.most
}

// setDesired sets the desired size of g, and updates AtGroupMin of its nodes.
func (sg *scalingGroups) setDesired(g *scalingGroup, desired int) {
	before := sg.atMin(g)
	g.desired = desired
	if g.least == 0 || sg.atMin(g) == before {
		return
	}
	for i := range sg.Nodes.All {
		if id := policy.NodeID(i); sg.Nodes.All[i].Phase != policy.NodeGone && sg.groupOf(id) == g {
			sg.Nodes.SetAtGroupMin(id, !before)
		}
	}
}

// leave records that an instance is gone. The group launches a replacement unless its desired size
// was reduced.
func (sg *scalingGroups) leave(id policy.NodeID) {
	i := sg.index(id)
	if i < 0 {
		return
	}
	g := &sg.all[i]
	g.live--
	if g.missing() > 0 {
		sg.planFill(i, sg.Clock.Now.Add(groupHealth))
	}
}

// release reduces the desired size of the group of node id, like
// TerminateInstanceInAutoScalingGroup with ShouldDecrementDesiredCapacity. A group at its minimum
// size keeps its desired size and replaces the instance, as it does for an instance that has
// reached its maximum age.
func (sg *scalingGroups) release(id policy.NodeID) {
	if g := sg.groupOf(id); g != nil && !sg.atMin(g) && sg.Nodes.All[id].ActedBy != policy.ActorNTH {
		sg.setDesired(g, g.desired-1)
	}
}

func (sg *scalingGroups) planFill(i int32, t policy.Time) {
	if g := &sg.all[i]; g.fillAt == 0 || t < g.fillAt {
		g.fillAt = t
		sg.Clock.Add(t, engine.GroupFills, i, 0, 0)
	}
}

// fill launches the missing instances of group i while the provider has capacity.
func (sg *scalingGroups) fill(i int32) {
	g := &sg.all[i]
	if g.fillAt != sg.Clock.Now {
		return // replaced by an earlier attempt
	}
	g.fillAt = 0
	for g.missing() > 0 {
		if _, ok := sg.launchIn(i, ""); !ok {
			sg.shortOf(i)
			return
		}
	}
	sg.Want()
}

// grow increases the desired size of group i by one, and launches the instance if the provider has
// capacity. It returns false if the instance was not launched.
func (sg *scalingGroups) grow(i int32) (policy.NodeID, bool) {
	g := &sg.all[i]
	sg.setDesired(g, g.desired+1)
	if g.failedAt != 0 {
		return policy.None, false // the group is already waiting for capacity
	}
	n, ok := sg.launchIn(i, "")
	if !ok {
		sg.shortOf(i)
	}
	return n, ok
}

// launchIn launches one instance of group i. It tries the zones in ascending order of the group's
// instances, and uses the provider's allocation strategy in each. It returns false if no zone has
// capacity.
func (sg *scalingGroups) launchIn(i int32, token string) (policy.NodeID, bool) {
	g := &sg.all[i]
	open := sg.openIn(g)
	if len(open) == 0 {
		return policy.None, false
	}
	bid := sg.Pools.StandingBid(g.pool, open)
	zones := sg.zonesOf(i)
	for _, kind := range sg.kindsOf(i) {
		for _, z := range zones {
			inZone := slices.DeleteFunc(slices.Clone(open), func(m policy.MarketID) bool {
				return sg.Scenario.Markets[m].Zone != z || g.own != nil && sg.Scenario.Markets[m].Capacity != kind
			})
			if m, slot, ok := sg.allocate(g, inZone, bid); ok {
				g.failedAt = 0
				return sg.Launches.Launch(machines.Order{Pool: g.pool, Market: m, Slot: slot}, token, bid), true
			}
		}
	}
	return policy.None, false
}

// openIn returns the markets in which g may launch: the steer allows them, and they are within the
// pool's limits and maximum price.
func (sg *scalingGroups) openIn(g *scalingGroup) []policy.MarketID {
	x, pool := &sg.Pools.State[g.pool], &sg.Pools.All[g.pool]
	var open []policy.MarketID
	for _, m := range g.markets {
		if x.Allowed != nil && !x.Allowed[m] || !sg.Pools.Affords(g.pool, m) {
			continue
		}
		if machines.Allowed(pool.Limits, pool.Used, sg.Scenario.Types[sg.Scenario.Markets[m].Type].Capacity) {
			open = append(open, m)
		}
	}
	return open
}

// mayGrow reports whether the Cluster Autoscaler may grow g.
func (sg *scalingGroups) mayGrow(g *scalingGroup) bool {
	return g.backedOff <= sg.Clock.Now && sg.mayGain(g) && len(sg.openIn(g)) > 0
}

// zonesOf returns the zones of group i in ascending order of its instances.
func (sg *scalingGroups) zonesOf(i int32) []policy.ZoneID {
	var zones []policy.ZoneID
	for _, m := range sg.all[i].markets {
		if z := sg.Scenario.Markets[m].Zone; !slices.Contains(zones, z) {
			zones = append(zones, z)
		}
	}
	if len(zones) == 1 {
		return zones
	}
	count := make([]int, len(sg.Scenario.Zones))
	for k := range sg.Nodes.All {
		if id := policy.NodeID(k); sg.Runs(policy.NodeID(k)) && sg.index(id) == i {
			count[sg.Scenario.Markets[sg.Nodes.All[k].Market].Zone]++
		}
	}
	slices.SortFunc(zones, func(a, b policy.ZoneID) int {
		return cmp.Or(cmp.Compare(count[a], count[b]),
			cmp.Compare(a, b))
	})
	return zones
}

// shortOf records that group i could not launch an instance. The group tries again later.
func (sg *scalingGroups) shortOf(i int32) {
	g := &sg.all[i]
	if g.failedAt == 0 {
		g.failedAt = sg.Clock.Now
		sg.refuse(g)
	}
	sg.planFill(i, sg.Clock.Now.Add(groupRetry))
	sg.loop.scanBy(sg.Clock.Now)
}

// refuse records that no market of g had capacity.
func (sg *scalingGroups) refuse(g *scalingGroup) {
	for _, m := range g.markets {
		if sg.Pools.Affords(g.pool, m) {
			sg.Market.RefuseGroup(m)
		}
	}
	sg.Pools.Refused(g.pool)
	sg.Serving.RefusedMarkets(g.pool, g.markets)
}

// launch carries out a launch of the policy in a pool of groups: it grows the group of the first
// market that can launch an instance. The group, and not the policy, chooses among its types and
// zones. If the launch fails, the desired size is reset and the group of the next market is tried.
func (sg *scalingGroups) launch(pool policy.PoolID, markets []policy.MarketID, token string) error {
	kind := sg.Scenario.Markets[markets[0]].Capacity
	sg.ordered = &kind
	defer func() { sg.ordered = nil }()
	var tried []int32
	for _, m := range markets {
		i := sg.of[pool][m]
		if slices.Contains(tried, i) {
			continue
		}
		tried = append(tried, i)
		g := &sg.all[i]
		if g.failedAt != 0 || !sg.mayGain(g) {
			continue
		}
		sg.setDesired(g, g.desired+1)
		if _, ok := sg.launchIn(i, token); ok {
			return nil
		}
		sg.setDesired(g, g.desired-1)
		sg.refuse(g)
	}
	return driver.ErrNoCapacity
}
