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

// Annotations, labels and taints that this package writes. Karpenter copies those of a NodeClaim to
// its Node.
const (
	// PoolLabel is the label of NodePools, NodeClaims and Nodes that names their CapacityPool.
	PoolLabel = "spotter.dev/pool"

	// AdoptAnnotation on a NodePool that Spotter did not create names the CapacityPool that may
	// write its weight and limits.
	AdoptAnnotation = "spotter.dev/adopt"

	// SteerAnnotation on a NodePool contains, as JSON, the markets in which the pool should buy.
	SteerAnnotation = "spotter.dev/steer"

	// WrittenAnnotation on a NodePool is the time at which Spotter last wrote it, in RFC 3339.
	WrittenAnnotation = "spotter.dev/written"

	// NarrowingAnnotation on a NodePool is the time since which it buys nothing, in RFC 3339. The
	// NodePool can be narrowed once the launches that Karpenter had in progress then have a
	// machine.
	NarrowingAnnotation = "spotter.dev/narrowing"

	// TokenAnnotation on a NodeClaim is the token of its Launch, and MarketsAnnotation the names of
	// the markets that the Launch requested, separated by commas.
	TokenAnnotation   = "spotter.dev/launch-token"
	MarketsAnnotation = "spotter.dev/markets"

	// ReplacesAnnotation on a NodeClaim names the Node that it replaces.
	ReplacesAnnotation = "spotter.dev/replaces"

	// ProtectedAnnotation is [backend.AnnotationProtected].
	ProtectedAnnotation = backend.AnnotationProtected
)

// BackendName is the name of this backend in calls of a [backend.Sink].
const BackendName = "karpenter"

// A Config is the configuration of a [Backend].
type Config struct {
	// Clock returns the current time.
	Clock clock.PassiveClock

	// Log receives log messages. Nil discards them.
	Log *slog.Logger

	// Ahead writes the objects that a step waits for: steered NodePools, launches and protection of
	// nodes. Nil means the client that is passed to New.
	Ahead client.Client

	// NodeClass is the kind of the node classes. If it is empty, the first kind of nodeClassKinds
	// that the API server has is used.
	NodeClass schema.GroupVersionKind

	// Provider is the provider of all nodes. If it is empty, the provider ID or the node class
	// determines it. The region of a node that does not name it is the one of Regions whose name is
	// a prefix of the name of its zone.
	Provider string
	Regions  []string

	// Since is the time up to which events were already reported to the sink: older events are not
	// reported again. Zero means the time at which New is called, truncated to seconds, since times
	// of conditions have no higher precision.
	Since policy.Time

	// WriteEvery is the minimum time between two changes of the markets and disruption settings of
	// a pool's NodePools. If it is raised, markets lag behind the plan for longer.
	WriteEvery time.Duration

	// LimitsEvery is the minimum time between two changes of the weights and limits of a pool's
	// NodePools, which affect no running node, unless a pod waits for them. If it is raised,
	// Spotter writes less often, and more of the growth of a pool is bought on demand.
	LimitsEvery time.Duration

	// NarrowAfter is how long a Spot NodePool buys nothing before a market is removed from it:
	// Karpenter may be about to create a claim from an earlier read, and the node of that claim
	// would drift. It must be longer than Karpenter batches pods (10 s) and validates a replacement
	// (15 s). If it is raised, more of a sudden demand is bought on demand.
	NarrowAfter time.Duration

	// LaunchTimeout is how long a NodeClaim of Spotter may exist without a machine: meanwhile,
	// Karpenter neither provisions nor disrupts in the whole cluster. If it is raised, slower
	// providers are tolerated.
	LaunchTimeout time.Duration

	// UnlaunchedMax is the maximum number of NodeClaims of Spotter without a machine at a time. If
	// it is raised, more nodes are replaced before they are drained, and Karpenter waits for
	// longer.
	UnlaunchedMax int

	// ProtectMax is how long Spotter may protect a node that is not a replacement from Karpenter,
	// unless one of Spotter's drains waits for the node.
	ProtectMax time.Duration

	// ProtectIdle is how long a node stays protected when no drain that needs it is in progress:
	// the controller restarted, or the drained node is gone and its pods have not been recreated.
	// It must be longer than Kubernetes keeps pods bound to a deleted node (40 s, the quarantine of
	// the pod garbage collector) and, together with LimitsEvery, less than a minute. If it is
	// raised, nodes are kept needlessly after a crash; if it is lowered, they may be bought twice.
	ProtectIdle time.Duration

	// SpotWeight and OnDemandWeight are the weights of the two NodePools while Spot is preferred.
	// They are swapped while no Spot capacity is wanted.
	SpotWeight, OnDemandWeight int32
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Clock:         clock.RealClock{},
		WriteEvery:    10 * time.Minute,
		LimitsEvery:   10 * time.Second, // the interval at which Karpenter looks for nodes to remove
		NarrowAfter:   20 * time.Second,
		LaunchTimeout: time.Minute,
		UnlaunchedMax: 3,
		ProtectMax:    20 * time.Minute,
		ProtectIdle:   45 * time.Second,
		SpotWeight:    50, OnDemandWeight: 40,
	}
}

// now returns the current time.
func (c *Config) now() policy.Time { return policy.TimeOf(c.Clock.Now()) }

// weightMax is the maximum weight of a NodePool.
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
