package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/place"
)

// labelZone is the label of a node's zone.
const labelZone = "topology.kubernetes.io/zone"

// A scalingGroup is an Auto Scaling group: instances of one size and capacity type,
// which the group chooses among its types and zones by itself.
type scalingGroup struct {
	pool    policy.PoolID
	spot    bool
	markets []policy.MarketID

	// template is what the Cluster Autoscaler takes a new node for.
	template place.Offer

	// desired is how many instances the group is to hold, live how many it has.
	desired, live int

	// failedAt is when a launch was refused that is still wanted, 0 for never;
	// fillAt when the group tries again.
	failedAt, fillAt policy.Time

	// The group is not grown until backedOff, after a failure at brokenAt that
	// cost it wait.
	backedOff, brokenAt policy.Time
	wait                time.Duration
}

// missing returns how many instances are still to be launched.
func (g *scalingGroup) missing() int { return max(0, g.desired-g.live) }

// backOff keeps the Cluster Autoscaler from growing g for a while.
func (g *scalingGroup) backOff(a *Autoscaler, now policy.Time) {
	switch {
	case g.brokenAt == 0 || now.Sub(g.brokenAt) > a.BackoffReset:
		g.wait = a.BackoffMin
	case g.backedOff <= now:
		g.wait = min(2*g.wait, a.BackoffMax)
	}
	g.brokenAt, g.backedOff = now, now.Add(g.wait)
}

// recover forgets the failures of g once it holds what it is to hold: its nodes
// join again.
func (g *scalingGroup) recover(now policy.Time) {
	if g.missing() == 0 && g.backedOff <= now {
		g.brokenAt = 0
	}
}

// newGroups makes the groups of the pools that the Cluster Autoscaler serves.
func (r *run) newGroups() {
	serves := func(p policy.Pool) bool { return p.Provisioner == policy.ProvisionerClusterAutoscaler }
	if !slices.ContainsFunc(r.world.Pools, serves) {
		return
	}
	a := &autoscaler{Autoscaler: DefaultAutoscaler()}
	if r.cfg.Autoscaler != nil {
		a.Autoscaler = *r.cfg.Autoscaler
	}
	n := len(r.world.Pools)
	a.classes, a.of, a.soft = make([][]class, n), make([][]int32, n), make([][]policy.Taint, n)
	for i := range r.world.Pools {
		if p := &r.world.Pools[i]; serves(*p) {
			a.soft[i] = append(slices.Clone(p.Taints), policy.Taint{
				Key: "DeletionCandidateOfClusterAutoscaler", Effect: policy.PreferNoSchedule, Owner: policy.ActorClusterAutoscaler})
			r.splitPool(a, p)
		}
	}
	r.auto = a
	r.onlyGroups = !slices.ContainsFunc(r.world.Pools, func(p policy.Pool) bool { return !serves(p) })
	for i := range a.groups {
		a.groups[i].desired = r.world.Groups.Min
		if r.world.Groups.Min > 0 {
			r.planFill(int32(i), r.q.now)
		}
	}
}

// A groupSize is what nodes of one class have in common: the Cluster Autoscaler
// takes all instances of a group to be of equal size, and users who mix types
// keep to that. Where pods are bound to zones each zone has groups of its own.
type groupSize struct {
	vcpu, memory, gpu int64
	gpuResource, arch string
	zone              policy.ZoneID
}

func (s groupSize) compare(x groupSize) int {
	return cmp.Or(cmp.Compare(s.vcpu, x.vcpu), cmp.Compare(s.memory, x.memory), cmp.Compare(s.gpu, x.gpu),
		strings.Compare(s.gpuResource, x.gpuResource), strings.Compare(s.arch, x.arch), cmp.Compare(s.zone, x.zone))
}

// splitPool makes the classes of pool p, the smallest first.
func (r *run) splitPool(a *autoscaler, p *policy.Pool) {
	zonal := r.zoneBound()
	sizeOf := func(m policy.MarketID) groupSize {
		t := &r.world.Types[r.world.Markets[m].Type]
		s := groupSize{t.VCPU, t.Capacity.Memory, t.Capacity.GPU, t.GPUResource, t.Arch, policy.None}
		if zonal {
			s.zone = r.world.Markets[m].Zone
		}
		return s
	}
	var sizes []groupSize
	for _, m := range p.Markets {
		sizes = append(sizes, sizeOf(m))
	}
	slices.SortFunc(sizes, groupSize.compare)
	sizes = slices.Compact(sizes)
	of := slices.Repeat([]int32{-1}, len(r.world.Markets))
	a.classes[p.ID] = slices.Repeat([]class{{[2]int32{-1, -1}}}, len(sizes))
	for _, m := range p.Markets {
		k, _ := slices.BinarySearchFunc(sizes, sizeOf(m), groupSize.compare)
		twin, spot := onDemandTwin, r.world.Markets[m].Capacity == policy.Spot
		if spot {
			twin = spotTwin
		}
		at := &a.classes[p.ID][k].twin[twin]
		if *at < 0 {
			*at = int32(len(a.groups))
			a.groups = append(a.groups, scalingGroup{pool: p.ID, spot: spot})
		}
		of[m] = *at
		a.groups[*at].markets = append(a.groups[*at].markets, m)
	}
	for i := range a.groups {
		if g := &a.groups[i]; g.pool == p.ID {
			g.template = r.templateOf(g)
		}
	}
	a.of[p.ID] = of
}

