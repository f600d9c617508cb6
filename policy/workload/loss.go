package workload

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A Group is a set of nodes that can be lost together: the nodes of one Spot market, or all nodes
// of one zone. Exactly one of the fields is not None.
type Group struct {
	Market policy.MarketID
	Zone   policy.ZoneID
}

// An Exposed describes the effect of the loss of one group on a workload.
type Exposed struct {
	// Group is the group in which most of the workload's pods run; of several, the one with the
	// lowest ID. If no pod runs in a group of the kind, both fields of Group are None, and Pods is
	// 0.
	Group Group

	// Pods is the number of pods that run there.
	Pods int32

	// Best is the number of pods in the largest group if the pods were spread as evenly as the
	// markets, their selectors, their volumes and their own affinity allow. For markets it is 0 if
	// the pods can also run on demand.
	Best int32
}

// A Loss describes the effect on a workload of the loss of one group of nodes.
type Loss struct {
	Workload policy.WorkloadID

	// Desired is the desired number of pods, and Required the number that must be ready; see
	// [Required]. Bound is the number of pods that are bound to a node and not terminating, whether
	// or not they are ready.
	Desired, Required, Bound int32

	// Market and Zone are the groups of each kind whose loss has the largest effect.
	Market, Zone Exposed
}

// Slack returns how many of the desired pods may be missing.
func (l *Loss) Slack() int32 { return l.Desired - l.Required }

// Left returns how many pods would remain after the loss of e.
func (l *Loss) Left(e Exposed) int32 { return l.Bound - e.Pods }

// Short returns the number of pods by which the workload would be below Required after the loss of
// e; 0 if enough pods remain.
func (l *Loss) Short(e Exposed) int32 { return max(0, l.Required-l.Left(e)) }

// Unavoidable returns the number of pods by which the workload would be below Required after the
// loss of a group of the kind of e even with the best spread. Reasons are a single replica, pods
// that a volume or a selector binds to one zone, or a PodDisruptionBudget that is too strict for
// the number of zones.
func (l *Loss) Unavoidable(e Exposed) int32 { return max(0, e.Best-l.Slack()) }

// Mendable returns the number of pods by which the workload would be below Required after the loss
// of e, counting only pods that a better spread would place elsewhere.
func (l *Loss) Mendable(e Exposed) int32 { return max(0, e.Pods-max(l.Slack(), e.Best)) }

// Required returns how many of the desired pods of t's workload must be ready. This is the maximum
// over its PodDisruptionBudgets, but at most all. Without a budget it is all but a quarter, where
// at least one may be missing, but at least 1.
func Required(s *policy.Snapshot, t *policy.Template, desired int32) int32 {
	if desired <= 0 {
		return 0
	}
	if len(t.PDBs) == 0 {
		return max(1, desired-max(1, desired/4))
	}
	required := int32(0)
	for _, b := range t.PDBs {
		required = max(required, s.PDBs[b].Required(desired))
	}
	return min(required, desired)
}

// An Exposure counts how the pods of every workload are spread over the groups, and predicts the
// effect of moves. The zero Exposure is ready for [Exposure.Read], which reuses its memory when it
// is called again. It must not be used concurrently.
//
// Pods count where they are bound, from binding until their deletion is requested, so that a move
// in progress does not leave a gap in the spread.
type Exposure struct {
	s *policy.Snapshot

	// row[w] is the row of workload w plus 1, or 0 for a workload without a desired number of pods.
	row  []int32
	rows []exposed

	// counts[row*groups+g] is the number of pods of a row in group g. The first groups are the
	// markets by ID, where those that are not Spot stay 0; the zones follow.
	counts []int32
	groups int

	// pods[from[n]:from[n+1]] are the pods of node n, if listed is set. They are computed on
	// demand, because few users of an Exposure need them by node.
	listed bool
	from   []int32
	pods   []held

	rowOf []int32 // by template: its row, or a negative number without one

	// fixed[row*zones+z] is the number of pods that a volume binds to zone z.
	fixed []int32

	// zones and spot are the groups of every node, or None if it is in no such group.
	zones []policy.ZoneID
	spot  []policy.MarketID

	access   access
	standing standing
}

