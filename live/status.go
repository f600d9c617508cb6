package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// The conditions of a CapacityPool that the controller itself sets. Backends add
// their own, such as FieldConflict and CredentialsInvalid.
const (
	ConditionReady         = "Ready"         // it is decided for, and what is decided is carried out as far as its mode goes
	ConditionDegraded      = "Degraded"      // something failed, and less is done than could be
	ConditionHeld          = "Held"          // its backend left something as it is
	ConditionConflict      = "Conflict"      // another pool lays claim to the same nodes
	ConditionPolicyInvalid = "PolicyInvalid" // the policy that it names cannot be made
	ConditionPricesStale   = "PricesStale"   // prices are too old to buy by
	ConditionRamping       = "Ramping"       // it has just become active and moves only few nodes
	ConditionStopped       = "Stopped"       // the kill switch is on

	// ConditionModelUsed a Judge sets, and only of pools whose policy names a bundle.
	ConditionModelUsed = "ModelUsed"
)

// selectedMax bounds the markets in a status, as its definition does, and
// messageMax the words of a condition.
const (
	selectedMax = 256
	messageMax  = 1000
)

// staleAfter is the age from which prices are called stale.
const staleAfter = time.Hour

// A verified is a condition as it holds now.
type verified struct {
	kind    string
	holds   bool
	reason  string
	message string
}

