package drain

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A Recorder reports events of nodes to users. The EventRecorder of client-go's package events
// implements it.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// A Meter counts the actions of drains. It must be safe for concurrent use.
type Meter interface {
	// Entered counts a drain that enters a phase.
	Entered(node, pool string, phase Phase)

	// Evicted counts the answer to one requested eviction.
	Evicted(node string, pod types.NamespacedName, pool string, answer Answer)

	// Ended counts a drain that has ended.
	Ended(Result)
}

// NodeReleasers finds the backend of a pool or, if the pool no longer exists, the backend of the
// provisioner in the marks on a node. An error means that neither is known: the node cannot be
// released, but the changes to it can be undone.
type NodeReleasers interface {
	NodeReleaser(pool string, of policy.Provisioner) (backend.NodeReleaser, error)
}

// An Authority decides which actions are permitted for a pool now; [permit.Authority] implements
// it.
type Authority interface {
	Pool(ctx context.Context, name string) (permit.Decision, error)
	Spec(ctx context.Context, name string) (*v1alpha1.CapacityPool, error)
	Check(ctx context.Context) error
}

// A Config contains the dependencies and the limits of a [Reconciler]. Start from [DefaultConfig].
type Config struct {
	// Clock provides the time.
	Clock clock.WithTicker

	// Log receives messages that are not suitable as Events. Events and Meter may be nil.
	Log    *slog.Logger
	Events Recorder
	Meter  Meter

	// Authority decides which actions are permitted for a pool now; nil permits all.
	Authority Authority

	// Urgent is the client that writes for nodes under notice and for undoing drains; nil means the
	// ordinary client.
	Urgent client.Client

	// DrainMax is how long a drain without a deadline may take before it is undone. A higher value
	// gives slow applications more time to leave.
	DrainMax time.Duration

	// CheckMax is how long a drain may wait before its start for PodDisruptionBudgets that allow no
	// eviction now. A higher value starts more drains, later.
	CheckMax time.Duration

	// EvictRetry is the time before a retry of an eviction, if the API server suggests none, and of
	// a failed call of a backend. A higher value drains nodes later and sends fewer requests.
	EvictRetry time.Duration

	// VolumesMax is how long an empty node waits for its volumes to be detached. A higher value
	// delays the release of nodes whose volumes are never detached.
	VolumesMax time.Duration

	// ReleaseMax is how long a backend may take to accept an empty node before the drain is undone.
	ReleaseMax time.Duration

	// LateMax is the time after the announced reclaim for which the reclaim of a node under notice
	// is still expected.
	LateMax time.Duration

	// UnreadableMax is how long drains wait while the kill switch cannot be read before they are
	// undone. A higher value keeps nodes cordoned for longer.
	UnreadableMax time.Duration

	// ShutdownMax is the maximum duration of Shutdown.
	ShutdownMax time.Duration

	// CallMax is the maximum duration of one call, including the wait for the write limit.
	CallMax time.Duration

	// Interval is the time between two reconciliations of a node that is being drained, and
	// LookEvery the time between two searches of all nodes for marks without a drain. Higher values
	// cause fewer reads of the cache and detect changes later.
	Interval, LookEvery time.Duration

	// TurnMax is the time after which no more pods of a node are evicted before other nodes have
	// had their turn. It does not apply to nodes under notice.
	TurnMax time.Duration

	// Parallel is the maximum number of nodes without a notice that are processed at the same time.
	Parallel int
}

// DefaultConfig returns the limits of the controller. DrainMax and EvictRetry have the values of
// the simulator. VolumesMax is the time after which Kubernetes itself detaches a volume by force.
func DefaultConfig() Config {
	return Config{
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		DrainMax: 15 * time.Minute, CheckMax: time.Minute, EvictRetry: 10 * time.Second,
		VolumesMax: 6 * time.Minute, ReleaseMax: 5 * time.Minute, LateMax: 10 * time.Minute, UnreadableMax: time.Minute,
		ShutdownMax: 55 * time.Second, CallMax: 15 * time.Second,
		Interval: time.Second, LookEvery: 5 * time.Second, TurnMax: time.Second, Parallel: 8,
	}
}

func (c *Config) validate() error {
	switch {
	case c.Clock == nil:
		return fmt.Errorf("drain: clock is not set")
	case c.Log == nil:
		return fmt.Errorf("drain: log is not set")
	case c.Parallel < 1:
		return fmt.Errorf("drain: parallel %d is less than 1", c.Parallel)
	}
	for _, f := range [...]struct {
		name  string
		value time.Duration
	}{
		{"drain max", c.DrainMax}, {"check max", c.CheckMax}, {"evict retry", c.EvictRetry},
		{"volumes max", c.VolumesMax}, {"release max", c.ReleaseMax}, {"late max", c.LateMax}, {"unreadable max",
			c.UnreadableMax},
		{"shutdown max", c.ShutdownMax}, {"call max", c.CallMax}, {"interval", c.Interval},
		{"look every", c.LookEvery}, {"turn max", c.TurnMax},
	} {
		if f.value <= 0 {
			return fmt.Errorf("drain: %s %v is not above 0", f.name, f.value)
		}
	}
	return nil
}
