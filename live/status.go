package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Conditions of a CapacityPool that the controller itself sets. Backends add their own, such as
// FieldConflict and CredentialsInvalid.
const (
	ConditionReady         = "Ready"         // decisions are made for the pool and carried out within its mode
	ConditionDegraded      = "Degraded"      // a fault reduces the function of the controller
	ConditionHeld          = "Held"          // its backend did not carry out an entry
	ConditionConflict      = "Conflict"      // another pool selects the same nodes
	ConditionPolicyInvalid = "PolicyInvalid" // its policy cannot be created
	ConditionPricesStale   = "PricesStale"   // prices are too old to buy at
	ConditionRamping       = "Ramping"       // it has just become active and moves only few nodes
	ConditionStopped       = "Stopped"       // the kill switch is on or cannot be read

	// ConditionModelUsed is set by a Judge, and only for pools whose policy names a bundle.
	ConditionModelUsed = "ModelUsed"
)

// selectedMax is the maximum number of markets in a status, as in its CRD. messageMax is the
// maximum length of the message of a condition.
const (
	selectedMax = 256
	messageMax  = 1000
)

// staleAfter is the age from which prices count as stale.
const staleAfter = time.Hour

// A verified is a condition with its present status.
type verified struct {
	kind    string
	holds   bool
	reason  string
	message string
	action  string // action of the Event
}

// A report is the result of a step for a pool. It is not modified.
type report struct {
	figures  v1alpha1.CapacityPoolStatus // without conditions
	decision outcome

	// conflict and invalid describe a fault, empty without one. ramping describes the progress of
	// the ramp, empty without one.
	conflict, invalid, ramping string
	degraded, stale            verified

	kill permit.Switch

	// rival is the namespace of another release, which then writes the statuses.
	rival string
}

// publishReports passes the results of a step to the writer of the pools' statuses.
func (c *Controller) publishReports(s *policy.Snapshot) {
	c.current.counted = countPools(s)
	stale, reports, names := stale(s), make(map[string]*report, len(s.Pools)), make([]string, len(s.Pools))
	for i := range s.Pools {
		p, v := &s.Pools[i], c.publisher.outcomes.pools[i]
		names[i] = p.Name
		r := &report{
			figures: c.poolStatus(s, p.ID), decision: v,
			conflict: c.current.conflicts[p.Name], invalid: c.decider.refused[p.Policy],
			degraded: degraded(c.decider.panicked,
				c.current.forecast), stale: stale, kill: c.current.kill, rival: c.current.rival,
		}
		if ramp := &c.store.book(p.Name).Ramp; v == outcomeDone && ramp.Stage < rampDone {
			r.ramping = ramp.says()
		}
		reports[p.Name] = r
	}
	c.table.setReports(reports)
	c.workers.status.add(priorityReport, names...)
}

func (t *table) setReports(all map[string]*report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports = all
}

// statusConfirm is how soon a written status is checked again: the cache may have been out of date.
const statusConfirm = 2 * time.Second

// A statusReporter writes the statuses of pools and their Events.
type statusReporter struct {
	cfg   *Config
	parts *Parts
	table *table

	// reported is when the status of a pool was last written. It needs no lock, because only one
	// status is written at a time.
	reported map[string]time.Time
}

