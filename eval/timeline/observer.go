package timeline

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// New returns an empty timeline of a run of a prepared scenario. spec is the policy, and seed the
// seed of the run.
func New(prepared *sim.Prepared, spec string, seed uint64) *Timeline {
	w := prepared.Scenario()
	t := newTimeline(About{Scenario: w.Name, Policy: spec, Seed: seed, Trace: w.Trace})
	t.addMarkets(w.Types, w.Zones, w.Markets)
	for i := range w.Pools {
		t.addPool(&w.Pools[i])
	}
	for i := range w.Workloads {
		t.addWorkload(&w.Workloads[i].Workload, prepared.PodValue(policy.WorkloadID(i)))
	}
	for i := range w.GPUBudgets {
		t.addBudget(&w.GPUBudgets[i])
	}
	begin, metered := prepared.Span()
	t.warmup, t.from, t.to = begin, metered.From, metered.To
	t.until = begin - 1 // nothing is available yet, not even the start
	for i := range w.Markets {
		c := prepared.Prices(policy.MarketID(i))
		t.prices[i].at, t.prices[i].what = c.At, c.Price
	}
	return t
}

// Watch makes the run of cfg fill t. It must be called once, before sim.Run. The function in
// cfg.Observed is still called.
func (t *Timeline) Watch(cfg *sim.Config) {
	w := &observer{t: t, prepared: cfg.Prepared, short: make([]bool, len(t.workloads)), next: t.warmup}
	before := cfg.Observed
	cfg.Observed = func(s *policy.Snapshot, p *policy.Plan) {
		if before != nil {
			before(s, p)
		}
		w.decided(s, p)
	}
	cfg.Observer = w
}

// Finish marks the run as ended. result and err are the results of sim.Run.
func (t *Timeline) Finish(result *sim.Result, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result, t.err, t.ended = result, err, true
}

// An observer fills a timeline. It is the sim.RunObserver of one run.
type observer struct {
	t        *Timeline
	prepared *sim.Prepared

	// short reports which workloads have fewer ready pods than required. next is the next time at
	// which costs are due. taken is the node that was reclaimed last.
	short []bool
	next  policy.Time
	taken string

	// hasDecided reports whether the policy decided at the current instant, which has not settled
	// yet.
	hasDecided bool
}

// Happened implements sim.RunObserver.
func (w *observer) Happened(e sim.Entry) {
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	add := func(kind Kind, subject, object string, amount int64) { t.addEvent(e.At, kind, subject, object, amount) }
	switch e.Kind {
	case "launch":
		add(Launched, e.Subject, e.Object, e.Amount)
	case "refused":
		add(Refused, e.Subject, "", 0)
	case "initialized":
		add(Joined, e.Subject, "", 0)
	case "notice":
		add(Noticed, e.Subject, "", e.Amount)
	case "recommended":
		add(Recommended, e.Subject, "", 0)
	case "reclaimed":
		w.taken = e.Subject
		add(Reclaimed, e.Subject, e.Object, 0)
	case "outbid":
		add(Outbid, e.Subject, e.Object, e.Amount)
	case "draining":
		add(Draining, e.Subject, "", e.Amount)
	case "undrained":
		add(Undrained, e.Subject, "", 0)
	case "deleted":
		add(Deleted, e.Subject, "", 0)
	case "evicted":
		add(PodEvicted, e.Object, ownerOf(e.Subject), 0)
	case "lost":
		add(PodLost, w.taken, ownerOf(e.Subject), 0)
	case "replicas":
		add(ReplicasChanged, e.Subject, "", e.Amount)
	case "job-done":
		add(JobDone, e.Subject, "", 0)
	case "job-missed":
		add(JobMissed, e.Subject, "", e.Amount)
	case "fault":
		add(pick(e.Amount&1 == 1, FaultBegan, FaultEnded), faultNames[e.Amount>>1],
			strings.Trim(e.Subject+" "+e.Object, " "), 0)
	case "gate":
		add(pick(e.Amount == 1, GateClosed, GateOpened), e.Subject, "", 0)
	case "paused":
		add(pick(e.Amount == 1, Paused, Resumed), e.Subject, e.Object, 0)
	}
}

