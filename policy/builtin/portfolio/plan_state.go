package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A planState is the state of one pool, and the decisions for it, while a plan is made. Each part
// reads only the parts that it is given.
type planState struct {
	*poolContext
	ledger        *ledger
	perPod        *podLosses
	demand        *demand
	concentration *concentration
	reclaims      *reclaims
	jobs          *jobs
	losses        *poolLosses
	prices        *prices
	choice        *shareChoice
	waiting       *waiting
	steering      *steering
	refusals      *refusals
}

// newPlanState reads the state of the pool and chooses its target share.
func newPlanState(e *Policy, s *policy.Snapshot, p *policy.Pool, plan *policy.Plan, m policy.PoolMemory) *planState {
	x := &poolContext{e: e, s: s, pool: p, out: plan, memory: m, kept: &e.pools[p.ID]}
	progress := readProgress(x)
	ledger := readLedger(x, progress.probeFirst())
	perPod := readPodLosses(x, progress)
	demand := readDemand(x, perPod)
	reclaims := readReclaims(x)
	jobs := readJobs(progress, perPod, reclaims)
	losses := readPoolLosses(demand, jobs)
	budget := readLossBudget(demand, losses)
	byNode := pricesByNode(demand, ledger, losses, reclaims)
	choice := readShare(byNode, losses, jobs, reclaims, budget)
	d := &planState{
		poolContext: x, ledger: ledger, perPod: perPod, demand: demand, concentration: readConcentration(x), reclaims: reclaims,
		jobs: jobs, losses: losses, prices: byNode.byPod(), choice: choice, waiting: readWaiting(jobs, choice.share),
		refusals: &refusals{poolContext: x},
	}
	d.steering = &steering{planState: d}
	return d
}

// decide plans the actions for the pool. The states of all pools must have been read before.
func (d *planState) decide() {
	d.steering.steer()
	defer d.refusals.addTo()
	if !d.consolidates() {
		d.balance()
		return
	}
	d.replace()
	d.balance()
	d.repack()
	order := deletionOrder{d.poolContext, d.prices, d.perPod, d.choice.share}
	order.plan()
}

// keepWithin checks the launches and drains of the pool from the given indexes on. It removes those
// that add more risk than they can save from plan, and adds a hold for each node that stays for
// that reason.
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
	if slices.ContainsFunc(kept[:drains],
		func(x policy.Drain) bool { n := &d.s.Nodes[x.Node]; return n.Pool == d.pool.ID && n.ReclaimAt == 0 }) {
		plan.Launches, plan.Drains = others, kept
		plan.Holds = append(plan.Holds, policy.Hold{Pool: d.pool.ID, Node: policy.None, Why: policy.Why{
			Reason: policy.ReasonInProgress, Text: "nodes that could be released may be needed for the pods of nodes that are being drained",
		}})
		return
	}
	bought, going, _ = d.within(bought, going)
	plan.Launches, plan.Drains = slices.Concat(others, bought), slices.Concat(kept, going)
	d.refusals.addTo()
}

// A poolContext is one pool while a plan is made, and the plan. All parts of a planState share it,
// so that each sees what the others have planned and remembered.
type poolContext struct {
	e      *Policy
	s      *policy.Snapshot
	pool   *policy.Pool
	out    *policy.Plan
	memory policy.PoolMemory

	// changed reports whether the memory has changed.
	changed bool

	kept *poolScratch // of the pool

	// sp is the snapshot with tentative placements. It is nil until it is needed, and again after
	// each step whose placements do not apply to the next one.
	sp *placement.Space
}

// A poolScratch is memory of one pool that is reused from decision to decision.
type poolScratch struct {
	losses podLosses
	tags   placement.Tags
}

// space returns the nodes and their pods, with tentative placements.
func (x *poolContext) space() *placement.Space {
	if x.sp == nil {
		x.e.space.Load(x.s)
		x.sp = &x.e.space
	}
	return x.sp
}

// consolidates reports whether this policy, and not the provisioner, moves pods in the pool to save
// money.
func (x *poolContext) consolidates() bool {
	return !x.e.cfg.Fixed && x.pool.Provisioner == policy.ProvisionerKarpenter && x.pool.Levers.Launch
}

// leaves reports whether the plan drains node n.
func (x *poolContext) leaves(n policy.NodeID) bool {
	for i := range x.out.Drains {
		if x.out.Drains[i].Node == n {
			return true
		}
	}
	return false
}

// holds reports whether p counts as a pod of the pool. A pod without a node counts if it is
// nominated for a node of the pool, or if there is only one pool.
func (x *poolContext) holds(p *policy.Pod) bool {
	if p.Phase == policy.PodGone || p.Phase == policy.PodTerminating {
		return false
	}
	at := p.Node
	if at < 0 {
		at = p.Nominated
	}
	return at >= 0 && x.s.Nodes[at].Pool == x.pool.ID || at < 0 && len(x.s.Pools) == 1
}
