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

// A Recorder reports to users what happened to a node. The EventRecorder of client-go's package
// events is one.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// A Meter counts what the pipeline does. It is called from several goroutines.
type Meter interface {
	// Entered counts a drain that comes into a phase.
	Entered(node, pool string, phase Phase)

	// Evicted counts the answer to one requested eviction.
	Evicted(node string, pod types.NamespacedName, pool string, answer Answer)

	// Ended takes a drain that is over.
	Ended(Result)
}

// NodeReleasers finds the backend of a pool or, if the pool is gone, that of the provisioner which
// the marks on a node name. An error means that neither is known: the node then cannot be released,
// but changes to it here can be undone.
type NodeReleasers interface {
	NodeReleaser(pool string, of policy.Provisioner) (backend.NodeReleaser, error)
}

// An Authority says how far a pool may go at the moment; [permit.Authority] is one.
type Authority interface {
	Pool(ctx context.Context, name string) (permit.Decision, error)
	Spec(ctx context.Context, name string) (*v1alpha1.CapacityPool, error)
	Check(ctx context.Context) error
}

// A Config holds what a [Pipeline] needs and its limits. Start from
// [DefaultConfig].
type Config struct {
	// Clock gives the time.
	Clock clock.WithTicker

	// Log takes what is of no use as an Event. Events and Meter may be nil.
	Log    *slog.Logger
	Events Recorder
	Meter  Meter

	// Authority says how far a pool may go at the moment; nil lets all be done.
	Authority Authority

	// Urgent writes for nodes under a notice, and what is taken back of drains; nil means
	// the ordinary client.
	Urgent client.Client

	// DrainMax is how long a drain without a deadline may take before it is
	// undone. Raising it gives slow applications longer to leave.
	DrainMax time.Duration

	// CheckMax is how long a drain may wait before its start for disruption budgets that allow no
	// eviction at the moment. Raising it starts more drains, later.
	CheckMax time.Duration

	// EvictRetry is the time between two tries to evict a pod when the API server
	// names none, and to call a backend that failed. Raising it empties nodes later
	// and writes less.
	EvictRetry time.Duration

	// VolumesMax is how long an empty node waits for its volumes to be detached.
	// Raising it keeps nodes whose volumes never come off.
	VolumesMax time.Duration

	// ReleaseMax is how long a backend may take to accept an empty node before the
	// drain is undone.
	ReleaseMax time.Duration

	// LateMax is how long after the announced instant a node under notice is still
	// taken for one that the provider takes.
	LateMax time.Duration

	// UnreadableMax is how long drains wait while the kill switch cannot be read before
	// they are undone. Raising it keeps nodes cordoned for longer.
	UnreadableMax time.Duration

	// ShutdownMax bounds Shutdown.
	ShutdownMax time.Duration

	// CallMax bounds one call, the wait for the write limit included.
	CallMax time.Duration

	// Interval is how soon a node that is being drained is looked at again, and
	// LookEvery how often all nodes are looked at for marks that no drain knows of.
	// Raising them asks less of the cache and notices later what has changed.
	Interval, LookEvery time.Duration

	// TurnMax is the time after which no more of a node's pods are evicted before
	// other nodes have had their turn; nodes under notice have no such limit.
	TurnMax time.Duration

	// Parallel is how many nodes without a notice are worked on at the same time.
	Parallel int
}

// DefaultConfig returns the limits that the controller runs with. DrainMax and
// EvictRetry are the simulator's; VolumesMax is the time after which Kubernetes
// itself detaches a volume by force.
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
