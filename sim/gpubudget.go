package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// gpuBudgets count what the pods of each GPU budget hold, and carry out what a policy
// does to keep to one.
type gpuBudgets struct {
	*environment
	checker   *checker
	decider   *decider
	jobs      *jobs
	nodes     *nodes
	pdbs      *disruptionBudgets
	pods      *pods
	serving   *serving
	workloads *workloads

	all   []policy.Budget // as every snapshot shows them
	state []budgetState
	of    [][]int32 // by template, and so by workload, those that count its pods
}

// A budgetState is what the simulator knows of a budget beyond its
// policy.Budget, counted within the metered window.
type budgetState struct {
	since   policy.Time // up to which the integrals below are complete
	devices int64       // thousandths of a device that its pods hold now
	over    bool        // the policy takes it for spent

	used             int64 // thousandths of a device × milliseconds
	closedMS, overMS int64
	peak             float64 // the largest part of a quota that was used within its window
	evicted, paused  int64
}

func (gb *gpuBudgets) init() {
	gb.all = slices.Clone(gb.scenario.Budgets)
	gb.state = make([]budgetState, len(gb.all))
	gb.of = make([][]int32, len(gb.scenario.Templates))
	gb.jobs.suspendedBy = make([]string, len(gb.scenario.Workloads))
	for i := range gb.all {
		gb.state[i].since = gb.prepared.begin
		for t := range gb.scenario.Templates {
			if gb.all[i].Counts(&gb.scenario.Templates[t]) > 0 {
				gb.of[t] = append(gb.of[t], int32(i))
			}
		}
	}
}

// advance completes the integrals of budget i up to now.
func (gb *gpuBudgets) advance(i int32, now policy.Time) {
	x := &gb.state[i]
	from, to := max(x.since, gb.window.From), min(now, gb.window.To)
	x.since = now
	if to <= from {
		return
	}
	ms := int64(to - from)
	x.used += ms * x.devices
	if gb.all[i].Closed {
		x.closedMS += ms
	}
	if x.over {
		x.overMS += ms
	}
}

// hold notes that sign pods more of template t hold a node.
func (gb *gpuBudgets) hold(t policy.TemplateID, sign int64) {
	for _, i := range gb.of[t] {
		gb.advance(i, gb.q.Now)
		gb.state[i].devices += sign * gb.all[i].Counts(&gb.scenario.Templates[t])
	}
}

