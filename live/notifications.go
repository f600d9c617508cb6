package live

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/notify"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// notifySwitch sends a notification if the kill switch was turned on or off since the last step,
// possibly by the previous leader, or if it became unreadable or readable.
func (c *Controller) notifySwitch(wasOn bool, was, now permit.Switch) {
	if now.On == wasOn && now.Unreadable == was.Unreadable {
		return
	}
	c.parts.Notifier.Notify(notify.Event{Type: notify.KillSwitchChanged, Subject: c.cfg.KillSwitch, Data: struct {
		On         bool   `json:"on"`
		Unreadable bool   `json:"unreadable"`
		Problem    string `json:"problem,omitempty"`
	}{now.On, now.Unreadable, now.Problem}})
}

// notifyDrain sends a notification if a drain was undone.
func (c *Controller) notifyDrain(r *drain.Result) {
	if r.Outcome != drain.OutcomeUndone {
		return
	}
	c.parts.Notifier.Notify(notify.Event{Type: notify.DrainUndone, Subject: r.Node, Data: struct {
		Node    string `json:"node"`
		Pool    string `json:"pool"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Urgent  bool   `json:"urgent"`
	}{r.Node, r.Pool, r.Reason, r.Message, r.Urgent}})
}

// notifyGate sends a notification if a gate was closed or opened.
func (c *Controller) notifyGate(x *policy.Gate) {
	if !c.table.turnGate(x.Budget, x.Closed) {
		return
	}
	c.parts.Notifier.Notify(notify.Event{Type: notify.GateChanged, Subject: x.Budget, Data: struct {
		Budget string `json:"budget"`
		Closed bool   `json:"closed"`
		Reason string `json:"reason"`
	}{x.Budget, x.Closed, x.Why.Text}})
}

// turnGate records the state of a gate and reports whether it is new or has changed.
func (t *table) turnGate(budget string, closed bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.gates[budget]
	t.gates[budget] = closed
	return !known || was != closed
}

// notifyRamp sends a notification of the current stage of a pool's ramp.
func (c *Controller) notifyRamp(pool string, r *ramp) {
	c.parts.Notifier.Notify(notify.Event{Type: notify.RampChanged, Subject: pool, Data: struct {
		Pool    string `json:"pool"`
		Stage   string `json:"stage"`
		Message string `json:"message"`
	}{pool, [...]string{"one-node", "one-percent", "done"}[r.Stage], r.says()}})
}

// A saved is the cost of the nodes of a pool in a week, the cost of the same nodes on demand, and
// the difference, in dollars.
type saved struct {
	Pool     string  `json:"pool,omitempty"`
	Paid     float64 `json:"paidDollars"`
	OnDemand float64 `json:"onDemandDollars"`
	Saved    float64 `json:"savedDollars"`
}

func savedOf(pool string, a Account) saved {
	return saved{pool, a.Paid.Float(), a.OnDemand.Float(), a.Saved().Float()}
}

// notifySavings sends a notification of the savings in the first step of each week (UTC). It does
// not include savings before the first week that a controller observed.
func (c *Controller) notifySavings(s *policy.Snapshot) {
	since := c.store.head.Summed
	if since != 0 && week(since) == week(s.Now) {
		return
	}
	c.store.head.Summed = s.Now
	var all Account
	pools := []saved{}
	for i := range s.Pools {
		b := c.store.book(s.Pools[i].Name)
		a := Account{Paid: b.Savings.Total.Paid - b.Summed.Paid, OnDemand: b.Savings.Total.OnDemand - b.Summed.OnDemand}
		b.Summed = Account{Paid: b.Savings.Total.Paid, OnDemand: b.Savings.Total.OnDemand}
		pools = append(pools, savedOf(s.Pools[i].Name, a))
		all.add(a)
	}
	if since == 0 {
		return
	}
	c.parts.Notifier.Notify(notify.Event{Type: notify.WeeklySavings, Subject: week(since), Data: struct {
		saved
		From  string  `json:"from"`
		To    string  `json:"to"`
		Pools []saved `json:"pools"`
	}{savedOf("", all), since.String(), s.Now.String(), slices.Clip(pools)}})
}

// week returns the ISO 8601 week of t.
func week(t policy.Time) string {
	year, n := t.Std().ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, n)
}
