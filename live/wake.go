package live

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/backend"
)

// urgent are the reasons that cannot wait: the provider reclaims a node within minutes or has
// reclaimed it, or a user has changed the modes of pools. Those in noticed report a notice.
var (
	urgent = []string{wakeSwitch, wakeApproval, wakeLease, backend.WakeLateNotice, backend.WakeLost,
		backend.WakeNotice, backend.WakeOutbid, backend.WakePools}
	noticed = []string{backend.WakeLateNotice, backend.WakeNotice}
)

// Reasons of steps that are not caused by an event.
const (
	wakeStart = "start"
	wakePlan  = "plan"
	wakeRetry = "retry"
)

// What wakes the controller that it finds itself.
const (
	wakeSwitch   = "kill-switch"
	wakeLease    = "lease"    // another replica leads
	wakeSettings = "settings" // they were changed
	wakeApproval = "approval" // a person has approved a plan, or takes that back
)

// wakesMax is how many wakes may wait for the next step.
const wakesMax = 64

// A waker requests steps, and has nodes under notice drained at once.
type waker struct {
	cfg   *Config
	parts *Parts
	table *table
	wakes chan string
}

// wake requests a step soon.
func (w *waker) wake(reason string) {
	select {
	case w.wakes <- reason:
	default: // enough is said
	}
}

// noticeRetry is the time until notices that could not be read are requested again.
const noticeRetry = time.Second

// relay hands on what wakes the controller. Nodes under notice it has drained at once,
// also while a step is being taken, and those that a leader before has left.
func (w *waker) relay(ctx context.Context) error {
	behind := w.notice(ctx)
	for {
		var again <-chan time.Time
		if behind {
			again = w.parts.Clock.After(noticeRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case r := <-w.parts.Wakes:
			if slices.Contains(noticed, r) {
				behind = w.notice(ctx)
			}
			w.wake(r)
		case <-again:
			behind = w.notice(ctx)
		}
	}
}

// notice has all nodes under notice drained, and reports whether it does not know which.
func (w *waker) notice(ctx context.Context) (behind bool) {
	x, is := w.parts.Observer.(Noticer)
	if !is {
		return false
	}
	all, err := x.Notices(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.parts.Log.Warn("the nodes under notice are not known yet", "error", err)
		}
		return true
	}
	for _, n := range all {
		w.parts.Drains.Notice(n)
	}
	return false
}

// watchSwitch reads the kill switch and approvals between steps, so that they do not wait for
// the next of them.
func (w *waker) watchSwitch(ctx context.Context) error {
	var approvals approvalWatch
	ticker := w.parts.Clock.NewTicker(w.cfg.SwitchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if w.table.isApproving() && approvals.changed(ctx, w.parts.Reader) {
			w.wake(wakeApproval)
		}
		if kill, err := w.parts.Authority.Switch(ctx); err == nil && w.table.isTurned(kill) {
			w.wake(wakeSwitch)
		}
	}
}

// An alarm says when the next step is due. What happens is collected for a while,
// counted from the first of it, so that a hundred pods that come together make
// one step; what is urgent is due at once.
type alarm struct {
	clock   clock.WithTicker
	collect time.Duration
	wakes   <-chan string
}

// wait returns the reasons for the next step, ascending and each once, when it is
// due: at the given instant, or sooner.
func (a *alarm) wait(ctx context.Context, due time.Time, reason string) ([]string, error) {
	var reasons []string
	now := !due.After(a.clock.Now())
	if now {
		reasons = []string{reason}
	}
	timer := a.clock.NewTimer(due.Sub(a.clock.Now()))
	defer timer.Stop()
	for !now {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C():
			if len(reasons) == 0 {
				reasons = append(reasons, reason)
			}
			now = true
		case r := <-a.wakes:
			reasons, now = append(reasons, r), slices.Contains(urgent, r)
			if at := a.clock.Now().Add(a.collect); at.Before(due) {
				due = at
				timer.Reset(a.collect)
			}
		}
	}
	for len(a.wakes) > 0 { // the step that comes answers what has been said already as well
		reasons = append(reasons, <-a.wakes)
	}
	slices.Sort(reasons)
	return slices.Compact(reasons), ctx.Err()
}
