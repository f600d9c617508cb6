package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

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

func (r *run) newBudgets() {
	r.budgets = slices.Clone(r.world.Budgets)
	r.budgetX = make([]budgetState, len(r.budgets))
	r.budgetsOf = make([][]int32, len(r.world.Templates))
	r.suspended = make([]bool, len(r.world.Workloads))
	for i := range r.budgets {
		r.budgetX[i].since = r.stage.begin
		for t := range r.world.Templates {
			if r.budgets[i].Counts(&r.world.Templates[t]) > 0 {
				r.budgetsOf[t] = append(r.budgetsOf[t], int32(i))
			}
		}
	}
}

// advanceBudget completes the integrals of budget i up to now.
func (r *run) advanceBudget(i int32, now policy.Time) {
	x := &r.budgetX[i]
	from, to := max(x.since, r.window.From), min(now, r.window.To)
	x.since = now
	if to <= from {
		return
	}
	ms := int64(to - from)
	x.used += ms * x.devices
	if r.budgets[i].Closed {
		x.closedMS += ms
	}
	if x.over {
		x.overMS += ms
	}
}

// holdDevices notes that sign pods more of template t hold a node.
func (r *run) holdDevices(t policy.TemplateID, sign int64) {
	for _, i := range r.budgetsOf[t] {
		r.advanceBudget(i, r.q.now)
		r.budgetX[i].devices += sign * r.budgets[i].Counts(&r.world.Templates[t])
	}
}

