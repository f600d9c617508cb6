package cluster

import (
	"fmt"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A Config holds what an [Observer] needs. Start from [DefaultConfig].
type Config struct {
	// Clock gives the time of snapshots.
	Clock clock.PassiveClock

	// Log takes what cannot be understood of the objects of the cluster.
	Log *slog.Logger

	// Provider sells the nodes whose provider ID does not say who does.
	Provider string

	// Capacity distinguishes Spot nodes from others.
	Capacity kube.CapacityResolver

	// NoticeMax is how long after the announced instant a node under notice that
	// still works is taken for one that the provider left alone. Raising it keeps
	// pods longer from a node after a false alarm.
	NoticeMax time.Duration

	// EndedMax bounds how many pods that ended are kept until a snapshot takes
	// them. A replica that does not lead takes none; the oldest then go first.
	EndedMax int

	// DataMax is how old what a stream brought may be before it counts as stalled:
	// the API server says at least every minute or so that a stream lives.
	DataMax time.Duration
}

// DefaultConfig returns what the controller runs with.
func DefaultConfig() Config {
	return Config{
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Provider: "aws",
		NoticeMax: 10 * time.Minute, EndedMax: 50_000, DataMax: 5 * time.Minute,
	}
}

func (c *Config) validate() error {
	switch {
	case c.Clock == nil:
		return fmt.Errorf("cluster: clock is not set")
	case c.Log == nil:
		return fmt.Errorf("cluster: log is not set")
	case c.Provider == "":
		return fmt.Errorf("cluster: provider is not set")
	case c.NoticeMax <= 0:
		return fmt.Errorf("cluster: notice max %v is not above 0", c.NoticeMax)
	case c.EndedMax < 1:
		return fmt.Errorf("cluster: ended max %d is less than 1", c.EndedMax)
	case c.DataMax <= 0:
		return fmt.Errorf("cluster: data max %v is not above 0", c.DataMax)
	}
	return nil
}

// A Book has the markets that the observer uses and reports to; [market.Book] implements it.
// Identifiers change only in Fill.
type Book interface {
	// Use says which pools there are.
	Use([]*v1alpha1.CapacityPool)

	// Fill writes types, zones, markets and sources. Settle counts the nodes.
	Fill(s *policy.Snapshot, now policy.Time)
	Settle(s *policy.Snapshot)

	// Generation changes whenever Fill gave identifiers another meaning.
	Generation() uint64

	// Choose returns the markets of a pool, ascending.
	Choose(*v1alpha1.CapacityPool) []policy.MarketID

	// Find and Lookup return the market of a node and that of a name, or None. The
	// region may be empty.
	Find(provider, region, zone, instanceType string, c policy.CapacityType) policy.MarketID
	Lookup(name string) policy.MarketID

	// Meet counts an observation of the own cluster.
	Meet(backend.Event)
}
