package sim

import (
	"github.com/spotter-dev/spotter/policy"
)

// allocate makes the parts, so that they can know of each other.
func (r *run) allocate() {
	r.cluster = cluster{
		space: r.space, sched: r.sched, nodes: new(nodes), launches: new(launches), reclaims: new(reclaims), removals: new(removals), pods: new(pods), queue: new(schedulingQueue), workloads: new(workloads),
		pdbs: new(disruptionBudgets), jobs: new(jobs), gangs: new(gangs), serving: new(serving), budgets: new(gpuBudgets), drains: new(drains)}
	r.provisioners = provisioners{karpenter: new(karpenterProvisioner), consolidation: new(consolidation), autoscaler: new(autoscaler), groups: new(scalingGroups), scaleDown: new(scaleDown)}
	r.pools = new(pools)
	r.bills = new(bills)
	r.observer = new(observer)
	r.decider = new(decider)
	r.faults = new(faults)
	r.actuator = new(actuator)
	r.checker = new(checker)
	r.watch = new(watch)
}

// wireCluster gives the parts of the cluster those that they work with.
func (r *run) wireCluster() {
	e := r.environment
	*r.nodes = nodes{environment: e, consolidation: r.consolidation, observer: r.observer, pools: r.pools, watch: r.watch}
	*r.launches = launches{environment: e, autoscaler: r.autoscaler, bills: r.bills, consolidation: r.consolidation, drains: r.drains, faults: r.faults,
		groups: r.groups, karpenter: r.karpenter, market: r.market, nodes: r.nodes, pods: r.pods, pools: r.pools, queue: r.queue, reclaims: r.reclaims, sched: r.sched,
		space: r.space, workloads: r.workloads, tokens: make(map[string]policy.NodeID)}
	*r.reclaims = reclaims{environment: e, decider: r.decider, karpenter: r.karpenter, market: r.market, nodes: r.nodes, pods: r.pods, pools: r.pools,
		removals: r.removals, space: r.space}
	*r.removals = removals{environment: e, bills: r.bills, consolidation: r.consolidation, decider: r.decider, drains: r.drains, groups: r.groups,
		karpenter: r.karpenter, launches: r.launches, market: r.market, nodes: r.nodes, pods: r.pods, pools: r.pools, queue: r.queue,
		reclaims: r.reclaims, sched: r.sched, serving: r.serving, space: r.space, watch: r.watch}
	*r.pods = pods{environment: e, autoscaler: r.autoscaler, bills: r.bills, budgets: r.budgets, consolidation: r.consolidation, drains: r.drains, faults: r.faults,
		gangs: r.gangs, jobs: r.jobs, nodes: r.nodes, observer: r.observer, pdbs: r.pdbs, queue: r.queue, sched: r.sched, serving: r.serving,
		space: r.space, watch: r.watch, workloads: r.workloads}
	*r.queue = schedulingQueue{environment: e, consolidation: r.consolidation, decider: r.decider, karpenter: r.karpenter, nodes: r.nodes, pdbs: r.pdbs,
		pods: r.pods, sched: r.sched, serving: r.serving, space: r.space}
	*r.workloads = workloads{environment: e, budgets: r.budgets, jobs: r.jobs, observer: r.observer, pdbs: r.pdbs, pods: r.pods, queue: r.queue,
		serving: r.serving, watch: r.watch}
	*r.pdbs = disruptionBudgets{environment: e, observer: r.observer, serving: r.serving, workloads: r.workloads}
	*r.jobs = jobs{environment: e, budgets: r.budgets, gangs: r.gangs, pods: r.pods, queue: r.queue, serving: r.serving, workloads: r.workloads}
	*r.gangs = gangs{environment: e, budgets: r.budgets, jobs: r.jobs, pods: r.pods, queue: r.queue, workloads: r.workloads}
	*r.serving = serving{environment: e, nodes: r.nodes, pods: r.pods, queue: r.queue, space: r.space, watch: r.watch, workloads: r.workloads}
	*r.budgets = gpuBudgets{environment: e, checker: r.checker, decider: r.decider, jobs: r.jobs, nodes: r.nodes, pdbs: r.pdbs, pods: r.pods,
		serving: r.serving, workloads: r.workloads}
	*r.drains = drains{environment: e, autoscaler: r.autoscaler, checker: r.checker, consolidation: r.consolidation, launches: r.launches, nodes: r.nodes, removals: r.removals, pdbs: r.pdbs,
		pods: r.pods, pools: r.pools, queue: r.queue, scaleDown: r.scaleDown, sched: r.sched, serving: r.serving, space: r.space}
}

