package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/scenarios"
)

// growthGrace is the assumed ready grace of a recording, which does not contain it.
const growthGrace = scenarios.DefaultReadyGrace

// Load reads a complete recording of a simulation or a cluster. It only knows the states at the
// steps: between two steps, nodes, pods, workloads and prices are those of the first one, and what
// left between them left at the second. Costs only contain a bill, computed from the first step on
// from the prices and the lifetimes of the observed nodes. Bids are upper limits of prices, and
// payments in advance are ignored. The cost of outages is unknown. A pod on a lost node counts as
// ready until the cluster has noticed the loss.
func Load(r *record.Recording) (*Timeline, error) {
	t := newTimeline(About{Scenario: r.Meta.Scenario, Policy: r.Meta.Policy, Seed: r.Meta.Seed, Recorded: true,
		Note: r.Meta.Note})
	t.ended = true
	l := &loader{t: t}
	for step, err := range r.Steps() {
		if err != nil {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		if err := l.step(step); err != nil {
			return nil, err
		}
	}
	if l.last == nil {
		return nil, fmt.Errorf("the recording has no step: %w", record.ErrNoRecording)
	}
	l.bill()
	return t, nil
}

// A loader fills a timeline from steps.
type loader struct {
	t    *Timeline
	last *policy.Snapshot

	// The indexes of a snapshot's entries in the tables of the timeline. They differ because the
	// tables of a cluster change.
	market, pool, work, budget places

	// By index: the reserve price of a market; whether a workload is below its required number of
	// pods, whether it is suspended, and its desired replicas.
	reserve   []policy.Money
	short     []bool
	suspended []bool
	replicas  []history[int32]

	// lives are the lifetimes of all nodes. By slot: the index in lives of the current node, -1 if
	// there is no node, its name, and the sum of its pods' requests.
	lives     []life
	alive     []int
	names     []string
	requested []policy.Resources
	pods      []int32

	counts counts
}

// places maps entries to indexes in a growing table: of[i] is the index of the i-th entry of a
// snapshot.
type places struct {
	of   []int32
	seen map[string]int32
}

// follow updates p for n entries, and returns those that are new.
func (p *places) follow(n int, name func(int) string) (fresh []int) {
	if p.seen == nil {
		p.seen = map[string]int32{}
	}
	p.of = p.of[:0]
	for i := range n {
		k, ok := p.seen[name(i)]
		if !ok {
			k = int32(len(p.seen))
			p.seen[name(i)] = k
			fresh = append(fresh, i)
		}
		p.of = append(p.of, k)
	}
	return fresh
}

// at returns the index of the i-th entry, -1 if i is negative.
func (p *places) at(i int32) int32 {
	if i < 0 {
		return -1
	}
	return p.of[i]
}

// follow adds the new entries of s to the tables.
func (l *loader) follow(s *policy.Snapshot) {
	t := l.t
	var markets []policy.Market
	for _, i := range l.market.follow(len(s.Markets), func(i int) string { return s.Markets[i].Name }) {
		markets = append(markets, s.Markets[i])
		l.reserve = append(l.reserve, s.Markets[i].Reserve)
	}
	t.addMarkets(s.Types, s.Zones, markets)
	for _, i := range l.pool.follow(len(s.Pools), func(i int) string { return s.Pools[i].Name }) {
		t.addPool(&s.Pools[i])
	}
	for _, i := range l.work.follow(len(s.Workloads), func(i int) string { return s.Workloads[i].Name }) {
		t.addWorkload(&s.Workloads[i], 0)
		l.short, l.suspended = append(l.short, false), append(l.suspended, s.Workloads[i].Suspended)
		l.replicas = append(l.replicas, history[int32]{})
	}
	for _, i := range l.budget.follow(len(s.Budgets), func(i int) string { return s.Budgets[i].Name }) {
		t.addBudget(&s.Budgets[i])
	}
}

// step processes one step.
func (l *loader) step(st *record.Step) error {
	s, t := st.Snapshot, l.t
	if l.last == nil {
		t.warmup, t.from = s.Now, s.Now
	} else if s.Now <= l.last.Now {
		return fmt.Errorf("step %d is of %v, not after the one before it: %w", st.Number, s.Now, record.ErrCorrupt)
	}
	l.follow(s)
	begun := len(t.events)
	l.losses(st)
	l.reckon(s)
	l.nodes(s)
	l.workloads(s)
	for i := range s.Ended {
		l.podEnded(s, &s.Ended[i])
	}
	l.markets(s)
	for i := range s.Budgets {
		b, k := &s.Budgets[i], l.budget.of[i]
		was, _ := t.ledgers[k].value(s.Now)
		if b.Closed != was.Closed {
			t.addEvent(s.Now, pick(b.Closed, GateClosed, GateOpened), b.Name, "", 0)
		}
		t.ledgers[k].add(s.Now, budgetOf(st.Memory.Budget(b.Name), b.Closed))
	}
	slices.SortStableFunc(t.events[begun:], func(a, b eventRow) int { return cmp.Compare(a.at, b.at) })
	t.addDecision(s, &st.Plan)
	t.counts.add(s.Now, l.counts)
	t.until, t.to, l.last = s.Now, s.Now, s
	return nil
}

// losses adds the loss budgets after the decision before a step. The memory of a step is its input,
// and therefore the result of the decision before.
func (l *loader) losses(st *record.Step) {
	s, at := st.Snapshot, l.since(st.Snapshot, 0)
	var sum LossBudget
	for i := range s.Pools {
		m := st.Memory.Pool(s.Pools[i].Name)
		kept := m.Loss.At != 0 && (l.last == nil || m.Loss.At >= l.last.Now)
		if kept {
			at = max(at, l.since(s, m.Loss.At))
		}
		l.t.addLoss(at, int(l.pool.of[i]), &m.Loss, kept, &sum)
	}
	l.t.losses.add(at, sum)
}

func (l *loader) markets(s *policy.Snapshot) {
	for i := range s.Markets {
		m, k := &s.Markets[i], l.market.of[i]
		price := policy.NoPrice
		if m.Offered {
			price = m.Price
		}
		at := l.since(s, m.PricedAt)
		if l.last != nil {
			at = max(at, l.last.Now+1) // the last step reported the price until then
		}
		l.t.prices[k].add(at, price)
		l.t.hazards[k].add(s.Now, hazardOf(m))
	}
}

// since returns an instant that a snapshot reports, limited to the time since the last step, which
// did not know of it.
func (l *loader) since(s *policy.Snapshot, at policy.Time) policy.Time {
	if l.last != nil {
		at = max(at, l.last.Now)
	}
	return min(at, s.Now)
}

// reckon sums the requests of the pods of each node.
func (l *loader) reckon(s *policy.Snapshot) {
	for len(l.requested) < len(s.Nodes) {
		l.requested, l.pods = append(l.requested, policy.Resources{}), append(l.pods, 0)
		l.alive, l.names = append(l.alive, -1), append(l.names, "")
		l.t.nodes = append(l.t.nodes, history[nodeState]{})
	}
	clear(l.requested)
	clear(l.pods)
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Node == policy.None {
			continue
		}
		tpl := &s.Templates[p.Template]
		l.requested[p.Node] = l.requested[p.Node].Plus(tpl.Requests)
		if !tpl.DaemonSet {
			l.pods[p.Node]++
		}
	}
}

