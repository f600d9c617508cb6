package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/result"
)

// GPUBudgets counts the devices that the pods of each GPU budget hold, and carries out the actions
// with which a policy enforces a budget.
type GPUBudgets struct {
	*Cluster

	All   []policy.Budget // as in every snapshot
	state []gpuBudgetState
	of    [][]int32 // by template (and so by workload), the budgets that count its pods
}

// A gpuBudgetState is what the simulator records of a budget in addition to its policy.Budget,
// within the metered window.
type gpuBudgetState struct {
	since   policy.Time // time up to which the integrals below are complete
	devices int64       // thousandths of a device that its pods hold now
	over    bool        // the policy considers it spent

	used             int64 // thousandths of a device × milliseconds
	closedMS, overMS int64
	peak             float64 // highest fraction of a quota that was used within its window
	evicted, paused  int64
}

func (gb *GPUBudgets) init() {
	gb.All = slices.Clone(gb.Scenario.GPUBudgets)
	gb.state = make([]gpuBudgetState, len(gb.All))
	gb.of = make([][]int32, len(gb.Scenario.Templates))
	gb.Jobs.suspendedBy = make([]string, len(gb.Scenario.Workloads))
	for i := range gb.All {
		gb.state[i].since = gb.Prepared.Begin
		for t := range gb.Scenario.Templates {
			if gb.All[i].Counts(&gb.Scenario.Templates[t]) > 0 {
				gb.of[t] = append(gb.of[t], int32(i))
			}
		}
	}
}

// advance completes the integrals of budget i up to now.
func (gb *GPUBudgets) advance(i int32, now policy.Time) {
	x := &gb.state[i]
	from, to := max(x.since, gb.Window.From), min(now, gb.Window.To)
	x.since = now
	if to <= from {
		return
	}
	ms := int64(to - from)
	x.used += ms * x.devices
	if gb.All[i].Closed {
		x.closedMS += ms
	}
	if x.over {
		x.overMS += ms
	}
}

// hold records that pods of template t hold a node: one more if sign is 1, one fewer if it is -1.
func (gb *GPUBudgets) hold(t policy.TemplateID, sign int64) {
	for _, i := range gb.of[t] {
		gb.advance(i, gb.Clock.Now)
		gb.state[i].devices += sign * gb.All[i].Counts(&gb.Scenario.Templates[t])
	}
}

// Note reads from the saved memory which budgets the policy considers spent, since only the policy
// keeps a ledger.
func (gb *GPUBudgets) Note(m *policy.Memory) {
	for i := range gb.All {
		b, x, seen := &gb.All[i], &gb.state[i], m.Budget(gb.All[i].Name)
		if seen == nil {
			continue
		}
		if over := seen.Over != 0; over != x.over {
			gb.advance(int32(i), gb.Clock.Now)
			x.over = over
		}
		if !gb.Metered() {
			continue
		}
		if b.HasGPUHours && b.GPUHours > 0 {
			x.peak = max(x.peak, float64(seen.Used)/3.6e9/b.GPUHours)
		}
		if b.HasDollars && b.Dollars > 0 {
			x.peak = max(x.peak, float64(seen.Cost)/float64(b.Dollars))
		}
	}
}

// shut reports whether a closed gate denies new pods of w. Like an admission policy, it denies
// their creation: no pod exists, and neither the scheduler nor a provisioner observes one.
func (gb *GPUBudgets) shut(w policy.WorkloadID) bool {
	for _, i := range gb.of[w] {
		if gb.All[i].Closed {
			return true
		}
	}
	return false
}

// The backoff of the workqueues of controllers: the first delay, which doubles with each failure,
// and the longest. Deployments and StatefulSets use client-go's default, Jobs their own.
const (
	retryFirst, retryMost       = 5 * time.Millisecond, 1000 * time.Second
	jobRetryFirst, jobRetryMost = time.Second, time.Minute
)