// ownerOf returns the workload of a simulated pod. The name of a pod is that of its workload and a
// number.
func ownerOf(pod string) string {
	if i := strings.LastIndexByte(pod, '-'); i > 0 {
		return pod[:i]
	}
	return pod
}

// decided adds a step of the policy.
func (w *observer) decided(s *policy.Snapshot, p *policy.Plan) {
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range s.Markets {
		t.hazards[i].add(s.Now, hazardOf(&s.Markets[i]))
	}
	t.addDecision(s, p)
	w.hasDecided = true
}

// Settled implements sim.RunObserver.
func (w *observer) Settled(m *sim.Moment) {
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range m.Nodes() {
		for len(t.nodes) <= int(id) {
			t.nodes = append(t.nodes, history[nodeState]{})
		}
		s := nodeState{}
		if n, requested, pods, ok := m.Node(id); ok {
			s = t.stateOf(n, int32(n.Pool), int32(n.Market), requested, pods)
		}
		t.nodes[id].add(m.Now, s)
	}
	turned := false
	for _, id := range m.Workloads() {
		s := m.Workload(id)
		t.work[id].add(m.Now, Workload(s))
		if short := s.Ready < s.Required; short != w.short[id] {
			w.short[id], turned = short, true
			t.addEvent(m.Now, pick(short, OutageBegan, OutageEnded), t.workloads[id].Name, "", int64(s.Required-s.Ready))
		}
	}
	for i := range m.Budgets() {
		t.ledgers[i].add(m.Now, budgetOf(m.Budget(i)))
	}
	if w.hasDecided {
		w.settleLosses(m)
	}
	c := m.Counts()
	t.counts.add(m.Now, countsOf(&c))
	w.settleCosts(m, turned)
}

// settleLosses adds the loss budgets after a decision.
func (w *observer) settleLosses(m *sim.Moment) {
	t := w.t
	w.hasDecided = false
	var sum LossBudget
	for i := range t.pools {
		b, kept := m.LossBudget(policy.PoolID(i))
		t.addLoss(m.Now, i, &b, kept, &sum)
	}
	t.losses.add(m.Now, sum)
}

// addLoss adds the loss budget of a pool at an instant to sum. It adds an event if the budget of
// the pool becomes used up or available again.
func (t *Timeline) addLoss(at policy.Time, pool int, b *policy.LossBudget, kept bool, sum *LossBudget) {
	usedUp := kept && b.Away
	if kept {
		sum.Pools++
		sum.Left += policy.Dollars(max(0, b.Left))
	}
	if usedUp {
		sum.UsedUp++
	}
	if begun := len(t.losses.at) > 0; begun && usedUp != t.usedUp[pool] {
		t.addEvent(at, pick(usedUp, LossBudgetUsedUp, LossBudgetRestored), t.pools[pool], "", 0)
	}
	t.usedUp[pool] = usedUp
}

// settleCosts computes costs when they are due: at the multiples of costStep before the next event,
// and when an outage starts or ends.
func (w *observer) settleCosts(m *sim.Moment, turned bool) {
	t, last := w.t, m.Now == m.Next
	if turned || last {
		s := m.Costs(m.Now)
		t.addCosts(m.Now, costsOf(&s))
		t.until = m.Now
	}
	for ; w.next < m.Next; w.next += costStep {
		s := m.Costs(w.next)
		t.addCosts(w.next, costsOf(&s))
		t.until = w.next
	}
}

func budgetOf(ledger *policy.BudgetMemory, closed bool) Budget {
	b := Budget{Closed: closed}
	if ledger != nil {
		b.GPUHours, b.Dollars, b.Spent = float64(ledger.Used)/3.6e9, ledger.Cost, ledger.Over != 0
	}
	return b
}