// nodes adds the changes of nodes.
func (l *loader) nodes(s *policy.Snapshot) {
	t := l.t
	l.counts.nodes, l.counts.spotNodes, l.counts.size, l.counts.spotSize = 0, 0, 0, 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if l.names[i] != "" && (!n.Live() || n.Name != l.names[i]) {
			l.left(s, i)
		}
		if !n.Live() {
			continue
		}
		if l.names[i] == "" {
			l.came(s, n)
		}
		l.changed(s, n)
		t.nodes[i].add(s.Now, t.stateOf(n, l.pool.at(int32(n.Pool)), l.market.at(int32(n.Market)), l.requested[i], l.pods[i]))
		if n.Phase >= policy.NodeInitialized && n.Market >= 0 {
			l.hold(s, n)
		}
	}
}

func (l *loader) hold(s *policy.Snapshot, n *policy.Node) {
	size := 1000 * s.Types[s.Markets[n.Market].Type].VCPU
	l.counts.nodes++
	l.counts.size += size
	if s.Markets[n.Market].Capacity == policy.Spot {
		l.counts.spotNodes++
		l.counts.spotSize += size
	}
}

func (l *loader) came(s *policy.Snapshot, n *policy.Node) {
	l.names[n.ID] = n.Name
	market, price := "", policy.Money(0)
	if n.Market >= 0 {
		market = s.Markets[n.Market].Name
		price = s.Markets[n.Market].Charge()
		l.alive[n.ID] = len(l.lives)
		x := life{market: l.market.of[n.Market], from: n.Launched, bid: n.Bid}
		if n.Pool >= 0 {
			x.fees = s.Pools[n.Pool].Fees
		}
		l.lives = append(l.lives, x)
	}
	if l.last != nil {
		l.t.addEvent(l.since(s, n.Launched), Launched, n.Name, market, int64(price))
	}
}

// changed adds events for the changes of a node since the last step.
func (l *loader) changed(s *policy.Snapshot, n *policy.Node) {
	if l.last == nil {
		return
	}
	t := l.t
	was, _ := t.nodes[n.ID].value(l.last.Now)
	if !was.there || t.names.list[was.name] != n.Name {
		was = nodeState{phase: policy.NodeLaunching}
	}
	if was.phase < policy.NodeInitialized && n.Phase >= policy.NodeInitialized {
		t.addEvent(l.since(s, n.Initialized), Joined, n.Name, "", 0)
	}
	if was.notice == 0 && n.ReclaimAt != 0 {
		l.counts.notices++
		t.addEvent(l.since(s, n.NoticeAt), Noticed, n.Name, "", int64(n.ReclaimAt))
	}
	if !was.recommended && n.Recommended != 0 {
		t.addEvent(l.since(s, n.Recommended), Recommended, n.Name, "", 0)
	}
	switch {
	case was.phase < policy.NodeDraining && n.Phase >= policy.NodeDraining:
		t.addEvent(s.Now, Draining, n.Name, "", 0)
	case was.phase == policy.NodeDraining && n.Phase == policy.NodeInitialized:
		t.addEvent(s.Now, Undrained, n.Name, "", 0)
	}
}

