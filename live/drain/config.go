package drain

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
)

// A Recorder tells the user what became of a node. The EventRecorder of
// client-go's package events is one.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// A Meter counts what the pipeline does. It is called from several goroutines.
type Meter interface {
	// Entered counts a drain that comes into a phase.
	Entered(pool string, phase Phase)

	// Evicted counts the answer to one eviction that was asked for.
	Evicted(pool string, answer Answer)

	// Ended takes a drain that is over.
	Ended(Result)
}

// Givers finds the backend of a pool. An error means that the pool, or what
// provisions it, is not known: its nodes then cannot be given back, but what was
// done to them can be undone.
type Givers interface {
	Giver(pool string) (backend.Giver, error)
}

// A Config holds what a [Pipeline] needs and its limits. Start from
// [DefaultConfig].
type Config struct {
	// Clock tells the time.
	Clock clock.WithTicker

	// Log takes what is of no use as an Event. Events and Meter may be nil.
	Log    *slog.Logger
	Events Recorder
	Meter  Meter

	// Fence returns an error when somebody else may lead by now. It is called
	// before the first write of each pass; nil means that there is nobody else.
	Fence func(context.Context) error

	// Urgent writes for nodes under a notice, and what is taken back of drains; nil means
	// the ordinary client.
	Urgent client.Client

	// DrainMax is how long a drain without a deadline may take before it is
	// undone. Raising it gives slow applications longer to leave.
	DrainMax time.Duration

	// CheckMax is how long a drain may wait before it has begun, for disruption
	// budgets that allow no eviction at the moment. Raising it begins more drains,
	// later.
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

	// RecoverMax bounds Recover, Stop and Shutdown.
	RecoverMax time.Duration

	// CallMax bounds one call, the wait for the write limit included.
	CallMax time.Duration

	// Interval is the time between two passes while a node is being drained, and
	// PassMax the time after which a pass begins nothing new for nodes that are not
	// under notice. Raising them lets a notice wait longer.
	Interval, PassMax time.Duration

	// Parallel is how many nodes are worked on at the same time.
	Parallel int
}

// DefaultConfig returns the limits that the controller runs with. DrainMax and
// EvictRetry are the simulator's; VolumesMax is the time after which Kubernetes
// itself detaches a volume by force.
func DefaultConfig() Config {
	return Config{
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		DrainMax: 15 * time.Minute, CheckMax: time.Minute, EvictRetry: 10 * time.Second,
		VolumesMax: 6 * time.Minute, ReleaseMax: 5 * time.Minute, LateMax: 10 * time.Minute,
		RecoverMax: 55 * time.Second, CallMax: 15 * time.Second,
		Interval: time.Second, PassMax: 2 * time.Second, Parallel: 8,
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
		{"volumes max", c.VolumesMax}, {"release max", c.ReleaseMax}, {"late max", c.LateMax},
		{"recover max", c.RecoverMax}, {"call max", c.CallMax}, {"interval", c.Interval}, {"pass max", c.PassMax},
	} {
		if f.value <= 0 {
			return fmt.Errorf("drain: %s %v is not above 0", f.name, f.value)
		}
	}
	return nil
}