// templateOf returns the offer by which new nodes of g are judged: that of the
// type that gives pods the least, which users put first for that reason.
func (r *run) templateOf(g *scalingGroup) place.Offer {
	var offers []place.Offer
	for _, o := range r.stage.offers[g.pool] {
		if slices.Contains(g.markets, o.Market) {
			offers = append(offers, o)
		}
	}
	return slices.MinFunc(offers, func(a, b place.Offer) int {
		return cmp.Or(cmp.Compare(a.Allocatable.Memory, b.Allocatable.Memory), cmp.Compare(a.Allocatable.CPU, b.Allocatable.CPU),
			cmp.Compare(a.Allocatable.Pods, b.Allocatable.Pods), cmp.Compare(a.Market, b.Market))
	})
}

// zoneBound reports whether pods of the world must run in certain zones, or
// relative to pods in other zones. A group that spans zones cannot be told where
// to launch, so AWS documentation then asks for one in each zone.
func (r *run) zoneBound() bool {
	return slices.ContainsFunc(r.world.Templates, func(t policy.Template) bool {
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

// groupOf returns the group that node id belongs to; nil without one.
func (r *run) groupOf(id policy.NodeID) *scalingGroup {
	if g := r.groupIndex(id); g >= 0 {
		return &r.auto.groups[g]
	}
	return nil
}

// grouped reports whether the nodes of pool are instances of groups.
func (r *run) grouped(pool policy.PoolID) bool { return r.auto != nil && r.auto.of[pool] != nil }

func (r *run) groupIndex(id policy.NodeID) int32 {
	if n := &r.nodes[id]; r.grouped(n.Pool) {
		return r.auto.of[n.Pool][n.Market]
	}
	return -1
}

// joinGroup counts a new instance. One that the group did not ask for, such as
// those that are there from the start, raises what it is to hold.
func (r *run) joinGroup(id policy.NodeID) {
	if g := r.groupOf(id); g != nil {
		g.live++
		r.setDesired(g, max(g.desired, g.live))
		r.nodes[id].AtGroupMin = r.atGroupMin(g)
	}
}

// atGroupMin reports whether g may not become smaller.
func (r *run) atGroupMin(g *scalingGroup) bool { return g.desired <= r.world.Groups.Min }

// maySpare reports whether g may give up one more instance than those that are
// being drained for that already.
func (r *run) maySpare(g *scalingGroup) bool {
	leaving := 0
	for _, i := range r.active {
		if d := &r.drains[i]; !d.forced && d.actor != policy.ActorNTH && r.groupOf(d.node) == g {
			leaving++
		}
	}
	return g.desired-leaving > r.world.Groups.Min
}

// mayGain reports whether g may become larger.
func (r *run) mayGain(g *scalingGroup) bool {
	return r.world.Groups.Max == 0 || g.desired < r.world.Groups.Max
}

// setDesired sets how many instances g is to hold. Its nodes show whether that is
// the least.
func (r *run) setDesired(g *scalingGroup, desired int) {
	before := r.atGroupMin(g)
	g.desired = desired
	if r.world.Groups.Min == 0 || r.atGroupMin(g) == before {
		return
	}
	for i := range r.nodes {
		if id := policy.NodeID(i); r.nodes[i].Phase != policy.NodeGone && r.groupOf(id) == g {
			r.nodes[i].AtGroupMin = !before
			r.touchNode(id)
		}
	}
}

// leaveGroup counts an instance that is gone. The group launches another in its
// place unless what it is to hold was lowered.
func (r *run) leaveGroup(id policy.NodeID) {
	i := r.groupIndex(id)
	if i < 0 {
		return
	}
	g := &r.auto.groups[i]
	g.live--
	if g.missing() > 0 {
		r.planFill(i, r.q.now.Add(r.auto.GroupHealth))
	}
}

// release lowers what the group of node id is to hold, as terminating an
// instance with decrement does. At its least size the group refuses that and
// replaces the instance, as it does when the instance has reached its age.
func (r *run) release(id policy.NodeID) {
	if g := r.groupOf(id); g != nil && !r.atGroupMin(g) && r.nodes[id].ActedBy != policy.ActorNTH {
		r.setDesired(g, g.desired-1)
	}
}

func (r *run) planFill(i int32, t policy.Time) {
	if g := &r.auto.groups[i]; g.fillAt == 0 || t < g.fillAt {
		g.fillAt = t
		r.q.add(t, evFill, i, 0, 0)
	}
}

// fill launches what group i is missing, as far as the provider has it.
func (r *run) fill(i int32) {
	g := &r.auto.groups[i]
	if g.fillAt != r.q.now {
		return // overtaken by an earlier attempt
	}
	g.fillAt = 0
	for g.missing() > 0 {
		if _, ok := r.launchIn(i, ""); !ok {
			r.shortOf(i)
			return
		}
	}
	r.wantScan()
}

// grow makes group i one instance larger, and launches it if the provider has
// one.
func (r *run) grow(i int32) (policy.NodeID, bool) {
	g := &r.auto.groups[i]
	r.setDesired(g, g.desired+1)
	if g.failedAt != 0 {
		return policy.None, false // the group is waiting already
	}
	n, ok := r.launchIn(i, "")
	if !ok {
		r.shortOf(i)
	}
	return n, ok
}

// launchIn launches one instance of group i: in the zone where it has the fewest
// among those that have one to give, and there as the provider allocates.
func (r *run) launchIn(i int32, token string) (policy.NodeID, bool) {
	g := &r.auto.groups[i]
	open := r.openIn(g)
	if len(open) == 0 {
		return policy.None, false
	}
	bid := r.standingBid(g.pool, open)
	for _, z := range r.zonesOf(i) {
		inZone := slices.DeleteFunc(slices.Clone(open), func(m policy.MarketID) bool { return r.world.Markets[m].Zone != z })
		if m, slot, ok := r.allocate(inZone, bid); ok {
			g.failedAt = 0
			return r.launch(g.pool, m, slot, token, bid), true
		}
	}
	return policy.None, false
}

// openIn returns the markets that g may launch in: those that the pool was told
// to use, has room for and affords.
func (r *run) openIn(g *scalingGroup) []policy.MarketID {
	x, pool := &r.poolX[g.pool], &r.pools[g.pool]
	var open []policy.MarketID
	for _, m := range g.markets {
		if x.allowed != nil && !x.allowed[m] || !r.affords(g.pool, m) {
			continue
		}
		if allowed(pool.Limits, pool.Used, r.world.Types[r.world.Markets[m].Type].Capacity) {
			open = append(open, m)
		}
	}
	return open
}

// mayGrow reports whether the Cluster Autoscaler may make g larger.
func (r *run) mayGrow(g *scalingGroup) bool {
	return g.backedOff <= r.q.now && r.mayGain(g) && len(r.openIn(g)) > 0
}

// zonesOf returns the zones of group i, those with the fewest instances first.
func (r *run) zonesOf(i int32) []policy.ZoneID {
	var zones []policy.ZoneID
	for _, m := range r.auto.groups[i].markets {
		if z := r.world.Markets[m].Zone; !slices.Contains(zones, z) {
			zones = append(zones, z)
		}
	}
	if len(zones) == 1 {
		return zones
	}
	count := make([]int, len(r.world.Zones))
	for k := range r.nodes {
		if id := policy.NodeID(k); r.nodes[k].Phase != policy.NodeGone && !r.nodeX[k].billed && r.groupIndex(id) == i {
			count[r.world.Markets[r.nodes[k].Market].Zone]++
		}
	}
	slices.SortFunc(zones, func(a, b policy.ZoneID) int { return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b)) })
	return zones
}

// shortOf notes that group i cannot launch what it is to hold. It goes on trying
// by itself.
func (r *run) shortOf(i int32) {
	g := &r.auto.groups[i]
	if g.failedAt == 0 {
		g.failedAt = r.q.now
		r.refuseGroup(g)
	}
	r.planFill(i, r.q.now.Add(r.auto.GroupRetry))
	r.scanBy(r.q.now)
}

// refuseGroup notes that none of the markets of g had a node. A group asks again
// whenever it likes, so a spell in which they have none counts as one refusal.
func (r *run) refuseGroup(g *scalingGroup) {
	for _, m := range g.markets {
		ms := &r.market[m]
		if ms.seen.Refused != 0 && r.q.now.Sub(ms.seen.Refused) < r.delays.Unavailable || !r.affords(g.pool, m) {
			continue
		}
		ms.meet(r.q.now)
		ms.seen.Refusals++
		ms.seen.Refused = r.q.now
	}
	r.poolX[g.pool].refused(r, g.pool)
	r.refusedMarkets(g.pool, g.markets)
}

// launchInGroup carries out a launch of the policy in a pool of groups: it makes
// the group of the first market that will do one larger. The group, and not the
// policy, chooses among its types and zones. A raise that brings no instance is
// taken back, and the group of the next market is tried.
func (r *run) launchInGroup(pool policy.PoolID, markets []policy.MarketID, token string) error {
	var tried []int32
	for _, m := range markets {
		i := r.auto.of[pool][m]
		if slices.Contains(tried, i) {
			continue
		}
		tried = append(tried, i)
		g := &r.auto.groups[i]
		if g.failedAt != 0 || !r.mayGain(g) {
			continue
		}
		r.setDesired(g, g.desired+1)
		if _, ok := r.launchIn(i, token); ok {
			return nil
		}
		r.setDesired(g, g.desired-1)
		r.refuseGroup(g)
	}
	return driver.ErrNoCapacity
}