// report writes what the step came to into the status of every pool.
func (c *Controller) report(ctx context.Context, s *policy.Snapshot) error {
	objects, err := c.objects(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(c.reported, func(name string, _ time.Time) bool { return objects[name] == nil })
	c.counted = countPools(s)
	var first error
	for i := range s.Pools {
		object := objects[s.Pools[i].Name]
		if object == nil {
			continue // deleted since
		}
		if err := c.reportPool(ctx, s, s.Pools[i].ID, object); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// objects returns the pools of the cache by name.
func (c *Controller) objects(ctx context.Context) (map[string]*v1alpha1.CapacityPool, error) {
	var list v1alpha1.CapacityPoolList
	if err := c.parts.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing CapacityPools: %w", err)
	}
	objects := make(map[string]*v1alpha1.CapacityPool, len(list.Items))
	for i := range list.Items {
		objects[list.Items[i].Name] = &list.Items[i]
	}
	return objects, nil
}

// reportPool writes the status of one pool, and its Events, when there is something
// new to say: figures at most once in a while, conditions at once.
func (c *Controller) reportPool(ctx context.Context, s *policy.Snapshot, id policy.PoolID, object *v1alpha1.CapacityPool) error {
	was := c.herald.current(object)
	next := object.DeepCopy()
	was.DeepCopyInto(&next.Status)
	st := &next.Status
	c.figures(s, id, st)
	st.ObservedGeneration = object.Generation
	changed := false
	for _, v := range c.conditions(s, id) {
		before := meta.FindStatusCondition(was.Conditions, v.kind)
		if before == nil && !v.holds && v.kind != ConditionReady {
			continue // what never held is not worth a line
		}
		if c.setCondition(st, v, object.Generation) {
			changed = true
			c.event(object, bad(v), v.reason, "Decide", v.kind+": "+v.message)
		}
	}
	modelled := false
	for _, j := range c.parts.Judges {
		for _, x := range j.Conditions(object.Name) {
			modelled = modelled || x.Type == ConditionModelUsed
			v := verified{x.Type, x.Status == metav1.ConditionTrue, x.Reason, x.Message}
			if c.setCondition(st, v, object.Generation) {
				changed = true
				if before := meta.FindStatusCondition(was.Conditions, v.kind); before != nil || bad(v) {
					c.event(object, bad(v), v.reason, "Provision", v.kind+": "+v.message)
				}
			}
		}
	}
	if !modelled { // its policy dropped the bundle while nobody was there to tell
		changed = meta.RemoveStatusCondition(&st.Conditions, ConditionModelUsed) || changed
	}
	now := c.parts.Clock.Now()
	due := c.herald.lost(object.Name) || now.Sub(c.reported[object.Name]) >= c.cfg.StatusEvery
	if !changed && (!due || equalStatus(was, st)) {
		return nil
	}
	if err := c.herald.tell(ctx, next); err != nil {
		return fmt.Errorf("writing the status of CapacityPool %s: %w", object.Name, err)
	}
	c.reported[object.Name] = now
	return nil
}

// problems are the conditions that tell of a problem while they hold; all others do
// while they do not. Ramping and UsageKnown never do.
var problems = []string{
	ConditionDegraded, ConditionHeld, ConditionConflict, ConditionPolicyInvalid, ConditionPricesStale, ConditionStopped,
	"FieldConflict", "TemplateHeld", "MarketsWidened", "CredentialsInvalid",
}

// bad reports whether a condition tells of a problem.
func bad(v verified) bool {
	if v.kind == ConditionRamping || v.kind == "UsageKnown" {
		return false
	}
	return v.holds == slices.Contains(problems, v.kind)
}

// setCondition sets one condition and reports whether its status or reason is new.
// The time of a change is that of the controller's clock.
func (c *Controller) setCondition(st *v1alpha1.CapacityPoolStatus, v verified, generation int64) bool {
	x := metav1.Condition{
		Type: v.kind, Status: metav1.ConditionFalse, ObservedGeneration: generation, Reason: camel(v.reason), Message: clip(v.message, messageMax),
		LastTransitionTime: metav1.NewTime(c.parts.Clock.Now()),
	}
	if v.holds {
		x.Status = metav1.ConditionTrue
	}
	before := meta.FindStatusCondition(st.Conditions, v.kind)
	isNew := before == nil || before.Status != x.Status || before.Reason != x.Reason
	meta.SetStatusCondition(&st.Conditions, x)
	return isNew
}

// figures writes what is counted and not judged.
func (c *Controller) figures(s *policy.Snapshot, id policy.PoolID, st *v1alpha1.CapacityPoolStatus) {
	f := c.counted[id]
	st.Nodes, st.SpotNodes, st.OnDemandNodes = f.nodes, f.spot, f.onDemand
	st.Mode = c.modeOf(&s.Pools[id])
	st.SpotShare, st.SavingsPerHour = "", ""
	if h := s.Holding(id); h.Nodes > 0 {
		st.SpotShare = fmt.Sprintf("%.0f%%", 100*h.Share())
	}
	if f.nodes > 0 {
		st.SavingsPerHour = f.saving.Short()
	}
	st.LastDecisionID = decisionID(s)
	st.SelectedMarkets = nil
	for _, m := range s.Pools[id].Markets {
		x := &s.Markets[m]
		if x.Offered && len(st.SelectedMarkets) < selectedMax {
			st.SelectedMarkets = append(st.SelectedMarkets, v1alpha1.MarketStatus{Name: x.Name, PricePerHour: x.Charge().Short()})
		}
	}
}

// decisionID names a decision as `spotter explain --at` takes it.
func decisionID(s *policy.Snapshot) string { return s.Now.String() }

// modeOf returns how far a pool goes at present.
func (c *Controller) modeOf(p *policy.Pool) v1alpha1.Mode {
	switch c.verdict(p) {
	case outcomeDone:
		return v1alpha1.ModeActive
	case outcomeOff:
		return v1alpha1.ModeOff
	}
	return v1alpha1.ModeShadow
}

// conditions returns what holds of a pool after a step.
func (c *Controller) conditions(s *policy.Snapshot, id policy.PoolID) []verified {
	p := &s.Pools[id]
	book := c.store.book(p.Name)
	held, failed := c.actuator.held[id], c.actuator.failed[id]
	if held.reason == "" {
		held = c.heldDrain(p.Name)
	}
	all := []verified{
		{ConditionConflict, c.conflicts[p.Name] != "", either(c.conflicts[p.Name] != "", "SameNodes", "NoConflict"), c.conflicts[p.Name]},
		{ConditionPolicyInvalid, c.decider.refused[p.Policy] != "", either(c.decider.refused[p.Policy] != "", "NotMade", "Made"), c.decider.refused[p.Policy]},
		{ConditionHeld, held.reason != "", either(held.reason != "", held.reason, "NothingHeld"), held.message},
		c.degraded(failed),
		c.stale(s),
		{ConditionStopped, c.kill.stopped, either(c.kill.stopped, "KillSwitch", "Released"), c.kill.says(c.settled)},
	}
	ramping := c.verdict(p) == outcomeDone && book.Ramp.Stage < rampDone
	all = append(all, verified{ConditionRamping, ramping, either(ramping, "FirstMoves", "Ramped"), book.Ramp.says()})
	return append(all, c.ready(p, all))
}

// ready joins the conditions that keep a pool from being served.
func (c *Controller) ready(p *policy.Pool, all []verified) verified {
	for _, v := range all {
		if v.holds && v.kind != ConditionHeld && v.kind != ConditionRamping && v.kind != ConditionPricesStale {
			return verified{ConditionReady, false, v.kind, v.message}
		}
	}
	switch c.verdict(p) {
	case outcomeOff:
		return verified{ConditionReady, false, "Off", "the pool is off: nothing is decided for it"}
	case outcomeShadow:
		return verified{ConditionReady, true, "Shadow", "what is decided is recorded and not carried out"}
	}
	return verified{ConditionReady, true, "Active", "what is decided is carried out"}
}

func (c *Controller) degraded(failed error) verified {
	switch {
	case c.decider.panicked != "":
		line, _, _ := strings.Cut(c.decider.panicked, "\n")
		return verified{ConditionDegraded, true, "PolicyPanicked", "the policy panicked, so that only nodes under notice are touched: " + line}
	case failed != nil:
		return verified{ConditionDegraded, true, "ActionFailed", failed.Error()}
	case c.forecast != nil:
		return verified{ConditionDegraded, true, "ForecastFailed", c.forecast.Error()}
	}
	return verified{ConditionDegraded, false, "Working", ""}
}

// stale says whether prices are too old, by the oldest source of them.
func (c *Controller) stale(s *policy.Snapshot) verified {
	for _, x := range s.Sources {
		if strings.HasPrefix(x.Name, "prices") && s.Now.Sub(x.At) > staleAfter {
			return verified{ConditionPricesStale, true, "Old", fmt.Sprintf("the newest of %s are of %v", x.Name, x.At)}
		}
	}
	return verified{ConditionPricesStale, false, "Fresh", ""}
}

// says tells how far a ramp has come.
func (r *ramp) says() string {
	switch r.Stage {
	case rampOne:
		return "one node is moved first"
	case rampPercent:
		return "one node in a hundred is moved at a time, at least one"
	}
	return "as many nodes are moved as the disruption budget allows"
}

// says tells what the switch has done.
func (k *killSwitch) says(settled string) string {
	if !k.stopped {
		return ""
	}
	text := "nothing is touched, nodes under notice neither"
	if settled != "" {
		text += "; " + settled
	}
	if k.missing != "" {
		text += "; " + k.missing + ", so that what it said last holds"
	}
	return text
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// camel makes the reason of a condition of a word such as "no-edge".
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

// equalStatus reports whether two statuses differ in nothing but the decision that
// they are of.
func equalStatus(a, b *v1alpha1.CapacityPoolStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Mode == b.Mode && a.Nodes == b.Nodes && a.SpotNodes == b.SpotNodes &&
		a.OnDemandNodes == b.OnDemandNodes && a.SpotShare == b.SpotShare && a.SavingsPerHour == b.SavingsPerHour &&
		slices.Equal(a.SelectedMarkets, b.SelectedMarkets) && slices.Equal(a.Conditions, b.Conditions)
}