// An exposed is the row of one workload.
type exposed struct {
	workload                 policy.WorkloadID
	template                 policy.TemplateID // a template of the workload, or None
	desired, required, bound int32
	bestMarket, bestZone     int32
}

// A held is the number of pods of one row on one node.
type held struct{ row, n int32 }

// Read counts the pods of s. It discards the effects of [Exposure.Move]. The Exposure refers to s
// until the next Read.
func (x *Exposure) Read(s *policy.Snapshot) {
	x.s = s
	x.readWorkloads()
	x.readCounts()
	x.access.read(s)
	for i := range x.rows {
		x.best(i)
	}
}

// readWorkloads assigns a row to each workload that has a desired number of pods.
func (x *Exposure) readWorkloads() {
	s := x.s
	x.row, x.rows = scratch.Zeroed(x.row, len(s.Workloads)), x.rows[:0]
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if w.Replicas < 1 || w.Kind != policy.KindDeployment && w.Kind != policy.KindStatefulSet {
			continue
		}
		x.rows = append(x.rows, exposed{workload: policy.WorkloadID(i), template: policy.None, desired: w.Replicas})
		x.row[i] = int32(len(x.rows))
	}
	x.rowOf = scratch.Zeroed(x.rowOf, len(s.Templates))
	for i := range s.Templates {
		t := &s.Templates[i]
		if x.rowOf[i] = -1; t.Workload < 0 || x.row[t.Workload] == 0 {
			continue
		}
		x.rowOf[i] = x.row[t.Workload] - 1
		r := &x.rows[x.row[t.Workload]-1]
		r.template = t.ID
		r.required = max(r.required, Required(s, t, r.desired))
	}
}

// zoneLabel is the label with the zone of a node whose market is unknown.
const zoneLabel = "topology.kubernetes.io/zone"

func zoneNamed(s *policy.Snapshot, n *policy.Node) policy.ZoneID {
	name, ok := n.Label(zoneLabel)
	for z := range s.Zones {
		if ok && s.Zones[z] == name {
			return policy.ZoneID(z)
		}
	}
	return policy.None
}

// countedRow returns the row of a pod that counts, or a negative number for other pods.
func (x *Exposure) countedRow(p *policy.Pod) int32 {
	if !counts(p) {
		return -1
	}
	return x.rowOf[p.Template]
}

// readCounts counts the pods by group.
func (x *Exposure) readCounts() {
	now := &x.standing
	now.read(x.s)
	x.groups, x.listed = now.groups, false
	x.spot, x.zones = append(x.spot[:0], now.spot[:len(x.s.Nodes)]...), append(x.zones[:0], now.zone[:len(x.s.Nodes)]...)
	x.counts = scratch.Zeroed(x.counts, len(x.rows)*now.groups)
	x.fixed = scratch.Zeroed(x.fixed, len(x.rows)*now.zones)
	for t, r := range x.rowOf {
		if r < 0 || now.bound[t] == 0 {
			continue
		}
		x.rows[r].bound += now.bound[t]
		addTo(x.counts[int(r)*now.groups:], now.counts[t*now.groups:(t+1)*now.groups])
		addTo(x.fixed[int(r)*now.zones:], now.fixed[t*now.zones:(t+1)*now.zones])
	}
}

func addTo(sum, counts []int32) {
	sum = sum[:len(counts)]
	for i, n := range counts {
		sum[i] += n
	}
}

// on returns the pods of node n that count, as of the last Read.
func (x *Exposure) on(n policy.NodeID) []held {
	if !x.listed {
		x.list()
	}
	return x.pods[x.from[n]:x.from[n+1]]
}

