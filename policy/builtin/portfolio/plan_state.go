package portfolio

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A planState is what is known of one pool, and decided for it, while a plan is made.
type planState struct {
	e      *Policy
	s      *policy.Snapshot
	pool   *policy.Pool
	out    *policy.Plan
	memory policy.PoolMemory
	share  float64

	// why accounts for the share.
	why policy.Why

	// changed says that the memory is not what it was.
	changed bool

	// lossAll is what the sudden loss of every pod would cost, in dollars.
	lossAll float64

	// demand is what the pods of the pool ask for, DaemonSets' left out.
	demand policy.Resources

	// daemons is what the pods of DaemonSets ask for on a node, in the mean.
	daemons policy.Resources

	// pods counts those of the pool by template, DaemonSets' left out.
	pods []int32

	// services are the workloads with pods here, and serviceOf those of the
	// templates, or None.
	services  []service
	serviceOf []int32

	// anchors tells the templates of services that can spare no pod.
	anchors []bool

	// lossPerNode is what the loss of one node costs; see nodeLoss.
	lossPerNode float64

	// jobsAll is what the loss of every pod of a job would cost, in dollars, one
	// node at a time; jobs is the same of each pod once, by the size of its gang.
	jobsAll float64
	jobs    []gangLosses

	// saving is the part of its price on demand by which the demand costs less on
	// spot.
	saving float64

	// hazard is of reclaims per node-hour in the pool's spot markets together, and
	// met how many of them the pool remembers.
	hazard, met float64

	concentration concentration

	// held counts the cluster's nodes by market, those on their way in and out too.
	held []int

	// sp is made when it is first needed.
	sp *placement.Space

	// refused holds the nodes that stay for the sake of a limit.
	refused []policy.Hold

	// ranked are the markets of the pool that are open, best first within each
	// capacity type.
	ranked []ranked

	// worths are what the resources sold are worth at the costs of now, on demand
	// and on spot, as far as that was asked.
	worths [2]evaluated
}

func newPlanState(e *Policy, s *policy.Snapshot, p *policy.Pool, plan *policy.Plan, m policy.PoolMemory) *planState {
	return &planState{e: e, s: s, pool: p, out: plan, memory: m}
}

// look reads what the pool is and finds the share that it is to have.
func (d *planState) look() {
	d.readLedger()
	d.readLosses()
	d.readDemand()
	d.readConcentration()
	d.readHazard()
	d.readShocks()
	d.readServices()
	d.readJobs()
	d.lossPerNode = d.nodeLoss()
	d.priceAt(d.lossPerNode, d.hazard)
	d.rank()
	d.choose()
	d.price()
	d.rank()
}

func (d *planState) decide() {
	d.price() // of this pool again: the costs are shared
	d.steer()
	defer d.addRefused()
	if !d.consolidates() {
		d.balance()
		return
	}
	d.replace()
	d.balance()
	d.repack()
	d.order()
}

// consolidates reports whether the policy moves pods in the pool to save money, and the
// provisioner does not.
func (d *planState) consolidates() bool {
	return !d.e.cfg.Fixed && d.pool.Provisioner == policy.ProvisionerKarpenter && d.pool.Levers.Launch
}

// shiftsMax is how often other nodes are sought for the share when none of those
// found may go.
const shiftsMax = 4

// balance moves the pool towards its share where it stands away from it.
func (d *planState) balance() {
	if !placement.BalanceOf(d.s, d.pool.ID).Off(d.share) {
		return
	}
	if d.share >= 1 && d.consolidates() {
		return // to replace what is dear does the same, and weighs it
	}
	rest := d.resting()
	var launches []policy.Launch
	var drains []policy.Drain
	var holds []policy.Hold
	for range shiftsMax {
		var stay []policy.NodeID
		moved := len(d.e.moved)
		launches, drains, holds = placement.Rebalance(d.s, nil, placement.RebalanceOptions{
			Pool: d.pool.ID, Share: d.share, DrainsMax: d.s.Disruptable(d.pool.ID, policy.Underutilized),
			Reason: policy.ReasonShare, Text: "towards the wanted spot share",
			Backoff: func(node string) bool { return d.memory.BackedOff(node, d.s.Now) || slices.Contains(rest, node) },
		})
		if at := placement.BalanceOf(d.s, d.pool.ID); float64(at.Spot) < float64(d.share*float64(at.Total)) {
			break // a share is held as stated, and one that was chosen counts what can be lost
		}
		launches, drains, stay = d.within(launches, drains)
		if len(stay) == 0 || len(drains) > 0 {
			break
		}
		d.e.undo(moved)
		for _, n := range stay {
			rest = append(rest, d.s.Nodes[n].Name)
		}
	}
	for i := range drains {
		drains[i].Gentle = true
	}
	d.out.Launches = append(d.out.Launches, launches...)
	d.out.Drains = append(d.out.Drains, drains...)
	d.out.Holds = append(d.out.Holds, holds...)
}

