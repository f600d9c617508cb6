package cluster

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/result"
)

// cause returns the cause for which the workload is now below its required level. Pods of recent
// growth that are not yet desired do not count.
func (g *Readiness) cause() result.OutageCause {
	missing := g.Missing
	early := max(0, g.wanted-g.desired)
	for _, c := range [...]result.OutageCause{result.CauseGrowth, result.CauseRefused} {
		n := min(early, missing[c])
		missing[c], early = missing[c]-n, early-n
	}
	taken, refused := missing[result.CauseReclaim], missing[result.CauseRefused]
	if g.ready+taken+refused >= g.required && taken+refused > 0 {
		if taken >= refused {
			return result.CauseReclaim
		}
		return result.CauseRefused
	}
	most := result.CauseGrowth // the default: a StatefulSet may not have created all pods yet
	for c := result.CauseGrowth; c > result.CauseRefused; c-- {
		if n := missing[c]; n > 0 && n >= missing[most] {
			most = c
		}
	}
	return most
}

// Serving tracks which pods of each workload serve and why others are missing.
type Serving struct {
	*Cluster

	Of         []Readiness
	readyTimes []int64 // milliseconds from creation to ready
}

// The pods that a workload misses are counted by cause. A pod that ends for a cause outside its
// workload is missing until its replacement is ready, and an additional pod until it is ready for
// the first time.

// serves reports whether pods of w must be ready at all times.
func (sv *Serving) serves(w policy.WorkloadID) bool {
	kind := sv.Scenario.Workloads[w].Kind
	return kind != policy.KindJob && kind != policy.KindDaemonSet && sv.needed(w)
}

// needed reports whether pods of w count as missing when they do not run. Expendable pods and pods
// that can run nowhere do not.
func (sv *Serving) needed(w policy.WorkloadID) bool {
	return !sv.Scenario.Workloads[w].Expendable && !sv.Prepared.NeverRuns(w)
}

// setRequired computes the required number of pods from the desired one: by the strictest matching
// PodDisruptionBudget, or without one, by allowing a quarter (at least one) to be missing. The time
// until now is accounted with the previous number.
func (sv *Serving) setRequired(w policy.WorkloadID) {
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	required := int32(0)
	if sv.needed(w) {
		required = sv.admitted(w, sv.requiredOf(w, g.desired))
	}
	if _, fewer := sv.Workloads.rolling(w); fewer > 0 { // a rollout accepts fewer ready pods
		required = min(required, max(0, g.wanted-fewer))
	}
	g.required = required
	sv.ServingChanged.Publish(w)
}

// outages returns the closed incidents of workload w in g.
func (sv *Serving) outages(w policy.WorkloadID, g *Readiness) result.Outages {
	o := g.outages
	if o.Incidents > 0 {
		o.Longest.Workload = sv.Scenario.Workloads[w].Name
	}
	if len(sv.Scenario.Templates[w].PDBs) == 0 {
		o.WithoutPDB = o.Causes[result.CauseProvisioner].Outage
	}
	return o
}

// requiredOf returns how many pods of w must be ready when desired pods are desired.
func (sv *Serving) requiredOf(w policy.WorkloadID, desired int32) int32 {
	pdbs := sv.Scenario.Templates[w].PDBs
	if len(pdbs) == 0 {
		required := desired - max(1, desired/4)
		if desired >= 1 {
			required = max(required, 1)
		}
		return max(required, 0)
	}
	required := int32(0)
	for _, p := range pdbs {
		required = max(required, sv.Scenario.PDBs[p].Required(desired))
	}
	return min(required, desired)
}

// missed records that pod id, which is about to end, is missing for cause c. Only the first cause
// of a pod counts. For a pod that is not ready, c replaces the cause for which it was created.
func (sv *Serving) missed(id policy.PodID, c result.OutageCause) {
	p, x := &sv.Pods.All[id], &sv.Pods.State[id]
	w := sv.Scenario.Templates[p.Template].Workload
	if x.taken || p.Phase == policy.PodTerminating || p.Phase == policy.PodGone || !sv.serves(w) {
		return
	}
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	if p.Phase != policy.PodReady {
		g.Missing[x.cause]--
	}
	g.Missing[c]++
	x.cause, x.taken = c, true
}

// leave records that pod id, which was in the given phase, no longer counts for its workload.
func (sv *Serving) leave(id policy.PodID, was policy.PodPhase) {
	x := &sv.Pods.State[id]
	w := sv.Scenario.Templates[sv.Pods.All[id].Template].Workload
	if !sv.serves(w) {
		return
	}
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	switch {
	case x.taken:
		sv.Workloads.State[w].owed[x.cause]++
		sv.forgetOwed(w)
	case was != policy.PodReady:
		g.Missing[x.cause]--
	}
}

// come records that pod id was created: as the replacement of a missing pod if there is one,
// otherwise as growth.
func (sv *Serving) come(id policy.PodID) {
	x, w := &sv.Pods.State[id], sv.Scenario.Templates[sv.Pods.All[id].Template].Workload
	if !sv.serves(w) {
		return
	}
	for c := range sv.Workloads.State[w].owed {
		if sv.Workloads.State[w].owed[c] > 0 {
			sv.Workloads.State[w].owed[c]--
			x.cause = result.OutageCause(c)
			return
		}
	}
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	x.cause = result.CauseGrowth
	g.Missing[result.CauseGrowth]++
}

