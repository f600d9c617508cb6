package drain

import (
	"context"
	"errors"

	"github.com/spotter-dev/spotter/live/backend"
)

// check is the phase before any change.
func (r *round) check(ctx context.Context, d *drain) (Phase, error) {
	if d.urgent() {
		return PhasePreparing, nil
	}
	if r.now().Before(d.retryAt) {
		return d.Phase, nil
	}
	if d.late(r.now()) {
		return d.fail("Deadline", "its deadline passed before it could start"), nil
	}
	wait, err := r.admit(ctx, d)
	if held := new(backend.Held); errors.As(err, &held) {
		return d.fail(held.Reason, held.Message), nil
	}
	if err != nil {
		wait = err.Error()
	}
	if wait == "" {
		return PhasePreparing, nil
	}
	if r.now().Sub(d.began) >= r.cfg.CheckMax {
		return d.fail("BudgetAllowsNone", wait), nil
	}
	d.cause, d.retryAt = wait, r.now().Add(r.cfg.EvictRetry)
	return d.Phase, err
}

// admit returns the reason for which the drain must wait before its node is cordoned; empty if it
// may start. It returns a [backend.Held] if waiting does not help.
func (r *round) admit(ctx context.Context, d *drain) (wait string, err error) {
	pods, err := r.view.checkNode(ctx, d.node, d.Pool)
	if err != nil {
		return "", err
	}
	return r.api.rehearse(ctx, d, pods)
}
