// Package backend is the interface between the controller and its backends. Karpenter, Auto Scaling
// groups and Rackspace Spot each provision the nodes of the pools that select them. The package
// contains almost no logic.
package backend

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// AnnotationProtected marks an object on which Spotter has set karpenter.sh/do-not-disrupt. Its
// value is the reason and the time, such as "drain 2026-01-02T15:04:05Z". ProtectedByDrain is the
// reason of a node that is being drained.
const (
	AnnotationProtected = "spotter.dev/protected"
	ProtectedByDrain    = "drain"
)

// A Backend changes the capacity of the pools that select it.
//
// Steer and Launch may be called again with the same argument and then have no further effect.
// Launch returns driver.ErrNoCapacity, wrapped or not, if the market has no capacity, and a [Held]
// if it does not launch for a reason that the user should know.
type Backend interface {
	Steer(context.Context, *policy.Snapshot, *policy.Steer) error
	Launch(context.Context, *policy.Snapshot, *policy.Launch) error
	NodeReleaser
}

// A NodeReleaser performs a backend's part of a drain. The node argument is the node at the last
// read.
type NodeReleaser interface {
	// Prepare readies a node before it is cordoned: it keeps other controllers from replacing or
	// terminating the node. If it returns a [Held], the drain does not start. It may be called
	// again.
	Prepare(ctx context.Context, node *corev1.Node) error

	// Replaced returns the combined progress of the launches with the tokens.
	Replaced(ctx context.Context, tokens []string) (Replacement, error)

	// Release releases an empty node to its provisioner. It returns [ErrNotYet] while a temporary
	// condition prevents that, such as a volume that is still attached. After its first success the
	// drain cannot be undone.
	Release(ctx context.Context, node *corev1.Node) error

	// Undo reverts the effects of Prepare, and ends what the backend kept for the replacements with
	// the tokens.
	Undo(ctx context.Context, node *corev1.Node, tokens []string) error

	// Settle ends what the backend kept for the replacements with the tokens, such as their
	// scale-in protection, once the node is gone.
	Settle(ctx context.Context, tokens []string) error
}

// A Replacement is the progress of the nodes that a drain waits for.
type Replacement uint8

// The progress of launches. If one launch has failed, all count as failed.
const (
	ReplacementWaiting Replacement = iota
	ReplacementReady               // all are initialized
	ReplacementFailed
)

// A FencedError means that a write was not sent because the fence returned Err.
type FencedError struct{ Err error }

func (e *FencedError) Error() string { return "not written: " + e.Err.Error() }

// Unwrap returns the error of the fence.
func (e *FencedError) Unwrap() error { return e.Err }

// ErrNotYet means that the call must be repeated later.
var ErrNotYet = errors.New("not yet")

// Together returns the combined progress of the launches of tokens: that of the slowest launch, or
// ReplacementFailed once one has failed.
func Together(tokens []string, of func(token string) (Replacement, error)) (Replacement, error) {
	all := ReplacementReady
	for _, token := range tokens {
		switch how, err := of(token); {
		case err != nil:
			return ReplacementWaiting, err
		case how == ReplacementFailed:
			return how, nil
		case how == ReplacementWaiting:
			all = how
		}
	}
	return all, nil
}

// A Held is the error of an action that was not taken. Message is a sentence for the user that
// explains why, and Reason the CamelCase reason of a condition or an Event.
type Held struct {
	Reason, Message string

	// By is the other controller that acts on the object, or ActorNone. After a notice, a drain
	// continues without its backend unless another controller drains the node.
	By policy.Actor
}

// Error returns the reason and the message.
func (h *Held) Error() string { return h.Reason + ": " + h.Message }

// Hold returns a [Held].
func Hold(reason, format string, args ...any) error {
	return &Held{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Leave returns a [Held] for an object on which another controller acts.
func Leave(by policy.Actor, reason, format string, args ...any) error {
	return &Held{Reason: reason, Message: fmt.Sprintf(format, args...), By: by}
}

// A Machine is a node as its backend reports it, from the launch request to the end of the machine,
// including the time without a Node object. Fields that the backend does not know are zero; the
// Node object then determines them.
type Machine struct {
	// Name is the name of the NodeClaim, instance or SpotNode. It is unique within the backend and
	// never reused.
	Name string

	// Pool is the name of the CapacityPool, and Market the name of the market as in
	// [policy.Market.Name].
	Pool, Market string

	// ProviderID and Node are the provider ID and the name of the Node object; empty until they are
	// known.
	ProviderID, Node string

	// Phase is NodeLaunching until the Node object exists, and NodeDeleting once the backend
	// releases the machine. Between the two, the Node object determines it.
	Phase policy.NodePhase

	// Token is the token of the Launch; empty for a machine that Spotter did not launch.
	Token string

	// Bid is the maximum price per hour, if the market takes bids.
	Bid policy.Money

	// Launched is the time of the launch request.
	Launched policy.Time

	// ActedBy is the controller that is terminating the machine, where the backend knows.
	ActedBy policy.Actor

	// AtGroupMin corresponds to [policy.Node.AtGroupMin].
	AtGroupMin bool

	// Allocatable, Labels and Taints are expected of the machine's Node; zero means those of the
	// type and the pool.
	Allocatable policy.Resources
	Labels      []policy.Label
	Taints      []policy.Taint
}

// A Notice is a warning from the provider, or from another controller that reads the warnings.
type Notice struct {
	// Machine is the instance ID, a provider ID that ends in it, or the name of the Node.
	Machine string

	// At is the time at which the provider issued the notice. ReclaimAt is the time at which it
	// takes the machine; zero for a rebalance recommendation, which has no such time.
	At, ReclaimAt policy.Time

	// ActedBy is the other controller that is expected to drain the node because of the notice, or
	// ActorNone.
	ActedBy policy.Actor

	// Unclaimed means that ActedBy of an earlier notice was wrong: no controller has started to
	// drain the node.
	Unclaimed bool

	// Source is the source of the notice: "sqs", "karpenter", "nth" or "node".
	Source string
}

// An Event is an observation of this cluster in a market, or in all markets of a scope.
type Event struct {
	Kind   EventKind
	Pool   string // empty if unknown
	Market string // empty if Scope selects the markets, or if unknown
	Scope  Scope
	At     policy.Time
}

// A Scope selects the known markets of a capacity type. An empty field other than Provider matches
// every value. Without a provider it selects nothing.
type Scope struct {
	Provider, Region, Zone string

	// Family is the family of instance types as the catalog names it, and Type one type.
	Family, Type string

	Capacity policy.CapacityType
}

// An EventKind is the kind of an observation.
type EventKind uint8

// The kinds of observation that [policy.Experience] counts.
const (
	MetLaunch EventKind = iota
	MetRefusal
	MetReclaim
)

// A Sink receives the observations of a backend. Its methods may be called at any time and from any
// goroutine.
type Sink interface {
	// SetMachine reports a new or changed machine. The last call determines its state.
	SetMachine(backend string, m Machine)

	// DropMachine reports that a machine no longer exists.
	DropMachine(backend, name string)

	// SetSteer reports the last steer of a pool, where its objects record it.
	SetSteer(pool string, s policy.SteerState)

	// Notice reports a notice.
	Notice(Notice)

	// Meet reports an event. Each event must be reported once.
	Meet(Event)

	// Wake requests a step soon. reason is one of the constants in wake.go.
	Wake(reason string)
}
