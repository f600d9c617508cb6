package live

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// urgent are the reasons that cannot wait: the provider takes a node within minutes,
// or has taken it.
var urgent = []string{"kill-switch", "late-notice", "lost-node", "notice", "outbid"}

// Why a step is taken that nothing but time asked for.
const (
	wakeStart = "start"
	wakePlan  = "plan"
	wakeRetry = "retry"
)

// wakeSettings is why a step is taken after the settings were changed.
const wakeSettings = "settings"

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
func (a *alarm) wait(ctx context.Context, due time.Time, reason string, poll <-chan string) ([]string, error) {
	if !due.After(a.clock.Now()) {
		reasons := []string{reason}
		a.drain(&reasons)
		slices.Sort(reasons)
		return reasons, ctx.Err()
	}
	timer := a.clock.NewTimer(due.Sub(a.clock.Now()))
	defer timer.Stop()
	reasons := []string{}
	soon := func(r string) bool {
		if !slices.Contains(reasons, r) {
			reasons = append(reasons, r)
		}
		if slices.Contains(urgent, r) {
			return true
		}
		if at := a.clock.Now().Add(a.collect); at.Before(due) {
			due = at
			timer.Reset(a.collect)
		}
		return false
	}
	for {
		var now bool
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-a.wakes:
			now = soon(r)
		case r := <-poll:
			now = soon(r)
		case <-timer.C():
			if len(reasons) == 0 {
				reasons = append(reasons, reason)
			}
			now = true
		}
		if now {
			a.drain(&reasons)
			slices.Sort(reasons)
			return reasons, nil
		}
	}
}

// drain takes what has been said already: the step that comes answers it as well.
func (a *alarm) drain(reasons *[]string) {
	for {
		select {
		case r := <-a.wakes:
			if !slices.Contains(*reasons, r) {
				*reasons = append(*reasons, r)
			}
		default:
			return
		}
	}
}
