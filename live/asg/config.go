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

// A Config configures a Backend.
type Config struct {
	// Region is the region of the groups.
	Region string

	// Endpoint replaces the endpoints of AWS; empty means the default endpoints.
	Endpoint string

	// Poll is the time between two reads of all groups. It varies by up to a fifth with the hash of
	// the region and the round, so that the controllers of one account do not send requests at the
	// same time. It doubles up to PollMax while AWS throttles. A higher value sends fewer requests
	// and detects refusals later.
	Poll, PollMax time.Duration

	// FreshFor is the maximum age of a read that may be used to look for a replacement. Every write
	// is based on a new read.
	FreshFor time.Duration

	// InFlightMax is the maximum number of requested instances of one group that have no Node yet.
	// A higher value fills groups faster, and costs more if the instances do not start.
	InFlightMax int

	// RaiseEvery is the minimum time between two increases of one group. The Cluster Autoscaler
	// writes its own increases as absolute sizes from a cache that is at most a minute old. If the
	// cache lacks one increase by Spotter, the size stays the same. If it lacks two, the second
	// would be undone, and the group would choose an instance to terminate. A value below a minute
	// risks running pods.
	RaiseEvery time.Duration

	// InstanceMax is the maximum time until a launch has an instance, JoinMax until its Node
	// exists, and ReadyMax until the Node is Ready. All are measured from the request.
	InstanceMax, JoinMax, ReadyMax time.Duration

	// RefusalInterval is the interval in which repeated refusals in a market count as one, since a
	// group retries at its own pace.
	RefusalInterval time.Duration

	// VolumesMax is the maximum time that an otherwise empty node is kept because volumes are still
	// attached.
	VolumesMax time.Duration

	// CleanupAfter is the minimum age of a launch that Cleanup ends because no drain waits for it.
	// It prevents Cleanup from ending a launch of a step that is still running.
	CleanupAfter time.Duration

	// AttemptsMax is the maximum number of times that a read or a repeatable write is sent, and
	// BackoffMax the maximum wait between two attempts.
	AttemptsMax int
	BackoffMax  time.Duration

	// Fence is called before every write to AWS. If it returns an error, the write is not sent. Nil
	// allows all writes.
	Fence func(context.Context) error

	Clock clock.Clock
	Log   *slog.Logger
}

// DefaultConfig returns the default configuration. The caller must set Region.
func DefaultConfig() Config {
	return Config{
		Poll: 30 * time.Second, PollMax: 5 * time.Minute, FreshFor: 5 * time.Second, InFlightMax: 1, RaiseEvery: 90 * time.Second,
		InstanceMax: 5 * time.Minute, JoinMax: 12 * time.Minute, ReadyMax: 15 * time.Minute,
		RefusalInterval: 3 * time.Minute, VolumesMax: 5 * time.Minute, CleanupAfter: 2 * time.Minute,
		AttemptsMax: 4, BackoffMax: 5 * time.Second,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

func (c *Config) now() policy.Time { return policy.TimeOf(c.Clock.Now()) }

// validate returns an error that names the first invalid field and its value.
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