// note reads from the memory that is saved what the policy takes for
// spent, since only the policy keeps a ledger.
func (gb *gpuBudgets) note(m *policy.Memory) {
	for i := range gb.all {
		b, x, seen := &gb.all[i], &gb.state[i], m.Budget(gb.all[i].Name)
		if seen == nil {
			continue
		}
		if over := seen.Over != 0; over != x.over {
			gb.advance(int32(i), gb.q.Now)
			x.over = over
		}
		if gb.q.Now < gb.window.From {
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

// shut reports whether a closed gate denies new pods of w. As an admission
// policy does, it denies them when they are created: there is no pod, and
// nothing for a scheduler or provisioner to see.
func (gb *gpuBudgets) shut(w policy.WorkloadID) bool {
	for _, i := range gb.of[w] {
		if gb.all[i].Closed {
			return true
		}
	}
	return false
}

// The workqueues in which controllers put what failed: the first and the
// longest wait, which doubles from one to the other. Those of Deployments and
// StatefulSets are client-go's default, and that of Jobs its own.
const (
	retryFirst, retryMost       = 5 * time.Millisecond, 1000 * time.Second
	jobRetryFirst, jobRetryMost = time.Second, time.Minute
)

// deny notes that a controller was denied a pod, and when it will have tried
// again is found out when the gate opens.
func (wl *workloads) deny(w policy.WorkloadID) {
	if wl.state[w].denied == 0 {
		wl.state[w].denied = wl.q.Now
	}
}

// retryAt returns when the controller of w tries again after now.
func (wl *workloads) retryAt(w policy.WorkloadID) policy.Time {
	at, wait, most := wl.state[w].denied, retryFirst, retryMost
	if wl.scenario.Workloads[w].Kind == policy.KindJob {
		wait, most = jobRetryFirst, jobRetryMost
	}
	for at <= wl.q.Now {
		at = at.Add(wait)
		wait = min(2*wait, most)
	}
	return at
}

// retry lets the controller of w try again.
func (wl *workloads) retry(w policy.WorkloadID) {
	wl.state[w].denied = 0
	if wl.scenario.Workloads[w].Kind != policy.KindJob {
		wl.reconcile(w)
		return
	}
	for _, i := range slices.Clone(wl.jobs.of[w]) {
		wl.jobs.reconcile(int(i))
	}
}

// Gate opens or closes the gate of a budget.
func (gb *gpuBudgets) Gate(_ context.Context, _ *policy.Snapshot, x *policy.Gate) error {
	i := slices.IndexFunc(gb.all, func(b policy.Budget) bool { return b.Name == x.Budget })
	if i < 0 {
		return fmt.Errorf("there is no budget %q", x.Budget)
	}
	if gb.all[i].Closed == x.Closed {
		return nil
	}
	gb.advance(int32(i), gb.q.Now)
	gb.all = slices.Clone(gb.all) // snapshots share the list
	gb.all[i].Closed = x.Closed
	gb.log.Add(gb.q.Now, engine.RecordGate, x.Budget, "", int64(oneIf(x.Closed)))
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

// regate brings w in line with the gates of its budgets. What a closed gate
// keeps out is missed, but it is no outage: nothing that a policy could do would
// bring it back. When the gate opens pods have the ready grace to come.
func (gb *gpuBudgets) regate(w policy.WorkloadID) {
	g, shut := &gb.serving.of[w], gb.shut(w)
	if g.gated == shut || gb.scenario.Templates[w].DaemonSet { // it has no number of pods to be ready
		return
	}
	g.advance(gb.q.Now, gb.window)
	g.gated = shut
	if shut {
		gb.serving.setRequired(w)
		return
	}
	if gb.scenario.Workloads[w].Job == nil {
		g.spared, g.admitted = gb.q.Now.Add(gb.scenario.ReadyGrace), gb.workloads.state[w].active
		gb.q.Add(g.spared, engine.GrowthCounts, int32(w), 0, 0)
		gb.serving.setRequired(w)
	}
	if gb.workloads.state[w].denied != 0 {
		gb.q.Add(gb.workloads.retryAt(w), engine.PodsRetried, int32(w), 0, 0)
	}
}

// admitted returns the part of required that can be asked for while a gate is
// closed: the pods that there are. For the ready grace after it has opened it is
// those that there were when it did.
func (sv *serving) admitted(w policy.WorkloadID, required int32) int32 {
	switch g := &sv.of[w]; {
	case g.gated:
		return min(required, sv.workloads.state[w].active)
	case sv.q.Now < g.spared:
		return min(required, g.admitted)
	}
	return required
}

// recountRequired follows a change of the pods that there are of w.
func (sv *serving) recountRequired(w policy.WorkloadID) {
	if sv.of[w].gated {
		sv.setRequired(w)
	}
}

// Pause suspends a job or lets it go on, as spec.suspend does: its pods are
// deleted, and made anew when it goes on.
func (gb *gpuBudgets) Pause(_ context.Context, _ *policy.Snapshot, x *policy.Pause) error {
	w := x.Workload
	if gb.scenario.Workloads[w].Kind != policy.KindJob {
		return fmt.Errorf("%s is not a job", gb.scenario.Workloads[w].Name)
	}
	if (gb.jobs.suspendedBy[w] != "") == x.Paused {
		return nil
	}
	gb.jobs.suspendedBy[w] = ""
	if x.Paused {
		gb.jobs.suspendedBy[w] = x.Budget
	}
	gb.workloads.touch(w)
	gb.log.Add(gb.q.Now, engine.RecordPaused, gb.scenario.Workloads[w].Name, x.Budget, int64(oneIf(x.Paused)))
	if !x.Paused {
		gb.workloads.retry(w)
		return nil
	}
	metered := gb.q.Now >= gb.window.From
	if i := slices.IndexFunc(gb.all, func(b policy.Budget) bool { return b.Name == x.Budget }); i >= 0 && metered {
		gb.state[i].paused++
	}
	for _, id := range slices.Clone(gb.workloads.state[w].pods) {
		if phase := gb.pods.all[id].Phase; phase == policy.PodTerminating || phase == policy.PodGone {
			continue
		}
		if metered && gb.pods.all[id].Node != policy.None {
			gb.result.VoluntaryEvictions++
		}
		gb.pods.delete(id, policy.EndEvicted)
	}
	return nil
}

// Evict asks the API server to evict a pod, which a disruption budget may
// refuse: that is an answer and no fault. Annotations that keep provisioners
// from a pod do not concern it.
func (gb *gpuBudgets) Evict(_ context.Context, _ *policy.Snapshot, x *policy.Evict) error {
	id := x.Pod
	p, t := &gb.pods.all[id], &gb.scenario.Templates[gb.pods.all[id].Template]
	if p.Phase != policy.PodReady && p.Phase != policy.PodStarting {
		return nil
	}
	if len(t.PDBs) > 1 || len(t.PDBs) == 1 && !gb.pdbs.allows(t.PDBs[0], p.Phase) {
		return nil
	}
	if gb.cfg.Check && p.Phase == policy.PodReady {
		gb.checker.checkEviction(id)
	}
	gb.log.Add(gb.q.Now, engine.RecordEvicted, p.Name, gb.nodes.all[p.Node].Name, 0)
	if gb.q.Now >= gb.window.From {
		gb.result.VoluntaryEvictions++
		if i := slices.IndexFunc(gb.all, func(b policy.Budget) bool { return b.Name == x.Budget }); i >= 0 {
			gb.state[i].evicted++
		}
	}
	grace := t.Grace
	if x.HasGrace {
		grace = x.Grace
	}
	cause := CauseBudget
	if x.Budget == "" {
		cause = gb.serving.evictionOf(p.Node, gb.nodes.all[p.Node].ReclaimAt != 0, policy.ActorUs)
	}
	gb.serving.missed(id, cause)
	gb.pods.deleteWithin(id, policy.EndEvicted, grace)
	return nil
}

// fill completes the result with what the budgets came to.
func (gb *gpuBudgets) fill() {
	for i := range gb.serving.of {
		gb.result.KeptOut += perHourOf(gb.prepared.podValue[i], gb.serving.of[i].gatedMS)
	}
	for i := range gb.all {
		gb.advance(int32(i), gb.window.To)
		b, x := &gb.all[i], &gb.state[i]
		res := BudgetResult{Name: b.Name, Action: b.Action, GPUHours: float64(x.used) / 3.6e9, Peak: x.peak,
			OverMinutes: x.overMS / 60_000, ClosedMinutes: x.closedMS / 60_000, Evictions: x.evicted, Pauses: x.paused}
		if m := gb.decider.saved.Budget(b.Name); m != nil {
			res.WindowHours, res.WindowCost = float64(m.Used)/3.6e9, m.Cost
		}
		gb.result.Budgets = append(gb.result.Budgets, res)
	}
}