// list groups the pods by node.
func (x *Exposure) list() {
	s := x.s
	x.listed = true
	x.from = scratch.Zeroed(x.from, len(s.Nodes)+1)
	total := int32(0)
	for i := range s.Pods {
		if p := &s.Pods[i]; x.countedRow(p) >= 0 {
			x.from[p.Node+1]++
			total++
		}
	}
	for n := range s.Nodes {
		x.from[n+1] += x.from[n]
	}
	x.pods = scratch.Zeroed(x.pods, int(total))
	// While a node is filled, from[n] is the next free position; it is restored below.
	for i := range s.Pods {
		p := &s.Pods[i]
		if r := x.countedRow(p); r >= 0 {
			x.pods[x.from[p.Node]] = held{row: r, n: 1}
			x.from[p.Node]++
		}
	}
	for n := len(s.Nodes); n > 0; n-- {
		x.from[n] = x.from[n-1]
	}
	x.from[0] = 0
	x.join()
}

// join merges the pods of a workload on a node into one entry, so that a move considers each
// workload once.
func (x *Exposure) join() {
	to := int32(0)
	for n := range x.s.Nodes {
		list := x.pods[x.from[n]:x.from[n+1]]
		x.from[n] = to
		for _, h := range list {
			k := x.from[n]
			for k < to && x.pods[k].row != h.row {
				k++
			}
			if k < to {
				x.pods[k].n++
				continue
			}
			x.pods[to] = h // never ahead of the read position
			to++
		}
	}
	x.from[len(x.s.Nodes)] = to
	x.pods = x.pods[:to]
}

// count adds n pods of a row to a Spot market and a zone, if they are not None.
func (x *Exposure) count(row int32, market policy.MarketID, zone policy.ZoneID, n int32) {
	at := int(row) * x.groups
	if market >= 0 {
		x.counts[at+int(market)] += n
	}
	if zone >= 0 {
		x.counts[at+len(x.s.Markets)+int(zone)] += n
	}
}

// Tracks reports whether w has a desired number of pods.
func (x *Exposure) Tracks(w policy.WorkloadID) bool { return w >= 0 && x.row[w] != 0 }

// Loss returns the effect of the loss of a group on w, which must be tracked. It takes time
// proportional to the number of markets and zones.
func (x *Exposure) Loss(w policy.WorkloadID) Loss {
	r := x.row[w] - 1
	e := &x.rows[r]
	row := x.counts[int(r)*x.groups : int(r+1)*x.groups]
	l := Loss{
		Workload: w, Desired: e.desired, Required: e.required, Bound: e.bound,
		Market: Exposed{Group: Group{policy.None, policy.None}, Best: e.bestMarket},
		Zone:   Exposed{Group: Group{policy.None, policy.None}, Best: e.bestZone},
	}
	markets := len(x.s.Markets)
	if i, n := most(row[:markets]); n > 0 {
		l.Market.Group.Market, l.Market.Pods = policy.MarketID(i), n
	}
	if i, n := most(row[markets:]); n > 0 {
		l.Zone.Group.Zone, l.Zone.Pods = policy.ZoneID(i), n
	}
	return l
}

// most returns the index and the value of the largest count; of several, the first. Both are 0 if
// no count is above 0.
func most(counts []int32) (at int, n int32) {
	for i, k := range counts {
		if k > n {
			at, n = i, k
		}
	}
	return at, n
}

// Pods returns how many pods of w, which must be tracked, run in g.
func (x *Exposure) Pods(w policy.WorkloadID, g Group) int32 {
	at := int(x.row[w]-1) * x.groups
	if g.Market >= 0 {
		return x.counts[at+int(g.Market)]
	}
	return x.counts[at+len(x.s.Markets)+int(g.Zone)]
}

// Allowed returns how many pods of w, which must be tracked, may run in one Spot market and in one
// zone: the number that may be missing, or the number that the best spread places there if that is
// larger.
func (x *Exposure) Allowed(w policy.WorkloadID) (market, zone int32) {
	e := &x.rows[x.row[w]-1]
	return e.allowed()
}

func (e *exposed) allowed() (market, zone int32) {
	slack := e.desired - e.required
	return max(slack, e.bestMarket), max(slack, e.bestZone)
}

