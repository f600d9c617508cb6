package asg

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
)

// A Config says how the groups of a cluster are worked on.
type Config struct {
	// Region is that of the groups.
	Region string

	// Endpoint replaces the endpoints of AWS; empty means its own.
	Endpoint string

	// Poll is the time from one read of all groups to the next, give or take a
	// fifth by the hash of the region and the round, so that controllers of one account
	// do not ask together. It doubles up to PollMax while AWS throttles. Raising
	// it asks less and sees refusals later.
	Poll, PollMax time.Duration

	// FreshFor is how old a read of a group may be for looking at a replacement.
	// What is written is always decided on a read of its own.
	FreshFor time.Duration

	// InFlightMax is the most requested instances of one group without a Node. Raising it fills
	// groups faster, and costs more if they do not start.
	InFlightMax int

	// RaiseEvery is the least time between two raises of one group. The Cluster Autoscaler writes
	// its own raises as absolute sizes from a cache that is at most a minute old. If the cache
	// lacks one of Spotter's raises, nothing changes. A second raise would be undone, and the group
	// would choose which instance to terminate. Lowering it below that minute risks running pods.
	RaiseEvery time.Duration

	// InstanceMax is how long a launch may be without an instance, JoinMax the time until its Node
	// must exist, and ReadyMax the time until that must be Ready, all from the request on.
	InstanceMax, JoinMax, ReadyMax time.Duration

	// RefusalInterval is the time within which further refusals in a market count
	// as one, since a group asks again whenever it likes.
	RefusalInterval time.Duration

	// VolumesMax is how long a node that is otherwise empty is kept for volumes
	// that are still attached.
	VolumesMax time.Duration

	// CleanupAfter is how old a launch must be before Cleanup ends one that no drain
	// waits for, so that it cannot overtake a step.
	CleanupAfter time.Duration

	// AttemptsMax is how often a read, or a write that may be repeated, is sent,
	// and BackoffMax bounds the wait between two of them.
	AttemptsMax int
	BackoffMax  time.Duration

	// Fence is called before every write to AWS. If it returns an error, the write is not sent. Nil
	// allows all writes.
	Fence func(context.Context) error

	Clock clock.Clock
	Log   *slog.Logger
}

// DefaultConfig returns the configuration but for the region.
func DefaultConfig() Config {
	return Config{
		Poll: 30 * time.Second, PollMax: 5 * time.Minute, FreshFor: 5 * time.Second, InFlightMax: 1, RaiseEvery: 90 * time.Second,
		InstanceMax: 5 * time.Minute, JoinMax: 12 * time.Minute, ReadyMax: 15 * time.Minute,
		RefusalInterval: 3 * time.Minute, VolumesMax: 5 * time.Minute, CleanupAfter: 2 * time.Minute,
		AttemptsMax: 4, BackoffMax: 5 * time.Second,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

// now returns the time.
func (c *Config) now() policy.Time { return policy.TimeOf(c.Clock.Now()) }

// validate names the field that is wrong and its value.
func (c *Config) validate() error {
	if c.Region == "" {
		return fmt.Errorf("asg: region %q: it must be set", c.Region)
	}
	if u, err := url.Parse(c.Endpoint); c.Endpoint != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("asg: endpoint %q: it must start with http:// or https:// and name a host", c.Endpoint)
	}
	for _, d := range []struct {
		field    string
		value    time.Duration
		low, top time.Duration
	}{
		{"poll", c.Poll, time.Second, time.Hour}, {"longest poll", c.PollMax, c.Poll, 24 * time.Hour},
		{"age of a fresh read", c.FreshFor, 0, time.Minute},
		{"time between raises", c.RaiseEvery, 0, time.Hour},
		{"time to an instance", c.InstanceMax, time.Second, 24 * time.Hour},
		{"time to a Node", c.JoinMax, c.InstanceMax, 24 * time.Hour},
		{"time to a ready Node", c.ReadyMax, c.JoinMax, 24 * time.Hour},
		{"interval of refusals", c.RefusalInterval, 0, 24 * time.Hour}, {"wait for volumes", c.VolumesMax, 0, 24 * time.Hour},
		{"age for cleanup", c.CleanupAfter, 0, 24 * time.Hour}, {"longest backoff", c.BackoffMax, 0, time.Hour},
	} {
		if d.value < d.low || d.value > d.top {
			return fmt.Errorf("asg: %s %v: it must be between %v and %v", d.field, d.value, d.low, d.top)
		}
	}
	for _, n := range []struct {
		field string
		value int
	}{{"launches in flight", c.InFlightMax}, {"attempts", c.AttemptsMax}} {
		if n.value < 1 || n.value > 100 {
			return fmt.Errorf("asg: %s %d: it must be between 1 and 100", n.field, n.value)
		}
	}
	if c.Clock == nil || c.Log == nil {
		return fmt.Errorf("asg: a clock and a log are needed")
	}
	return nil
}
