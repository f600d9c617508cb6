package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A planState is what is known of one pool, and decided for it, while a plan is made. Its
// parts are read in the order of look, each after those that it refers to.
type planState struct {
	poolContext
	ledger        ledger
	demand        demand
	concentration concentration
	reclaims      reclaims
	jobs          jobs
	losses        poolLosses
	budget        lossBudget
	prices        prices
	choice        shareChoice
	waiting       waiting
	steering      steering
	refusals      refusals
}

// newPlanState connects the parts. None of them is read yet.
func newPlanState(e *Policy, s *policy.Snapshot, p *policy.Pool, plan *policy.Plan, m policy.PoolMemory) *planState {
	d := &planState{poolContext: poolContext{e: e, s: s, pool: p, out: plan, memory: m}}
	x := &d.poolContext
	d.demand = demand{poolContext: x}
	d.concentration = newConcentration(x)
	d.reclaims = reclaims{poolContext: x}
	d.jobs = jobs{poolContext: x, reclaims: &d.reclaims, demand: &d.demand}
	d.ledger = ledger{poolContext: x}
	d.losses = poolLosses{poolContext: x, demand: &d.demand, jobs: &d.jobs}
	d.budget = lossBudget{poolContext: x, demand: &d.demand, losses: &d.losses}
	d.prices = prices{poolContext: x, demand: &d.demand, ledger: &d.ledger}
	d.choice = shareChoice{poolContext: x, prices: &d.prices, losses: &d.losses, reclaims: &d.reclaims, budget: &d.budget}
	d.waiting = waiting{poolContext: x, jobs: &d.jobs, reclaims: &d.reclaims, choice: &d.choice}
	d.steering = steering{
		poolContext: x, prices: &d.prices, demand: &d.demand, concentration: &d.concentration,
		reclaims: &d.reclaims, losses: &d.losses, choice: &d.choice, waiting: &d.waiting,
	}
	d.refusals = refusals{poolContext: x}
	return d
}

// look reads what the pool is and finds the share that it is to have.
func (d *planState) look() {
	d.jobs.readProgress()
	d.jobs.forgetRefused()
	d.ledger.read(d.jobs.probeFirst())
	d.readLosses()
	d.demand.read()
	d.demand.readPeak()
	d.concentration.read(&d.e.nodes)
	d.reclaims.readHazard()
	d.reclaims.readShocks()
	d.losses.read()
	d.jobs.read()
	d.budget.read()
	d.losses.perNode = d.losses.ofNode()
	d.prices.readAt(d.losses.perNode, d.reclaims.hazard)
	d.prices.rank()
	d.choice.choose()
	d.waiting.read()
	d.prices.read()
	d.prices.rankAgain()
}

// readAgain reads what pods are worth and nodes cost in this pool, for which all pools use
// the same memory.
func (d *planState) readAgain() {
	if len(d.s.Pools) > 1 {
		d.readLosses()
	}
	d.prices.read()
}

// readLosses reads what the loss of a pod costs in this pool.
func (d *planState) readLosses() {
	d.e.losses.read(d.s, d.pool)
	d.jobs.readRedo()
}

// decide plans what is done in the pool. All pools have been looked at before.
func (d *planState) decide() {
	d.readAgain()
	d.steering.steer()
	defer d.refusals.addTo()
	if !d.consolidates() {
		d.balance()
		return
	}
	d.replace()
	d.balance()
	d.repack()
	order := deletionOrder{&d.poolContext, &d.prices, d.choice.share}
	order.plan()
}

// keepWithin takes out of plan the launches and drains of the pool that put more at risk
// than they can save, of those from the given ones on, and adds a hold for each node that
// stays for it.
func (d *planState) keepWithin(plan *policy.Plan, launches, drains int) {
	d.out, d.refusals.holds = plan, nil
	var bought []policy.Launch
	var going []policy.Drain
	others := plan.Launches[:launches:launches]
	for _, l := range plan.Launches[launches:] {
		if l.Pool == d.pool.ID {
			bought = append(bought, l)
		} else {
			others = append(others, l)
		}
	}
	kept := plan.Drains[:drains:drains]
	for _, x := range plan.Drains[drains:] {
		if d.s.Nodes[x.Node].Pool == d.pool.ID {
			going = append(going, x)
		} else {
			kept = append(kept, x)
		}
	}
	if len(going) == 0 {
		return
	}
	if slices.ContainsFunc(kept[:drains], func(x policy.Drain) bool { n := &d.s.Nodes[x.Node]; return n.Pool == d.pool.ID && n.ReclaimAt == 0 }) {
		plan.Launches, plan.Drains = others, kept
		plan.Holds = append(plan.Holds, policy.Hold{Pool: d.pool.ID, Node: policy.None, Why: policy.Why{
			Reason: policy.ReasonInProgress, Text: "nodes that could be released may be needed for the pods of nodes that are being drained",
		}})
		return
	}
	d.readAgain()
	bought, going, _ = d.within(bought, going)
	plan.Launches, plan.Drains = slices.Concat(others, bought), slices.Concat(kept, going)
	d.refusals.addTo()
}
