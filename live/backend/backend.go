// Package backend is what the controller and a backend know of each other:
// Karpenter, Auto Scaling groups and Rackspace Spot each provision the nodes of
// the pools that name them. It holds no logic.
package backend

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// AnnotationProtected says that karpenter.sh/do-not-disrupt on the same object was set by
// Spotter: why and since when, such as "drain 2026-01-02T15:04:05Z". ProtectedByDrain is why a
// node carries it that is drained.
const (
	AnnotationProtected = "spotter.dev/protected"
	ProtectedByDrain    = "drain"
)

// A Backend changes what the pools that name it hold.
//
// Steer and Launch may be called again with the same argument and then have no
// further effect. Launch returns driver.ErrNoCapacity, wrapped or not, when the
// market has nothing to give, and a [Held] when it is not done for a reason that
// the user should read.
type Backend interface {
	Steer(context.Context, *policy.Snapshot, *policy.Steer) error
	Launch(context.Context, *policy.Snapshot, *policy.Launch) error
	NodeReleaser
}

// A NodeReleaser is the backend's part in a drain. The node is as it was last read.
type NodeReleaser interface {
	// Prepare readies a node before it is cordoned: it keeps others from replacing
	// or ending it. A [Held] keeps the drain from beginning. It may be called again.
	Prepare(ctx context.Context, node *corev1.Node) error

	// Replaced reports how far the launches of the tokens have come together.
	Replaced(ctx context.Context, tokens []string) (Replacement, error)

	// Release releases an empty node to its provisioner. It returns [ErrNotYet] while a temporary
	// condition prevents that, such as a volume that is still attached. After its first success
	// nothing is undone.
	Release(ctx context.Context, node *corev1.Node) error

	// Undo takes back what Prepare did, and what it kept for the replacements of
	// the tokens.
	Undo(ctx context.Context, node *corev1.Node, tokens []string) error

	// Settle ends what was kept for the replacements once the node is gone, such as
	// their protection from being scaled in.
	Settle(ctx context.Context, tokens []string) error
}

// A Replacement is how far the nodes have come that a drain waits for.
type Replacement uint8

// What may have become of launches: one that failed fails all.
const (
	ReplacementWaiting Replacement = iota
	ReplacementReady               // all are initialized
	ReplacementFailed
)

// A FencedError means that a write was not sent, since the fence forbade it by Err.
type FencedError struct{ Err error }

func (e *FencedError) Error() string { return "not written: " + e.Err.Error() }

// Unwrap returns the error of the fence.
func (e *FencedError) Unwrap() error { return e.Err }

// ErrNotYet means that a call must be made again later.
var ErrNotYet = errors.New("not yet")

// Together returns the progress of the launches of tokens together: that of the slowest one, or
// failed as soon as one has failed.
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

// A Held says that something was left as it is, and why, in a sentence for the
// user. Reason is the CamelCase reason of a condition or an Event.
type Held struct {
	Reason, Message string

	// By is which other controller acts on it, ActorNone for none. Under a notice a drain continues
	// without its backend, unless another controller drains the node.
	By policy.Actor
}

// Error returns the message.
func (h *Held) Error() string { return h.Reason + ": " + h.Message }

// Hold returns a [Held].
func Hold(reason, format string, args ...any) error {
	return &Held{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Leave returns a [Held] for an object that another controller is acting on.
func Leave(by policy.Actor, reason, format string, args ...any) error {
	return &Held{Reason: reason, Message: fmt.Sprintf(format, args...), By: by}
}

// A Machine is a node as its backend knows it, from the order to its end, also
// while there is no Node object. Fields that the backend does not know are zero:
// what the Node object says then holds.
type Machine struct {
	// Name is unique for ever within the backend: of the NodeClaim, the instance,
	// the SpotNode.
	Name string

	// Pool is the CapacityPool's name and Market the market's, as
	// [policy.Market.Name].
	Pool, Market string

	// ProviderID and Node are those of the Node object, once known.
	ProviderID, Node string

	// Phase is NodeLaunching until the Node object exists, and NodeDeleting once the backend
	// releases the machine. Between the two, the Node object determines it.
	Phase policy.NodePhase

	// Token is that of its Launch; empty for a machine that Spotter did not order.
	Token string

	// Bid is the most to pay per hour if the market takes bids.
	Bid policy.Money

	// Launched is when the order was given.
	Launched policy.Time

	// ActedBy is who is terminating it, where the backend knows.
	ActedBy policy.Actor

	// AtGroupMin is [policy.Node.AtGroupMin].
	AtGroupMin bool

	// Allocatable, Labels and Taints are those expected of its Node; zero means
	// those of the type and the pool.
	Allocatable policy.Resources
	Labels      []policy.Label
	Taints      []policy.Taint
}

// A Notice is a warning from the provider, or from another controller that reads the warnings.
type Notice struct {
	// Machine is the instance ID or a ProviderID that ends in it, or the name of
	// the Node.
	Machine string

	// At is when the provider said so. ReclaimAt is when it takes the machine;
	// zero for a rebalance recommendation, which names no time.
	At, ReclaimAt policy.Time

	// ActedBy is which other controller is expected to drain the node because of it, ActorNone for
	// none.
	ActedBy policy.Actor

	// Unclaimed means that an earlier notice was wrong in ActedBy: no controller has started to
	// drain the node.
	Unclaimed bool

	// Source is where it was read: "sqs", "karpenter", "nth", "node".
	Source string
}

// An Event is an observation of the own cluster in a market.
type Event struct {
	Kind   EventKind
	Pool   string // empty when it is not known
	Market string
	At     policy.Time
}

// An EventKind is what was met.
type EventKind uint8

// What may be met: what [policy.Experience] counts.
const (
	MetLaunch EventKind = iota
	MetRefusal
	MetReclaim
)

// A Sink takes what a backend learns, at any time and from any goroutine.
type Sink interface {
	// SetMachine reports a machine, or a change to one; the last call holds.
	SetMachine(backend string, m Machine)

	// DropMachine reports that a machine no longer exists.
	DropMachine(backend, name string)

	// SetSteer reports the last steer of a pool, as far back as its objects show it.
	SetSteer(pool string, s policy.SteerState)

	// Notice reports a warning.
	Notice(Notice)

	// Meet reports an event, once.
	Meet(Event)

	// Wake requests a step soon, for one of the reasons in wake.go.
	Wake(reason string)
}