// filled records that pod id is no longer missing.
func (sv *Serving) filled(id policy.PodID) {
	w := sv.Scenario.Templates[sv.Pods.All[id].Template].Workload
	if !sv.serves(w) {
		return
	}
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	g.Missing[sv.Pods.State[id].cause]--
}

// forgetOwed drops owed replacements until w misses no more pods than it wants.
func (sv *Serving) forgetOwed(w policy.WorkloadID) {
	ws, g := &sv.Workloads.State[w], &sv.Of[w]
	owed := int32(0)
	for _, n := range ws.owed {
		owed += n
	}
	for c := result.OutageCauses - 1; c >= 0; c-- {
		if drop := min(ws.owed[c], ws.Active+owed-g.wanted); drop > 0 {
			ws.owed[c] -= drop
			g.Missing[c] -= drop
			owed -= drop
		}
	}
}

// RefusedSpot records that pod id waits because a Spot launch for it was refused.
func (sv *Serving) RefusedSpot(id policy.PodID) {
	x, w := &sv.Pods.State[id], sv.Scenario.Templates[sv.Pods.All[id].Template].Workload
	if x.cause != result.CauseGrowth || !sv.serves(w) {
		return
	}
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	g.Missing[result.CauseGrowth]--
	g.Missing[result.CauseRefused]++
	x.cause = result.CauseRefused
}

// RefusedMarkets calls RefusedSpot for every pending pod without a nomination that fits a node of
// one of the given Spot markets of pool.
func (sv *Serving) RefusedMarkets(pool policy.PoolID, markets []policy.MarketID) {
	var offers []placement.Offer
	for _, o := range sv.Prepared.Offers[pool] {
		for _, m := range markets {
			if o.Market == m && sv.Scenario.Markets[m].Capacity == policy.Spot {
				offers = append(offers, o)
			}
		}
	}
	if len(offers) == 0 {
		return
	}
	asked := make(map[policy.TemplateID]bool)
	for _, id := range sv.Queue.Pending {
		p := &sv.Pods.All[id]
		if p.Phase != policy.PodPending || p.Gated || p.Nominated != policy.None ||
			sv.Pods.State[id].cause != result.CauseGrowth {
			continue
		}
		fits, known := asked[p.Template]
		if !known {
			fits = len(placement.Provision(sv.Space, []policy.Pod{*p}, offers).Bins) > 0
			asked[p.Template] = fits
		}
		if fits {
			sv.RefusedSpot(id)
		}
	}
}

// lossOf returns the cause for which the provider takes node id. An on-demand node is lost only to
// a zone outage that the scenario defines, which takes Spot nodes as well.
func (sv *Serving) lossOf(id policy.NodeID) result.OutageCause {
	if !sv.Nodes.State[id].Spot {
		return result.CauseFault
	}
	m := &sv.Scenario.Markets[sv.Nodes.All[id].Market]
	for i := range sv.Scenario.Faults {
		f := &sv.Scenario.Faults[i]
		lasts := max(f.Duration, weather.DefaultParams().TakeWindow)
		if f.Kind == scenarios.FaultZoneOutage && f.At <= sv.Clock.Now && sv.Clock.Now <= f.At.Add(lasts) &&
			(f.Zone == "" || f.Zone == sv.Scenario.Zones[m.Zone]) && (f.Type == "" || f.Type == sv.Scenario.Types[m.Type].Name) {
			return result.CauseFault
		}
	}
	return result.CauseReclaim
}

// EvictionOf returns the cause for which a drain by the given actor evicts a pod from node id.
// forced reports whether the provider is taking the node.
func (sv *Serving) EvictionOf(id policy.NodeID, forced bool, by policy.Actor) result.OutageCause {
	switch {
	case forced:
		return sv.lossOf(id)
	case by == policy.ActorUs:
		return result.CauseMove
	}
	return result.CauseProvisioner
}

// Spare reports whether the workload of a pod can do without it: enough of its other pods are ready
// for the number that it wants. Pods of jobs, pods that are not ready, and the only wanted pod of a
// workload are always spared.
func (sv *Serving) Spare(id policy.PodID) bool {
	p := &sv.Pods.All[id]
	t := &sv.Scenario.Templates[p.Template]
	if p.Phase != policy.PodReady || t.Workload < 0 || sv.Scenario.Workloads[t.Workload].Job != nil {
		return true
	}
	g := &sv.Of[t.Workload]
	return g.wanted <= 1 || g.seen-1 >= sv.requiredOf(t.Workload, g.wanted)
}

// A WorkloadState contains the pod counts of a workload.
type WorkloadState struct {
	// Desired counts growth only after the ready grace; for a job or DaemonSet it is the number of
	// active pods. Required is the part of Desired that must be ready, Ready the number of pods
	// that serve, and OnSpot the number of these on Spot nodes.
	Desired, Required, Ready, OnSpot int32
}

// State returns the pod counts of a workload.
func (sv *Serving) State(id policy.WorkloadID) WorkloadState {
	g := &sv.Of[id]
	s := WorkloadState{Desired: g.desired, Required: g.required, Ready: g.ready, OnSpot: g.readySpot}
	switch sv.Scenario.Workloads[id].Kind {
	case policy.KindJob, policy.KindDaemonSet:
		s.Desired = sv.Workloads.State[id].Active
	}
	return s
}
