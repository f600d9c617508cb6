package gpubudget

import (
	"fmt"
	"time"
)

// A Config contains the parameters that apply to all budgets. Start from [DefaultConfig].
type Config struct {
	// Room is the fraction of a quota that must be free before a closed gate opens again, in [0,
	// 1]. JobRoom is the same for budgets that suspend jobs, which redo some work each time.
	// Raising them opens gates later and for longer.
	Room, JobRoom float64

	// Pace is the minimum time between two evictions, or two suspensions of jobs, for one budget.
	// Raising it lets spent budgets be exceeded by more, and leaves more time for pods to end by
	// themselves.
	Pace time.Duration

	// Retry is how long to wait before an eviction, or a change of a gate, is requested again.
	// Raising it repeats requests less often while a disruption budget refuses them.
	Retry time.Duration

	// Soonest is the minimum time until the next step that is requested. Raising it decides less
	// often around the moment at which a budget is spent.
	Soonest time.Duration

	// Absent is how long the history of a budget is kept after snapshots no longer contain it.
	// Raising it remembers deleted budgets for longer.
	Absent time.Duration
}

// DefaultConfig returns the default parameters, with the ten seconds between two evictions of
// gpu-k8s-operator.
func DefaultConfig() Config {
	return Config{
		Room: 0.10, JobRoom: 0.25, Pace: 10 * time.Second, Retry: 2 * time.Minute, Soonest: time.Second, Absent: 7 * 24 * time.Hour,
	}
}

// Validate returns an error that names the first field out of range, with its value.
func (c Config) Validate() error {
	switch {
	case !(c.Room >= 0 && c.Room <= 1):
		return fmt.Errorf("budget: room %v is not in [0, 1]", c.Room)
	case !(c.JobRoom >= 0 && c.JobRoom <= 1):
		return fmt.Errorf("budget: job room %v is not in [0, 1]", c.JobRoom)
	case c.Pace < 0:
		return fmt.Errorf("budget: pace %v is negative", c.Pace)
	case c.Retry < 0:
		return fmt.Errorf("budget: retry %v is negative", c.Retry)
	case c.Absent < 0:
		return fmt.Errorf("budget: absent %v is negative", c.Absent)
	case c.Soonest < time.Millisecond:
		return fmt.Errorf("budget: soonest %v is less than a millisecond", c.Soonest)
	}
	return nil
}
