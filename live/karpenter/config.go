package karpenter

import (
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// Annotations, labels and taints that this package writes. All that is put on a
// NodeClaim is copied by Karpenter to its Node.
const (
	// PoolLabel names the CapacityPool on NodePools, NodeClaims and Nodes.
	PoolLabel = "spotter.dev/pool"

	// AdoptAnnotation on a NodePool that Spotter did not create names the CapacityPool that may
	// write its weight and limits.
	AdoptAnnotation = "spotter.dev/adopt"

	// SteerAnnotation on a NodePool is what the pool should buy, as JSON.
	SteerAnnotation = "spotter.dev/steer"

	// WrittenAnnotation on a NodePool is when Spotter last wrote it, in RFC 3339.
	WrittenAnnotation = "spotter.dev/written"

	// NarrowingAnnotation on a NodePool is since when it buys nothing, in RFC 3339, so
	// that it can be narrowed once what Karpenter had under way is there.
	NarrowingAnnotation = "spotter.dev/narrowing"

	// TokenAnnotation on a NodeClaim is the token of the Launch that it came from,
	// and MarketsAnnotation the names of the markets that were asked, by commas.
	TokenAnnotation   = "spotter.dev/launch-token"
	MarketsAnnotation = "spotter.dev/markets"

	// ReplacesAnnotation on a NodeClaim names the Node whose pods it is for.
	ReplacesAnnotation = "spotter.dev/replaces"

	// ProtectedAnnotation is [backend.AnnotationProtected].
	ProtectedAnnotation = backend.AnnotationProtected
)

// BackendName is the name of this backend in calls of a Sink.
const BackendName = "karpenter"

// A Config says how to work with Karpenter.
type Config struct {
	// Clock gives the time.
	Clock clock.PassiveClock

	// Log takes what happens; nil means nothing is logged.
	Log *slog.Logger

	// Ahead writes what a step waits for: what is steered, launched and tended. Nil means
	// the client of New.
	Ahead client.Client

	// NodeClass is the kind of the node classes. Empty lets it be found among those
	// of the providers that are known.
	NodeClass schema.GroupVersionKind

	// Provider is the provider of nodes that do not name one. They are in the one of Regions whose
	// name is a prefix of that of their zone.
	Provider string
	Regions  []string

	// Since is the time up to which events were already reported to the sink: older ones are not
	// reported again. Zero means the second of New: times of conditions have no higher precision.
	Since policy.Time

	// WriteEvery is the least time between two changes to the markets and disruption
	// settings of the NodePools of a pool. Raising it lets markets lag behind the plan
	// for longer.
	WriteEvery time.Duration

	// LimitsEvery is the least time between two changes to their weights and limits,
	// which touch no running node, while no pod waits for them. Raising it writes less,
	// and has more of what a pool grows by bought on demand.
	LimitsEvery time.Duration

	// NarrowAfter is how long a NodePool for spot buys nothing before a market is
	// dropped from it: Karpenter may be about to make a claim from what it read before,
	// whose node would then drift. It is longer than Karpenter collects pods (10 s) and
	// validates a replacement (15 s). Raising it sends more of a sudden demand to
	// on-demand.
	NarrowAfter time.Duration

	// LaunchTimeout is how long a NodeClaim of Spotter may stay without a machine: while one does,
	// Karpenter neither provisions nor disrupts anywhere. Raising it tolerates slower providers.
	LaunchTimeout time.Duration

	// UnlaunchedMax is the most NodeClaims of Spotter without a machine at a time. Raising it
	// replaces more nodes before they are drained, and keeps Karpenter waiting for longer.
	UnlaunchedMax int

	// ProtectMax is how long a node that is not a replacement may stay protected from Karpenter by
	// Spotter, unless one of Spotter's drains waits for it.
	ProtectMax time.Duration

	// ProtectIdle is how long a node stays protected when no drain that it was protected
	// for is at work: a crash ended it, or the drained node is gone and its pods have not
	// been created again. It is longer than Kubernetes keeps pods bound to a deleted node
	// (40 s, the quarantine of its garbage collector for pods) and, with LimitsEvery, less
	// than a minute. Raising it keeps nodes for nothing after a crash, lowering it buys
	// them twice.
	ProtectIdle time.Duration

	// SpotWeight and OnDemandWeight are the weights of the two NodePools while spot
	// goes first; they change places when no spot is wanted.
	SpotWeight, OnDemandWeight int32
}

// DefaultConfig returns the configuration in use unless stated otherwise.
func DefaultConfig() Config {
	return Config{
		Clock:         clock.RealClock{},
		WriteEvery:    10 * time.Minute,
		LimitsEvery:   10 * time.Second, // as often as Karpenter looks for nodes to remove
		NarrowAfter:   20 * time.Second,
		LaunchTimeout: time.Minute,
		UnlaunchedMax: 3,
		ProtectMax:    20 * time.Minute,
		ProtectIdle:   45 * time.Second,
		SpotWeight:    50, OnDemandWeight: 40,
	}
}

// now returns the time.
func (c *Config) now() policy.Time { return policy.TimeOf(c.Clock.Now()) }

// weightMax is the greatest weight that a NodePool may have.
const weightMax = 100

func (c *Config) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"WriteEvery", c.WriteEvery}, {"LimitsEvery", c.LimitsEvery}, {"NarrowAfter", c.NarrowAfter}, {"LaunchTimeout",
			c.LaunchTimeout}, {"ProtectMax", c.ProtectMax}, {"ProtectIdle", c.ProtectIdle},
	} {
		if d.value <= 0 {
			return fmt.Errorf("karpenter: %s is %v, want more than 0", d.name, d.value)
		}
	}
	switch {
	case c.Clock == nil:
		return fmt.Errorf("karpenter: Clock is not set")
	case c.UnlaunchedMax < 1:
		return fmt.Errorf("karpenter: UnlaunchedMax is %d, want at least 1", c.UnlaunchedMax)
	case c.OnDemandWeight < 1 || c.SpotWeight <= c.OnDemandWeight || c.SpotWeight > weightMax:
		return fmt.Errorf("karpenter: SpotWeight is %d and OnDemandWeight %d, want 1 ≤ OnDemandWeight < SpotWeight ≤ %d",
			c.SpotWeight, c.OnDemandWeight, weightMax)
	}
	return nil
}
