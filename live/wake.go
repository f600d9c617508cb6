package live

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/backend"
)

// urgent lists the reasons for a step that cannot wait: the provider reclaims a node within minutes
// or has reclaimed it, or a user has changed the modes of pools. noticed lists the reasons that
// report a notice.
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

// Reasons that the controller itself detects.
const (
	wakeSwitch   = "kill-switch"
	wakeLease    = "lease"    // another replica leads
	wakeSettings = "settings" // the settings were changed
	wakeApproval = "approval" // a plan was approved, or its approval was revoked
)

// wakesMax is the maximum number of reasons that wait for the next step.
const wakesMax = 64

// A waker requests steps, and orders drains of nodes under notice at once.
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
	default: // enough reasons wait already
	}
}

// noticeRetry is the wait before notices that could not be read are read again.
const noticeRetry = time.Second

// relay passes on the reasons for steps. It orders drains of nodes under notice at once, even
// during a step, including nodes that a previous leader did not drain.
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

// notice orders the drain of all nodes under notice. behind reports whether the notices could not
// be read.
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

// watchSwitch reads the kill switch and approvals between steps, so that changes do not wait for
// the next scheduled step.
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

// An alarm determines when the next step is due. Reasons are collected for the time collect after
// the first one, so that a hundred pods that are created together cause one step. An urgent reason
// is due at once.
type alarm struct {
	clock   clock.WithTicker
	collect time.Duration
	wakes   <-chan string
}

// wait blocks until the next step is due, at the time due or earlier. It returns the reasons for
// the step, sorted and without duplicates, or the error of ctx.
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
	for len(a.wakes) > 0 { // the next step also covers the reasons that already wait
		reasons = append(reasons, <-a.wakes)
	}
	slices.Sort(reasons)
	return slices.Compact(reasons), ctx.Err()
}
