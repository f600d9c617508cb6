package cluster

import (
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A Config configures an [Observer]. Start from [DefaultConfig].
type Config struct {
	// Clock provides the time of snapshots.
	Clock clock.PassiveClock

	// Log receives warnings about objects of the cluster that cannot be interpreted.
	Log *slog.Logger

	// Provider is the provider of nodes whose provider ID does not identify it.
	Provider string

	// Capacity distinguishes Spot nodes from others.
	Capacity kube.CapacityResolver

	// GoogleLead, if set, returns the time from a notice of Google Cloud on a Node to the reclaim of
	// its machine, or 0 if that of [policy.NoticeLead] applies.
	GoogleLead func(*corev1.Node) time.Duration

	// NoticeMax is the time after the announced reclaim after which a node that still works counts
	// as spared by the provider. A higher value keeps pods away from a node longer after a false
	// alarm.
	NoticeMax time.Duration

	// EndedMax is the maximum number of ended pods that are kept until a snapshot reports them. A
	// replica that does not lead builds no snapshots; it drops the oldest pods first.
	EndedMax int

	// DataMax is the age of the last update after which a stream counts as stalled. The API server
	// confirms about every minute that a stream is alive.
	DataMax time.Duration
}

// DefaultConfig returns the configuration of the controller.
func DefaultConfig() Config {
	return Config{
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Provider: "aws",
		NoticeMax: 10 * time.Minute, EndedMax: 50_000, DataMax: 5 * time.Minute,
	}
}

// marksOf reads the marks on a Node.
func (c *Config) marksOf(n *corev1.Node) Marks {
	if c.GoogleLead == nil {
		return MarksOf(n, 0)
	}
	return MarksOf(n, c.GoogleLead(n))
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

// A Book provides the markets of an observer and receives its observations; [market.Book]
// implements it. Identifiers change only in Fill.
type Book interface {
	// Use sets the pools.
	Use([]*v1alpha1.CapacityPool)

	// Fill writes types, zones, markets and sources to s. Settle counts the nodes of s.
	Fill(s *policy.Snapshot, now policy.Time)
	Settle(s *policy.Snapshot)

	// Generation returns a number that changes whenever Fill changes the meaning of identifiers.
	Generation() uint64

	// Choose returns the markets of a pool, ascending.
	Choose(*v1alpha1.CapacityPool) []policy.MarketID

	// Find returns the market of a node, and Lookup the market with a name. Both return None if the
	// market does not exist. region may be empty.
	Find(provider, region, zone, instanceType string, c policy.CapacityType) policy.MarketID
	Lookup(name string) policy.MarketID

	// Meet counts an observation of this cluster.
	Meet(backend.Event)
}