// wireProvisioners does so with those that buy nodes, and what pools may buy.
func (r *run) wireProvisioners() {
	e, settings := r.environment, r.cfg.Autoscaler
	if settings == nil {
		defaults := DefaultAutoscaler()
		settings = &defaults
	}
	*r.karpenter = karpenterProvisioner{environment: e, autoscaler: r.autoscaler, consolidation: r.consolidation, drains: r.drains, market: r.market,
		nodes: r.nodes, pods: r.pods, pools: r.pools, queue: r.queue, serving: r.serving, space: r.space}
	*r.consolidation = consolidation{environment: e, checker: r.checker, drains: r.drains, karpenter: r.karpenter, market: r.market, nodes: r.nodes,
		pdbs: r.pdbs, pods: r.pods, pools: r.pools, queue: r.queue, space: r.space,
		tracker: nodeTracker{environment: e, nodes: r.nodes, pools: r.pools}}
	*r.autoscaler = autoscaler{environment: e, groups: r.groups, market: r.market, launches: r.launches, nodes: r.nodes, removals: r.removals, pods: r.pods, pools: r.pools, queue: r.queue,
		scaleDown: r.scaleDown, space: r.space, Autoscaler: settings}
	*r.groups = scalingGroups{environment: e, autoscaler: r.autoscaler, drains: r.drains, karpenter: r.karpenter, market: r.market, launches: r.launches, nodes: r.nodes,
		pools: r.pools, serving: r.serving, scaleDown: r.scaleDown, Autoscaler: settings}
	*r.scaleDown = scaleDown{environment: e, autoscaler: r.autoscaler, drains: r.drains, groups: r.groups, nodes: r.nodes, pdbs: r.pdbs, pools: r.pools,
		sched: r.sched, space: r.space, Autoscaler: settings}
	*r.pools = pools{environment: e, consolidation: r.consolidation, decider: r.decider, market: r.market, launches: r.launches, nodes: r.nodes}
	*r.bills = bills{environment: e, checker: r.checker, nodes: r.nodes}
}

// wireDriver does so with those that let the policy decide and watch the run.
func (r *run) wireDriver() {
	e := r.environment
	*r.observer = observer{environment: e, bills: r.bills, budgets: r.budgets, jobs: r.jobs, market: r.market, nodes: r.nodes, pdbs: r.pdbs,
		pods: r.pods, pools: r.pools, serving: r.serving, workloads: r.workloads}
	*r.decider = decider{environment: e, actuator: r.actuator, budgets: r.budgets, faults: r.faults, observer: r.observer, warned: make(map[string]bool)}
	*r.faults = faults{environment: e, consolidation: r.consolidation, decider: r.decider, karpenter: r.karpenter, slowFactor: 1}
	*r.actuator = actuator{environment: e, autoscaler: r.autoscaler, consolidation: r.consolidation, drains: r.drains, groups: r.groups,
		karpenter: r.karpenter, market: r.market, launches: r.launches, nodes: r.nodes, pods: r.pods, pools: r.pools, queue: r.queue, serving: r.serving, space: r.space}
	*r.checker = checker{environment: e, bills: r.bills, consolidation: r.consolidation, gangs: r.gangs, groups: r.groups, jobs: r.jobs, launches: r.launches, nodes: r.nodes,
		pdbs: r.pdbs, pods: r.pods, pools: r.pools, serving: r.serving, space: r.space, workloads: r.workloads}
	*r.watch = watch{environment: e, bills: r.bills, budgets: r.budgets, decider: r.decider, nodes: r.nodes, serving: r.serving, space: r.space,
		workloads: r.workloads, sampleAt: e.window.From}
}