// Excess returns the number of pods above the allowed number, summed over all workloads and groups.
// It is 0 if every workload would keep its required pods after the loss of any one group, where
// nodes allow that.
func (x *Exposure) Excess() int32 {
	sum := int32(0)
	for i := range x.rows {
		market, zone := x.rows[i].allowed()
		row := x.counts[i*x.groups : (i+1)*x.groups]
		for g, n := range row {
			limit := market
			if g >= len(x.s.Markets) {
				limit = zone
			}
			sum += max(0, n-limit)
		}
	}
	return sum
}

// Change returns the increase of [Exposure.Excess] if all pods of node n ran on a node of market
// to. It is negative for a decrease. It takes time proportional to the number of workloads on n.
func (x *Exposure) Change(n policy.NodeID, to policy.MarketID) int32 {
	market, zone := x.groupsOf(to)
	sum := int32(0)
	for _, h := range x.on(n) {
		sum += x.change(h.row, h.n, x.spot[n], x.zones[n], market, zone)
	}
	return sum
}

// ChangeOf returns the increase of [Exposure.Excess] if the given number of pods of w moved from
// node n to a node of market to.
func (x *Exposure) ChangeOf(w policy.WorkloadID, pods int32, n policy.NodeID, to policy.MarketID) int32 {
	if !x.Tracks(w) {
		return 0
	}
	market, zone := x.groupsOf(to)
	return x.change(x.row[w]-1, pods, x.spot[n], x.zones[n], market, zone)
}

// groupsOf returns the Spot market, or None, and the zone of a market.
func (x *Exposure) groupsOf(m policy.MarketID) (policy.MarketID, policy.ZoneID) {
	if m < 0 {
		return policy.None, policy.None
	}
	if x.s.Markets[m].Capacity != policy.Spot {
		return policy.None, x.s.Markets[m].Zone
	}
	return m, x.s.Markets[m].Zone
}

func (x *Exposure) change(row, pods int32, market policy.MarketID, zone policy.ZoneID, toMarket policy.MarketID,
	toZone policy.ZoneID) int32 {
	at := x.counts[int(row)*x.groups : int(row+1)*x.groups]
	marketMax, zoneMax := x.rows[row].allowed()
	sum := int32(0)
	if market != toMarket {
		if market >= 0 {
			sum += over(at[market]-pods, marketMax) - over(at[market], marketMax)
		}
		if toMarket >= 0 {
			sum += over(at[toMarket]+pods, marketMax) - over(at[toMarket], marketMax)
		}
	}
	if zone != toZone {
		zones := at[len(x.s.Markets):]
		if zone >= 0 {
			sum += over(zones[zone]-pods, zoneMax) - over(zones[zone], zoneMax)
		}
		if toZone >= 0 {
			sum += over(zones[toZone]+pods, zoneMax) - over(zones[toZone], zoneMax)
		}
	}
	return sum
}

func over(n, limit int32) int32 { return max(0, n-limit) }

// Move moves all pods of node n to a node of market to in the counts, so that later queries include
// the move. A move to the market of n itself changes nothing. If to is None, the pods are then in
// no group.
func (x *Exposure) Move(n policy.NodeID, to policy.MarketID) {
	market, zone := x.groupsOf(to)
	for _, h := range x.on(n) {
		x.count(h.row, x.spot[n], x.zones[n], -h.n)
		x.count(h.row, market, zone, h.n)
	}
	x.spot[n], x.zones[n] = market, zone
}

// On calls visit with each tracked workload that has pods on node n, and with their number, as of
// the last Read.
func (x *Exposure) On(n policy.NodeID, visit func(w policy.WorkloadID, pods int32)) {
	for _, h := range x.on(n) {
		visit(x.rows[h.row].workload, h.n)
	}
}

// MoveOf moves the given number of pods of w from node n to market to in the counts.
func (x *Exposure) MoveOf(w policy.WorkloadID, pods int32, n policy.NodeID, to policy.MarketID) {
	if !x.Tracks(w) {
		return
	}
	market, zone := x.groupsOf(to)
	x.count(x.row[w]-1, x.spot[n], x.zones[n], -pods)
	x.count(x.row[w]-1, market, zone, pods)
}