// reconcile writes the status of a pool and its Events if they have changed: conditions at once,
// other fields at most once per StatusEvery. It is the only writer of these statuses, and runs for
// one pool at a time.
func (r *statusReporter) reconcile(ctx context.Context, pool string) (reconcile.Result, error) {
	now := r.parts.Clock.Now()
	found := r.table.finding(pool, now)
	object := &v1alpha1.CapacityPool{}
	err := r.parts.Client.Get(ctx, client.ObjectKey{Name: pool}, object)
	switch {
	case apierrors.IsNotFound(err):
		delete(r.reported, pool)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading CapacityPool %s: %w", pool, err)
	case found == nil || found.rival != "":
		return reconcile.Result{}, nil
	}
	next := object.DeepCopy()
	conditions, claim := next.Status.Conditions, next.Status.Controller
	next.Status = found.figures
	next.Status.Controller = claim
	next.Status.SelectedMarkets = slices.Clone(next.Status.SelectedMarkets)
	next.Status.Conditions, next.Status.ObservedGeneration = conditions, object.Generation
	changed, events := r.setConditions(found, next)
	if !changed {
		if equalStatus(&object.Status, &next.Status) {
			return reconcile.Result{}, nil
		}
		if age := now.Sub(r.reported[pool]); age < r.cfg.StatusEvery {
			return reconcile.Result{RequeueAfter: r.cfg.StatusEvery - age}, nil
		}
	}
	switch err := r.parts.Client.Status().Update(ctx, next, fieldOwner); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err): // another client has changed the object, or the cache is behind
		return reconcile.Result{RequeueAfter: backoff}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("writing the status of CapacityPool %s: %w", pool, err)
	}
	r.reported[pool] = now
	for _, v := range events {
		r.event(next, v)
	}
	return reconcile.Result{RequeueAfter: statusConfirm}, nil
}

// setConditions sets all conditions of a pool. It reports whether the status or reason of a
// condition has changed, and returns the conditions that need an Event. A condition of the
// controller is not added before it is True for the first time.
func (r *statusReporter) setConditions(found *finding, next *v1alpha1.CapacityPool) (changed bool, events []verified) {
	st := &next.Status
	set := func(v verified, quiet bool) {
		before := meta.FindStatusCondition(st.Conditions, v.kind) != nil
		if r.setCondition(st, v, next.Generation) {
			changed = true
			if before || !quiet {
				events = append(events, v)
			}
		}
	}
	all := found.conditions(r.parts.Drains.Status())
	for _, v := range all {
		if v.holds || meta.FindStatusCondition(st.Conditions, v.kind) != nil {
			set(v, false)
		}
	}
	modelled := false
	for _, j := range r.parts.Judges {
		for _, x := range j.Conditions(next.Name) {
			modelled = modelled || x.Type == ConditionModelUsed
			v := verified{x.Type, x.Status == metav1.ConditionTrue, x.Reason, x.Message, "Provision"}
			set(v, !bad(v))
			all = append(all, v)
		}
	}
	set(found.ready(all), false)
	if !modelled { // its policy dropped the bundle while no controller ran
		changed = meta.RemoveStatusCondition(&st.Conditions, ConditionModelUsed) || changed
	}
	return changed, events
}

// problems are the conditions that report a problem while they are True. The others report a
// problem while they are False, except Ramping and UsageKnown, which never do.
var problems = []string{
	ConditionDegraded, ConditionHeld, ConditionConflict, ConditionPolicyInvalid, ConditionPricesStale, ConditionStopped,
	"FieldConflict", "TemplateHeld", "MarketsWidened", "CredentialsInvalid",
}

// bad reports whether a condition reports a problem.
func bad(v verified) bool {
	if v.kind == ConditionRamping || v.kind == "UsageKnown" {
		return false
	}
	return v.holds == slices.Contains(problems, v.kind)
}

// setCondition sets one condition and reports whether its status or reason has changed. The time of
// the transition is the time of the controller's clock.
func (r *statusReporter) setCondition(st *v1alpha1.CapacityPoolStatus, v verified, generation int64) bool {
	x := metav1.Condition{
		Type: v.kind, Status: metav1.ConditionFalse, ObservedGeneration: generation, Reason: camel(v.reason), Message: clip(oneLine(v.message), messageMax),
		LastTransitionTime: metav1.NewTime(r.parts.Clock.Now()),
	}
	if v.holds {
		x.Status = metav1.ConditionTrue
	}
	before := meta.FindStatusCondition(st.Conditions, v.kind)
	isNew := before == nil || before.Status != x.Status || before.Reason != x.Reason
	meta.SetStatusCondition(&st.Conditions, x)
	return isNew
}