// readDemand sums what the pods of the pool ask for.
func (d *planState) readDemand() {
	s := d.s
	nodes := int64(0)
	usable := make([]bool, len(s.Nodes))
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == d.pool.ID && n.Usable() {
			usable[i] = true
			nodes++
		}
	}
	daemons := make([]int32, len(s.Templates))
	d.pods = make([]int32, len(s.Templates))
	for i := range d.e.pods.all {
		p := &d.e.pods.all[i]
		switch {
		case p.phase == policy.PodGone || p.phase == policy.PodTerminating:
		case p.daemon:
			if p.bound && usable[p.at] {
				daemons[p.template]++
			}
		case p.at >= 0 && s.Nodes[p.at].Pool == d.pool.ID || p.at < 0 && len(s.Pools) == 1:
			d.pods[p.template]++
			if d.ofJob(&s.Templates[p.template]) {
				d.lossAll += d.lossOf(&s.Pods[i])
			} else {
				d.lossAll += d.e.losses[p.template]
			}
		}
	}
	for i := range s.Templates {
		r := &s.Templates[i].Requests
		d.demand = d.demand.Plus(r.Scale(int64(d.pods[i])))
		d.daemons = d.daemons.Plus(r.Scale(int64(daemons[i])))
	}
	if nodes > 0 {
		x := &d.daemons
		*x = policy.Resources{CPU: x.CPU / nodes, Memory: x.Memory / nodes, Storage: x.Storage / nodes, GPU: x.GPU / nodes}
	}
}

// lossOf returns what the sudden loss of p would cost in dollars.
func (d *planState) lossOf(p *policy.Pod) float64 {
	t := &d.s.Templates[p.Template]
	loss := d.e.losses[p.Template]
	if t.Workload >= 0 && d.s.Workloads[t.Workload].Kind == policy.KindJob && p.Phase == policy.PodReady {
		loss += d.e.values[p.Template] * d.s.Now.Sub(p.ReadySince).Hours()
	}
	return loss
}

// space returns the nodes and what runs on them.
func (d *planState) space() *placement.Space {
	if d.sp == nil {
		d.e.space.Load(d.s)
		d.sp = &d.e.space
	}
	return d.sp
}

// account returns why the pool is steered as it is, with the best market that is
// not among those bought in.
func (d *planState) account() policy.Why {
	why := d.why
	if why.Reason == "" {
		why = policy.Why{Reason: policy.ReasonConfigured, Text: fmt.Sprintf("a spot share of %.2f is stated, in the markets that cost least with their losses", d.share)}
	}
	return why
}

// steer tells the provisioner which markets to buy in, where that has changed.
func (d *planState) steer() {
	markets := d.selected()
	names := make([]string, 0, len(markets))
	for _, m := range markets {
		names = append(names, d.s.Markets[m].Name)
	}
	slices.Sort(names)
	p := d.pool
	empty := d.emptyOnly()
	same := p.Steer.Set && p.Steer.Share == d.share && d.memory.Consolidates != empty && slices.Equal(names, d.memory.Selected)
	soon := p.Steer.Set && p.Steer.Share == d.share && d.memory.Steered != 0 && d.s.Now.Sub(d.memory.Steered) < steerEvery
	if same || soon || len(markets) == 0 {
		return
	}
	st := policy.Steer{
		Pool: p.ID, Share: d.share, Exact: p.Share.Exact, Markets: markets, Fallback: p.OnDemandFallback,
		Bid: placement.Bid(d.s, p.ID), EmptyOnly: empty,
		Why: d.account(),
	}
	d.out.Steers = append(d.out.Steers, st)
	d.memory.Selected, d.memory.Steered, d.memory.Consolidates, d.changed = names, d.s.Now, !empty, true
}