// noteBudgets reads from the memory that is saved what the policy takes for
// spent, since only the policy keeps a ledger.
func (r *run) noteBudgets(m *policy.Memory) {
	for i := range r.budgets {
		b, x, seen := &r.budgets[i], &r.budgetX[i], m.Budget(r.budgets[i].Name)
		if seen == nil {
			continue
		}
		if over := seen.Over != 0; over != x.over {
			r.advanceBudget(int32(i), r.q.now)
			x.over = over
		}
		if r.q.now < r.window.From {
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
func (r *run) shut(w policy.WorkloadID) bool {
	for _, i := range r.budgetsOf[w] {
		if r.budgets[i].Closed {
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

// denied notes that a controller was denied a pod, and when it will have tried
// again is found out when the gate opens.
func (r *run) denied(w policy.WorkloadID) {
	if r.work[w].denied == 0 {
		r.work[w].denied = r.q.now
	}
}

// retryAt returns when the controller of w tries again after now.
func (r *run) retryAt(w policy.WorkloadID) policy.Time {
	at, wait, most := r.work[w].denied, retryFirst, retryMost
	if r.world.Workloads[w].Kind == policy.KindJob {
		wait, most = jobRetryFirst, jobRetryMost
	}
	for at <= r.q.now {
		at = at.Add(wait)
		wait = min(2*wait, most)
	}
	return at
}

// retryPods lets the controller of w try again.
func (r *run) retryPods(w policy.WorkloadID) {
	r.work[w].denied = 0
	if r.world.Workloads[w].Kind != policy.KindJob {
		r.reconcile(w)
		return
	}
	for _, i := range slices.Clone(r.jobsOf[w]) {
		r.reconcileJob(int(i))
	}
}

// Gate opens or closes the gate of a budget.
func (r *run) Gate(_ context.Context, _ *policy.Snapshot, x *policy.Gate) error {
	i := slices.IndexFunc(r.budgets, func(b policy.Budget) bool { return b.Name == x.Budget })
	if i < 0 {
		return fmt.Errorf("there is no budget %q", x.Budget)
	}
	if r.budgets[i].Closed == x.Closed {
		return nil
	}
	r.advanceBudget(int32(i), r.q.now)
	r.budgets = slices.Clone(r.budgets) // snapshots share the list
	r.budgets[i].Closed = x.Closed
	r.log.add(r.q.now, logGate, x.Budget, "", int64(oneIf(x.Closed)))
	for w := range r.budgetsOf {
		if slices.Contains(r.budgetsOf[w], int32(i)) {
			r.regate(policy.WorkloadID(w))
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
func (r *run) regate(w policy.WorkloadID) {
	g, shut := &r.gauges[w], r.shut(w)
	if g.gated == shut || r.world.Templates[w].DaemonSet { // it has no number of pods to be ready
		return
	}
	g.advance(r.q.now, r.window)
	g.gated = shut
	if shut {
		r.setRequired(w)
		return
	}
	if r.world.Workloads[w].Job == nil {
		g.spared, g.admitted = r.q.now.Add(r.world.ReadyGrace), r.work[w].active
		r.q.add(g.spared, evGrace, int32(w), 0, 0)
		r.setRequired(w)
	}
	if r.work[w].denied != 0 {
		r.q.add(r.retryAt(w), evRetry, int32(w), 0, 0)
	}
}

// admitted returns the part of required that can be asked for while a gate is
// closed: the pods that there are. For the ready grace after it has opened it is
// those that there were when it did.
func (r *run) admitted(w policy.WorkloadID, required int32) int32 {
	switch g := &r.gauges[w]; {
	case g.gated:
		return min(required, r.work[w].active)
	case r.q.now < g.spared:
		return min(required, g.admitted)
	}
	return required
}

// recountRequired follows a change of the pods that there are of w.
func (r *run) recountRequired(w policy.WorkloadID) {
	if g := &r.gauges[w]; g.gated {
		g.advance(r.q.now, r.window)
		r.setRequired(w)
	}
}

// Pause suspends a job or lets it go on, as spec.suspend does: its pods are
// deleted, and made anew when it goes on.
func (r *run) Pause(_ context.Context, _ *policy.Snapshot, x *policy.Pause) error {
	w := x.Workload
	if r.world.Workloads[w].Kind != policy.KindJob {
		return fmt.Errorf("%s is no job", r.world.Workloads[w].Name)
	}
	if r.suspended[w] == x.Paused {
		return nil
	}
	r.suspended[w] = x.Paused
	r.touchWork(w)
	r.log.add(r.q.now, logPaused, r.world.Workloads[w].Name, x.Budget, int64(oneIf(x.Paused)))
	if !x.Paused {
		r.retryPods(w)
		return nil
	}
	metered := r.q.now >= r.window.From
	if i := slices.IndexFunc(r.budgets, func(b policy.Budget) bool { return b.Name == x.Budget }); i >= 0 && metered {
		r.budgetX[i].paused++
	}
	for _, id := range slices.Clone(r.work[w].pods) {
		if phase := r.pods[id].Phase; phase == policy.PodTerminating || phase == policy.PodGone {
			continue
		}
		if metered && r.pods[id].Node != policy.None {
			r.result.VoluntaryEvictions++
		}
		r.deletePod(id, policy.EndEvicted)
	}
	return nil
}

// Evict asks the API server to evict a pod, which a disruption budget may
// refuse: that is an answer and no fault. Annotations that keep provisioners
// from a pod do not concern it.
func (r *run) Evict(_ context.Context, _ *policy.Snapshot, x *policy.Evict) error {
	id := x.Pod
	p, t := &r.pods[id], &r.world.Templates[r.pods[id].Template]
	if p.Phase != policy.PodReady && p.Phase != policy.PodStarting {
		return nil
	}
	if len(t.PDBs) > 1 || len(t.PDBs) == 1 && !r.allows(t.PDBs[0], p.Phase) {
		return nil
	}
	if r.cfg.Check && p.Phase == policy.PodReady {
		r.checkEviction(id)
	}
	r.log.add(r.q.now, logEvicted, p.Name, r.nodes[p.Node].Name, 0)
	if r.q.now >= r.window.From {
		r.result.VoluntaryEvictions++
		if i := slices.IndexFunc(r.budgets, func(b policy.Budget) bool { return b.Name == x.Budget }); i >= 0 {
			r.budgetX[i].evicted++
		}
	}
	grace := t.Grace
	if x.HasGrace {
		grace = x.Grace
	}
	cause := CauseBudget
	if x.Budget == "" {
		cause = r.evictionOf(p.Node, r.nodes[p.Node].ReclaimAt != 0, policy.ActorUs)
	}
	r.missed(id, cause)
	r.deletePodWithin(id, policy.EndEvicted, grace)
	return nil
}

// fillBudgets completes the result with what the budgets came to.
func (r *run) fillBudgets() {
	for i := range r.gauges {
		r.result.KeptOut += perHourOf(r.stage.podValue[i], r.gauges[i].gatedMS)
	}
	for i := range r.budgets {
		r.advanceBudget(int32(i), r.window.To)
		b, x := &r.budgets[i], &r.budgetX[i]
		res := BudgetResult{Name: b.Name, Action: b.Action, GPUHours: float64(x.used) / 3.6e9, Peak: x.peak,
			OverMinutes: x.overMS / 60_000, ClosedMinutes: x.closedMS / 60_000, Evictions: x.evicted, Pauses: x.paused}
		if m := r.saved.Budget(b.Name); m != nil {
			res.WindowHours, res.WindowCost = float64(m.Used)/3.6e9, m.Cost
		}
		r.result.Budgets = append(r.result.Budgets, res)
	}
}