// poolStatus returns the status of a pool without conditions.
func (c *Controller) poolStatus(s *policy.Snapshot, id policy.PoolID) v1alpha1.CapacityPoolStatus {
	st := c.current.counted[id].status(s, id, c.modeOf(id))
	st.LossBudget = lossBudget(&c.store.book(s.Pools[id].Name).Memory.Loss, s.Now)
	return st
}

// lossBudget describes the loss budget of a pool after the decision at now. It is empty if the
// policy has none. The amount has two significant digits, so that the status is not written for
// every cent.
func lossBudget(b *policy.LossBudget, now policy.Time) string {
	switch {
	case !b.Kept(now):
		return ""
	case !b.Away:
		return fewDigits(policy.Dollars(max(0, b.Left))).Short() + " left"
	case now < b.Until:
		return "used up, on demand until " + b.Until.Std().UTC().Format(time.RFC3339)
	}
	return "used up, on demand until it covers losses again"
}

// fewDigits returns m, which must not be negative, rounded down to two significant digits.
func fewDigits(m policy.Money) policy.Money {
	step := policy.Money(1)
	for m/step >= 100 {
		step *= 10
	}
	return m / step * step
}

// status returns the status of a pool that follows from the counts, with its mode.
func (f figures) status(s *policy.Snapshot, id policy.PoolID, mode v1alpha1.Mode) v1alpha1.CapacityPoolStatus {
	st := v1alpha1.CapacityPoolStatus{
		Nodes: f.nodes, SpotNodes: f.spot, OnDemandNodes: f.onDemand, Mode: mode, LastDecisionID: decisionID(s),
	}
	if h := share.Of(s, id); h.Nodes > 0 {
		st.SpotShare = fmt.Sprintf("%.0f%%", 100*h.Share())
	}
	if f.nodes > 0 {
		st.SavingsPerHour = strings.ReplaceAll(f.saving.Short(), "−", "-") // fields of the API contain only ASCII
	}
	for _, m := range s.Pools[id].Markets {
		x := &s.Markets[m]
		if x.Offered && len(st.SelectedMarkets) < selectedMax {
			st.SelectedMarkets = append(st.SelectedMarkets, v1alpha1.MarketStatus{Name: x.Name,
				PricePerHour: x.Charge().Short()})
		}
	}
	return st
}

// decisionID returns the ID of a decision, in the format of `spotter explain --at`.
func decisionID(s *policy.Snapshot) string { return s.Now.String() }

// modeOf returns the mode in which a pool is at present.
func (c *Controller) modeOf(pool policy.PoolID) v1alpha1.Mode {
	switch v := c.publisher.outcomes; v.pools[pool] {
	case outcomeDone:
		if v.approve[pool] {
			return v1alpha1.ModeApprove
		}
		return v1alpha1.ModeActive
	case outcomeOff:
		return v1alpha1.ModeOff
	}
	return v1alpha1.ModeShadow
}

// conditions returns the conditions of a pool that the controller sets.
func (x *finding) conditions(drains []drain.Status) []verified {
	all := []verified{
		condition(ConditionConflict, x.conflict != "", "SameNodes", "NoConflict", x.conflict),
		condition(ConditionPolicyInvalid, x.invalid != "", "NotMade", "Made", x.invalid),
		condition(ConditionHeld, x.held.reason != "", x.held.reason, "NothingHeld", x.held.message),
		x.degraded,
		x.stale,
		condition(ConditionStopped, stops(x.kill), stopReason(x.kill), "Released", x.stoppedSays(drains)),
		condition(ConditionRamping, x.ramping != "", "FirstMoves", "Ramped", x.ramping),
	}
	if x.failed != "" && x.degraded.reason != reasonPanicked {
		all[3] = condition(ConditionDegraded, true, "ActionFailed", "", x.failed)
	}
	return all
}

