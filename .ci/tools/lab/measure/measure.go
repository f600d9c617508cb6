// Package measure adds to the statistics of prices those of availability and depth: how long a node
// could be had, how often it was lost, and how zones and regions fail together.
package measure

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	prices "github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// Prices are the statistics of the Spot price.
type Prices = prices.Prices

// Sample is a set of values weighted by time.
type Sample = prices.Sample

// Sampling is the set of times at which prices were observed.
type Sampling = prices.Sampling

// Options say how a trace is seen. The zero value sees it as it is.
type Options struct {
	// Sampling, when set, is how prices are seen: only what is in force at its instants. A Sampling
	// that is coarser than the trace hides changes.
	Sampling *Sampling

	// Probe, when above 0, is how often availability is seen. An interval shorter than it may go
	// unseen.
	Probe time.Duration

	// Classes are those of the zones of the trace that this one is compared with, by name; see
	// [DepthClass].
	Classes map[string]int
}

// Statistics are a trace in figures. A figure that nothing could be computed for is NaN and is left
// out of every output.
type Statistics struct {
	*prices.Statistics

	// Availability is nil when no market of the trace records whether a node could be had.
	Availability *Availability

	// Depth is nil when no market records how many nodes came up.
	Depth *Depth
}

// Measure computes the statistics of t.
func Measure(t *trace.Trace, o Options) *Statistics {
	return &Statistics{prices.Measure(t, o.Sampling), measureAvailability(t, o.Probe), measureDepth(t, o.Classes)}
}

// hoursOf is the time between two instants in hours.
func hoursOf(from, to policy.Time) float64 {
	return float64(to-from) / float64(time.Hour/time.Millisecond)
}