// left adds an event for the end of the node in a slot. The node counts as reclaimed if pods were
// lost with it, or if its notice expired before a drain.
func (l *loader) left(s *policy.Snapshot, slot int) {
	t, name := l.t, l.names[slot]
	was, _ := t.nodes[slot].value(l.last.Now)
	lost, emptied := false, was.phase >= policy.NodeDraining
	for i := range s.Ended {
		if e := &s.Ended[i]; e.Node == name {
			lost, emptied = lost || e.Cause == policy.EndReclaimed, emptied || e.Cause == policy.EndEvicted
		}
	}
	taken := lost || was.notice != 0 && was.notice <= s.Now && !emptied
	market := ""
	if was.market >= 0 {
		market = t.markets[was.market].Name
	}
	if taken {
		l.counts.reclaims++
		t.addEvent(s.Now, Reclaimed, name, market, 0)
	} else {
		t.addEvent(s.Now, Deleted, name, "", 0)
	}
	if k := l.alive[slot]; k >= 0 {
		l.lives[k].to = s.Now
	}
	l.names[slot], l.alive[slot] = "", -1
	t.nodes[slot].add(s.Now, nodeState{})
}

func (l *loader) podEnded(s *policy.Snapshot, e *policy.EndedPod) {
	tpl := &s.Templates[e.Template]
	switch {
	case e.Cause == policy.EndEvicted && !tpl.DaemonSet:
		l.counts.evictions++
		l.t.addEvent(l.since(s, e.End), PodEvicted, e.Node, tpl.Name, 0)
	case e.Cause == policy.EndReclaimed:
		l.t.addEvent(l.since(s, e.End), PodLost, e.Node, tpl.Name, 0)
	}
}

// workloads adds the states of workloads. The required number of ready pods is that of the
// strictest PodDisruptionBudget, or else three quarters of the desired pods.
func (l *loader) workloads(s *policy.Snapshot) {
	t := l.t
	onSpot := make([]int32, len(s.Workloads))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase != policy.PodReady || p.Node == policy.None {
			continue
		}
		if m, w := s.Nodes[p.Node].Market, s.Templates[p.Template].Workload; m >= 0 && w >= 0 &&
			s.Markets[m].Capacity == policy.Spot {
			onSpot[w]++
		}
	}
	for i := range s.Workloads {
		w, k := &s.Workloads[i], l.work.of[i]
		scaled := w.Kind != policy.KindJob && w.Kind != policy.KindDaemonSet
		if was, ok := l.replicas[k].value(s.Now); ok && was != w.Replicas && scaled {
			t.addEvent(s.Now, ReplicasChanged, w.Name, "", int64(w.Replicas))
		}
		l.replicas[k].add(s.Now, w.Replicas)
		state := Workload{Desired: w.Replicas, Ready: w.Ready, OnSpot: onSpot[i]}
		if scaled {
			state.Desired = l.desired(k, s.Now)
			state.Required = required(s, policy.WorkloadID(i), state.Desired)
		}
		t.work[k].add(s.Now, state)
		if short := state.Ready < state.Required; short != l.short[k] {
			l.short[k] = short
			t.addEvent(s.Now, pick(short, OutageBegan, OutageEnded), w.Name, "", int64(state.Required-state.Ready))
		}
		if w.Suspended != l.suspended[k] {
			l.suspended[k] = w.Suspended
			t.addEvent(s.Now, pick(w.Suspended, Paused, Resumed), w.Name, "", 0)
		}
	}
}

// desired returns the minimum desired replicas of workload k during the grace before now.
func (l *loader) desired(k int32, now policy.Time) int32 {
	h := &l.replicas[k]
	least := h.what[len(h.what)-1]
	for i := len(h.at) - 1; i >= 0; i-- {
		least = min(least, h.what[i])
		if h.at[i] <= now.Add(-growthGrace) {
			break
		}
	}
	return least
}

// required returns the number of the desired pods of w that must be ready.
func required(s *policy.Snapshot, w policy.WorkloadID, desired int32) int32 {
	least, bound := max(desired-max(1, desired/4), min(desired, 1)), false
	for i := range s.Templates {
		if s.Templates[i].Workload != w {
			continue
		}
		for _, p := range s.Templates[i].PDBs {
			if !bound {
				least, bound = 0, true
			}
			least = max(least, s.PDBs[p].Required(desired))
		}
	}
	return min(least, desired)
}
