package workload

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A Group is a set of nodes that can be lost together: the nodes of one Spot market, or all nodes
// of one zone. Exactly one of the two is not None.
type Group struct {
	Market policy.MarketID
	Zone   policy.ZoneID
}

// An Exposed says what the loss of one group would take from a workload.
type Exposed struct {
	// Group is where most of the workload's pods run: of several the one with the lowest id. Both
	// its fields are None if no pod runs in a group of the kind, and Pods is then 0.
	Group Group

	// Pods is the number of pods that run there.
	Pods int32

	// Best is the number that would run in the worst group if the pods were spread as evenly as the
	// markets, their selectors, their volumes and their own affinity allow. It is 0 for the loss of
	// a market if they can also run on demand.
	Best int32
}

// A Loss is what a workload has to bear when one group of nodes is lost.
type Loss struct {
	Workload policy.WorkloadID

	// Desired is the number of pods wanted, Required the number that must be
	// ready; see [Required]. Bound is the number that are bound to a node
	// and not leaving it, ready or on their way there.
	Desired, Required, Bound int32

	// Market and Zone are the worst groups of their kinds.
	Market, Zone Exposed
}

// Slack returns how many of the desired pods may be missing.
func (l *Loss) Slack() int32 { return l.Desired - l.Required }

// Left returns how many pods would remain after the loss of e.
func (l *Loss) Left(e Exposed) int32 { return l.Bound - e.Pods }

// Short returns by how many pods the workload would fall below required with
// the loss of e; 0 where enough are left.
func (l *Loss) Short(e Exposed) int32 { return max(0, l.Required-l.Left(e)) }

// Unavoidable returns by how many pods the workload would fall below required
// with the loss of a group of the kind of e however its pods were spread: a
// single replica, pods that a volume or a selector ties to one zone, a budget
// that leaves too little for the zones there are.
func (l *Loss) Unavoidable(e Exposed) int32 { return max(0, e.Best-l.Slack()) }

// Mendable returns by how many pods the workload would fall below required with
// the loss of e although a better spread exists: the pods that would have to
// stand elsewhere.
func (l *Loss) Mendable(e Exposed) int32 { return max(0, e.Pods-max(l.Slack(), e.Best)) }

// Required returns how many of the desired pods of t's workload must be ready:
// the most that any of its disruption budgets wants of them, at most all;
// without a budget all but a quarter, of which one at least may miss unless it
// is the only one.
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
// effect of a move before it is made. The zero Exposure is ready for [Exposure.Read], which reuses
// its memory when it is called again. It serves one goroutine at a time.
//
// Pods count where they are bound, from binding until their deletion is requested, so that a move
// under way is no gap in the spread.
type Exposure struct {
	s *policy.Snapshot

	// row[w] is 1 + the row of workload w; 0 of one without a desired number.
	row  []int32
	rows []exposed

	// counts[row*groups+g] is the number of pods of a row in group g: first the
	// markets by id (those that are not spot stay 0), then the zones.
	counts []int32
	groups int

	// Pods of node n: from[n] up to from[n+1] in pods, once listed: few users of an Exposure need
	// them by node.
	listed bool
	from   []int32
	pods   []held

	rowOf []int32 // by template, its row, below zero of none

	// fixed[row*zones+z] is the number of pods that a volume ties to zone z.
	fixed []int32

	// zones and spot are the groups of every node, None where it is in none.
	zones []policy.ZoneID
	spot  []policy.MarketID

	access   access
	standing standing
}

// An exposed is the row of one workload.
type exposed struct {
	workload                 policy.WorkloadID
	template                 policy.TemplateID // one of the workload's, or None
	desired, required, bound int32
	bestMarket, bestZone     int32
}

// held counts the pods of one row on one node.
type held struct{ row, n int32 }

// Read counts the pods of s. What [Exposure.Move] changed before is forgotten.
// The Exposure reads s until the next Read.
func (x *Exposure) Read(s *policy.Snapshot) {
	x.s = s
	x.readWorkloads()
	x.readCounts()
	x.access.read(s)
	for i := range x.rows {
		x.best(i)
	}
}

// readWorkloads gives a row to each workload that has a desired number.
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

// zoneLabel is the label in which a node of no market has its zone.
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

// countedRow returns the row of a pod that counts, below zero of one that does not.
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

// on returns the pods that count of node n, as they were read.
func (x *Exposure) on(n policy.NodeID) []held {
	if !x.listed {
		x.list()
	}
	return x.pods[x.from[n]:x.from[n+1]]
}

// list sorts the pods by node.
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
	// While a node is filled from[n] runs ahead; it is put back below.
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

// join makes one entry of the pods that a workload has on a node, so that a
// move looks at a workload once.
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
			x.pods[to] = h // never ahead of what is read
			to++
		}
	}
	x.from[len(x.s.Nodes)] = to
	x.pods = x.pods[:to]
}

// count adds n pods of a row to a Spot market and a zone, where they are known.
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

// Loss returns what the loss of a group does to w, which must be tracked, in
// time proportional to the number of markets.
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

// most returns the first of the largest of counts, and 0 if no count is above 0.
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
// zone: as many as may be missing, or the number that the best spread puts there if that is more.
func (x *Exposure) Allowed(w policy.WorkloadID) (market, zone int32) {
	e := &x.rows[x.row[w]-1]
	return e.allowed()
}

func (e *exposed) allowed() (market, zone int32) {
	slack := e.desired - e.required
	return max(slack, e.bestMarket), max(slack, e.bestZone)
}

// Excess returns how many pods run beyond what is allowed in their groups, over all workloads and
// groups: 0 if every workload would keep what it requires after the loss of any one group, where
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

// Change returns by how much [Exposure.Excess] would grow (below zero: fall) if
// all pods of node n stood on a node of market to, in time proportional to the
// number of workloads on n.
func (x *Exposure) Change(n policy.NodeID, to policy.MarketID) int32 {
	market, zone := x.groupsOf(to)
	sum := int32(0)
	for _, h := range x.on(n) {
		sum += x.change(h.row, h.n, x.spot[n], x.zones[n], market, zone)
	}
	return sum
}

// ChangeOf returns by how much [Exposure.Excess] would grow if the given number of pods of w went
// from node n to a node of market to.
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

// Move takes all pods of node n to a node of market to, so that later queries see the spread after
// it. To the market of n itself it changes nothing; with None the pods are then in no group.
func (x *Exposure) Move(n policy.NodeID, to policy.MarketID) {
	market, zone := x.groupsOf(to)
	for _, h := range x.on(n) {
		x.count(h.row, x.spot[n], x.zones[n], -h.n)
		x.count(h.row, market, zone, h.n)
	}
	x.spot[n], x.zones[n] = market, zone
}

// On calls visit with each workload that has a desired number and has pods on node n,
// as they were read, and with how many it has there.
func (x *Exposure) On(n policy.NodeID, visit func(w policy.WorkloadID, pods int32)) {
	for _, h := range x.on(n) {
		visit(x.rows[h.row].workload, h.n)
	}
}

// MoveOf takes the given number of pods of w from node n to market to.
func (x *Exposure) MoveOf(w policy.WorkloadID, pods int32, n policy.NodeID, to policy.MarketID) {
	if !x.Tracks(w) {
		return
	}
	market, zone := x.groupsOf(to)
	x.count(x.row[w]-1, x.spot[n], x.zones[n], -pods)
	x.count(x.row[w]-1, market, zone, pods)
}
