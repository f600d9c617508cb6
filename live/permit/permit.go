// Package permit answers, at the moment at which something is about to be changed,
// whether it may be. What decides about that (the mode of the pool, the kill switch,
// the lease) is read from the API server and never from a cache, and is at most
// [Config.Fresh] old.
//
// A context carries the purpose of a write: [Act] for a pool, [Enforce] for GPU budgets, [Undo] for
// undoing a mark of Spotter. The HTTP transport of all clients calls [Authority.Request] after the
// wait for the write limit and right before it sends. Callers of a cloud call [Authority.Check]
// right before the call. A write without a permit in its context is refused unless it is of an
// object that Spotter owns, so that a forgotten check cannot do harm.
package permit

import (
	"context"
	"fmt"
)

// A Decision says how far a pool may go.
type Decision string

// The decisions.
const (
	Active     Decision = "active"            // it may be changed
	Shadow     Decision = "shadow"            // the mode of the controller or of the pool lets nothing be changed
	Off        Decision = "off"               // the pool is off
	Stopped    Decision = "stopped"           // the kill switch is on
	Unreadable Decision = "switch-unreadable" // the kill switch may be on
	Conflict   Decision = "conflict"          // another pool selects the same nodes
	Gone       Decision = "gone"              // there is no such pool
	Claimed    Decision = "claimed"           // another release acts on the pools of this cluster
	Unclaimed  Decision = "unclaimed"         // no release has claimed the pool yet
)

// A Denied is the error of a write that may not be made.
type Denied struct {
	// Pool is the CapacityPool; empty for what spans pools.
	Pool     string
	Decision Decision
}

// Error names the pool and the decision.
func (d *Denied) Error() string {
	if d.Pool == "" {
		return fmt.Sprintf("not written: the controller is %s", d.Decision)
	}
	return fmt.Sprintf("not written: pool %s is %s", d.Pool, d.Decision)
}

// An Unpermitted is the error of a write without a permit. It is a bug of the program.
type Unpermitted struct{ What string }

// Error names the write.
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

// Act returns a context for changes on behalf of a pool. They are made while the
// decision on the pool is Active.
func Act(ctx context.Context, pool string) context.Context {
	return context.WithValue(ctx, permitKey{}, permit{act, pool})
}

// Undo returns a context for undoing Spotter's own changes. That is done in every mode of a pool
// and under the kill switch, but not by a controller in shadow.
func Undo(ctx context.Context) context.Context {
	return context.WithValue(ctx, permitKey{}, permit{purpose: undo})
}

// Enforce returns a context for the enforcement of GPU budgets, which spans pools.
func Enforce(ctx context.Context) context.Context {
	return context.WithValue(ctx, permitKey{}, permit{purpose: enforce})
}
