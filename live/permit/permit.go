// Package permit decides, at the time of a change, whether it is permitted. The state that
// determines this (the mode of the pool, the kill switch, the Lease) is read from the API server,
// never from a cache, and is at most [Config.Fresh] old.
//
// A context carries the purpose of a write: [Act] for changes of a pool, [Enforce] for GPU budgets,
// [Undo] for undoing Spotter's own changes. The HTTP transport of all clients calls
// [Authority.Request] after the wait for the write limit, right before it sends a request. Code
// that calls a cloud API calls [Authority.Check] right before the call. A write without a permit in
// its context is refused, unless Spotter owns the object, so that a forgotten check does no harm.
package permit

import (
	"context"
	"fmt"
)

// A Decision is the answer to whether a pool may be changed.
type Decision string

// Decisions.
const (
	Active     Decision = "active"            // changes are permitted
	Shadow     Decision = "shadow"            // the mode of the controller or of the pool permits no changes
	Off        Decision = "off"               // the pool is off
	Stopped    Decision = "stopped"           // the kill switch is on
	Unreadable Decision = "switch-unreadable" // the kill switch may be on
	Conflict   Decision = "conflict"          // another pool selects the same nodes
	Gone       Decision = "gone"              // the pool does not exist
	Claimed    Decision = "claimed"           // another release acts on the pools of this cluster
	Unclaimed  Decision = "unclaimed"         // no release has claimed the pool yet
)

// A Denied is the error of a write that is not permitted.
type Denied struct {
	// Pool is the CapacityPool; empty for changes that span pools.
	Pool     string
	Decision Decision
}

// Error returns a message with the pool and the decision.
func (d *Denied) Error() string {
	if d.Pool == "" {
		return fmt.Sprintf("not written: the controller is %s", d.Decision)
	}
	return fmt.Sprintf("not written: pool %s is %s", d.Pool, d.Decision)
}

// An Unpermitted is the error of a write without a permit, which is a bug in the program.
type Unpermitted struct{ What string }

// Error returns a message that identifies the write.
func (u *Unpermitted) Error() string { return "not written: no permit for " + u.What }

type purpose uint8

const (
	act purpose = iota + 1
	undo
	enforce
)

type permit struct {
	purpose purpose
	pool    string
}

type permitKey struct{}

// Act returns a context for changes on behalf of a pool. They are permitted while the decision on
// the pool is Active.
func Act(ctx context.Context, pool string) context.Context {
	return context.WithValue(ctx, permitKey{}, permit{act, pool})
}

// Undo returns a context for undoing Spotter's own changes. This is permitted in every mode of a
// pool and while the kill switch is on, but not in shadow mode of the controller.
func Undo(ctx context.Context) context.Context {
	return context.WithValue(ctx, permitKey{}, permit{purpose: undo})
}

// Enforce returns a context for the enforcement of GPU budgets, which span pools.
func Enforce(ctx context.Context) context.Context {
	return context.WithValue(ctx, permitKey{}, permit{purpose: enforce})
}