// stopReason returns the reason of the condition Stopped while it is True.
func stopReason(kill permit.Switch) string {
	if kill.On {
		return "KillSwitch"
	}
	return "KillSwitchUnreadable"
}

// condition returns a condition with the reason yes if holds is set, else with the reason no.
func condition(kind string, holds bool, yes, no, message string) verified {
	if holds {
		return verified{kind, true, yes, message, actionDecide}
	}
	return verified{kind, false, no, message, actionDecide}
}

// harmless are the conditions that report a problem that does not make the pool unready: a waiting
// move, a missing record or forecast model, or a template that is not changed.
var harmless = []string{ConditionHeld, ConditionModelUsed, "Recording", "TemplateHeld", "MarketsWidened"}

// ready returns the condition Ready. It is False if one of all reports a problem, unless the
// problem is harmless.
func (x *finding) ready(all []verified) verified {
	for _, v := range all {
		if bad(v) && !slices.Contains(harmless, v.kind) {
			return condition(ConditionReady, false, "", v.kind, v.message)
		}
	}
	switch x.decision {
	case outcomeOff:
		return condition(ConditionReady, false, "", "Off", "the pool is off: no decisions are made for it")
	case outcomeDone:
		return condition(ConditionReady, true, "Active", "", "decisions are carried out")
	}
	return condition(ConditionReady, true, "Shadow", "", "decisions are recorded but not carried out")
}

// reasonPanicked is the reason of Degraded that takes precedence over all others.
const reasonPanicked = "PolicyPanicked"

// actionDecide is the action in Events about conditions that the controller itself sets.
const actionDecide = "Decide"

// degraded returns the condition that reports whether the policy or the forecast has failed.
func degraded(panicked string, forecast error) verified {
	switch {
	case panicked != "":
		line, _, _ := strings.Cut(panicked, "\n")
		return condition(ConditionDegraded, true, reasonPanicked, "",
			"the policy panicked, so only nodes under notice are drained: "+line)
	case forecast != nil:
		return condition(ConditionDegraded, true, "ForecastFailed", "", forecast.Error())
	}
	return condition(ConditionDegraded, false, "", "Working", "")
}

// stale returns the condition that reports whether the Spot prices of any source are too old.
func stale(s *policy.Snapshot) verified {
	for _, x := range s.Sources {
		switch {
		case !x.Prices:
		case x.At == 0:
			return condition(ConditionPricesStale, true, "None", "", fmt.Sprintf("no prices of %s have been read yet", x.Name))
		case s.Now.Sub(x.At) > staleAfter:
			return condition(ConditionPricesStale, true, "Old", "", fmt.Sprintf("the newest of %s are from %v", x.Name, x.At))
		}
	}
	return condition(ConditionPricesStale, false, "", "Fresh", "")
}

// says describes the progress of a ramp.
func (r *ramp) says() string {
	switch r.Stage {
	case rampOne:
		return "ramp: the first node is moved alone"
	case rampPercent:
		return "ramp: 1% of the nodes, at least one, are moved at a time"
	}
	return "ramp: nodes are moved within the disruption budget"
}

// camel converts a word such as "no-edge" to the reason of a condition.
func camel(word string) string {
	parts := strings.FieldsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
	for i, p := range parts {
		parts[i] = strings.ToUpper(p[:1]) + p[1:]
	}
	if joined := strings.Join(parts, ""); joined != "" && (joined[0] < '0' || joined[0] > '9') {
		return joined
	}
	return "Unknown"
}

// equalStatus reports whether two statuses are equal, apart from the ID of the last decision.
func equalStatus(a, b *v1alpha1.CapacityPoolStatus) bool {
	x := *b
	x.LastDecisionID = a.LastDecisionID
	return equality.Semantic.DeepEqual(a, &x)
}