// deny records that the creation of a pod was denied. The time of the next try is only computed
// when the gate opens.
func (wl *Workloads) deny(w policy.WorkloadID) {
	if wl.State[w].denied == 0 {
		wl.State[w].denied = wl.Clock.Now
	}
}

// retryAt returns the first time after now at which the controller of w tries again.
func (wl *Workloads) retryAt(w policy.WorkloadID) policy.Time {
	at, wait, most := wl.State[w].denied, retryFirst, retryMost
	if wl.Scenario.Workloads[w].Kind == policy.KindJob {
		wait, most = jobRetryFirst, jobRetryMost
	}
	for at <= wl.Clock.Now {
		at = at.Add(wait)
		wait = min(2*wait, most)
	}
	return at
}

// retry lets the controller of w try again.
func (wl *Workloads) retry(w policy.WorkloadID) {
	wl.State[w].denied = 0
	if wl.Scenario.Workloads[w].Kind != policy.KindJob {
		wl.reconcile(w)
		return
	}
	for _, i := range slices.Clone(wl.Jobs.of[w]) {
		wl.Jobs.reconcile(int(i))
	}
}

// Gate opens or closes the gate of a budget.
func (gb *GPUBudgets) Gate(_ context.Context, _ *policy.Snapshot, x *policy.Gate) error {
	i := slices.IndexFunc(gb.All, func(b policy.Budget) bool { return b.Name == x.Budget })
	if i < 0 {
		return fmt.Errorf("there is no budget %q", x.Budget)
	}
	if gb.All[i].Closed == x.Closed {
		return nil
	}
	gb.advance(int32(i), gb.Clock.Now)
	gb.All = slices.Clone(gb.All) // snapshots share the old list
	gb.All[i].Closed = x.Closed
	gb.Log.Add(gb.Clock.Now, engine.RecordGate, x.Budget, "", int64(oneIf(x.Closed)))
	for w := range gb.of {
		if slices.Contains(gb.of[w], int32(i)) {
			gb.regate(policy.WorkloadID(w))
		}
	}
	return nil
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// regate applies the gates of its budgets to w. Pods that a closed gate keeps out count as missing
// but not as an outage, since no policy could bring them back. After the gate opens, pods have the
// ready grace to become ready.
func (gb *GPUBudgets) regate(w policy.WorkloadID) {
	g, shut := &gb.Serving.Of[w], gb.shut(w)
	if g.gated == shut || gb.Scenario.Templates[w].DaemonSet { // it has no required number of pods
		return
	}
	g.advance(gb.Clock.Now, gb.Window)
	g.gated = shut
	if shut {
		gb.Serving.setRequired(w)
		return
	}
	if gb.Scenario.Workloads[w].Job == nil {
		g.spared, g.admitted = gb.Clock.Now.Add(gb.Scenario.ReadyGrace), gb.Workloads.State[w].Active
		gb.Clock.Add(g.spared, engine.GrowthCounts, int32(w), 0, 0)
		gb.Serving.setRequired(w)
	}
	if gb.Workloads.State[w].denied != 0 {
		gb.Clock.Add(gb.Workloads.retryAt(w), engine.PodsRetried, int32(w), 0, 0)
	}
}

// admitted returns the part of required that counts: while a gate is closed, at most the number of
// existing pods; during the ready grace after it has opened, at most the number of pods that
// existed when it opened.
func (sv *Serving) admitted(w policy.WorkloadID, required int32) int32 {
	switch g := &sv.Of[w]; {
	case g.gated:
		return min(required, sv.Workloads.State[w].Active)
	case sv.Clock.Now < g.spared:
		return min(required, g.admitted)
	}
	return required
}

// recountRequired updates the required number of pods of w after its number of existing pods
// changed.
func (sv *Serving) recountRequired(w policy.WorkloadID) {
	if sv.Of[w].gated {
		sv.setRequired(w)
	}
}

// Pause suspends a job or resumes it, as spec.suspend does: its pods are deleted, and created again
// when it is resumed.
func (gb *GPUBudgets) Pause(_ context.Context, _ *policy.Snapshot, x *policy.Pause) error {
	w := x.Workload
	if gb.Scenario.Workloads[w].Kind != policy.KindJob {
		return fmt.Errorf("%s is not a job", gb.Scenario.Workloads[w].Name)
	}
	if (gb.Jobs.suspendedBy[w] != "") == x.Paused {
		return nil
	}
	gb.Jobs.suspendedBy[w] = ""
	if x.Paused {
		gb.Jobs.suspendedBy[w] = x.Budget
	}
	gb.Workloads.touch(w)
	gb.Log.Add(gb.Clock.Now, engine.RecordPaused, gb.Scenario.Workloads[w].Name, x.Budget, int64(oneIf(x.Paused)))
	if !x.Paused {
		gb.Workloads.retry(w)
		return nil
	}
	metered := gb.Metered()
	if i := slices.IndexFunc(gb.All, func(b policy.Budget) bool { return b.Name == x.Budget }); i >= 0 && metered {
		gb.state[i].paused++
	}
	for _, id := range slices.Clone(gb.Workloads.State[w].pods) {
		if phase := gb.Pods.All[id].Phase; phase == policy.PodTerminating || phase == policy.PodGone {
			continue
		}
		if metered && gb.Pods.All[id].Node != policy.None {
			gb.Result.VoluntaryEvictions++
		}
		gb.Pods.delete(id, policy.EndEvicted)
	}
	return nil
}

// Evict requests the eviction of a pod from the API server. A PodDisruptionBudget may refuse it,
// which is not an error. Annotations that prevent disruption by provisioners have no effect.
func (gb *GPUBudgets) Evict(_ context.Context, _ *policy.Snapshot, x *policy.Evict) error {
	id := x.Pod
	p, t := &gb.Pods.All[id], &gb.Scenario.Templates[gb.Pods.All[id].Template]
	if p.Phase != policy.PodReady && p.Phase != policy.PodStarting {
		return nil
	}
	if len(t.PDBs) > 1 || len(t.PDBs) == 1 && !gb.PDBs.Allows(t.PDBs[0], p.Phase) {
		return nil
	}
	if i := slices.IndexFunc(gb.All, func(b policy.Budget) bool { return b.Name == x.Budget }); i >= 0 && gb.Metered() {
		gb.state[i].evicted++
	}
	grace := t.Grace
	if x.HasGrace {
		grace = x.Grace
	}
	cause := result.CauseBudget
	if x.Budget == "" {
		cause = gb.Serving.EvictionOf(p.Node, gb.Nodes.All[p.Node].ReclaimAt != 0, policy.ActorUs)
	}
	gb.CheckEviction(id)
	gb.Pods.Evict(id, cause, grace, false)
	return nil
}

// fill adds the totals of the budgets to the result.
func (gb *GPUBudgets) fill(saved *policy.Memory) {
	for i := range gb.Serving.Of {
		gb.Result.KeptOut += perHourOf(gb.Prepared.PodValue(policy.WorkloadID(i)), gb.Serving.Of[i].gatedMS)
	}
	for i := range gb.All {
		gb.advance(int32(i), gb.Window.To)
		b, x := &gb.All[i], &gb.state[i]
		res := result.BudgetResult{Name: b.Name, Action: b.Action, GPUHours: float64(x.used) / 3.6e9, Peak: x.peak,
			OverMinutes: x.overMS / 60_000, ClosedMinutes: x.closedMS / 60_000, Evictions: x.evicted, Pauses: x.paused}
		if m := saved.Budget(b.Name); m != nil {
			res.WindowHours, res.WindowCost = float64(m.Used)/3.6e9, m.Cost
		}
		gb.Result.Budgets = append(gb.Result.Budgets, res)
	}
}
