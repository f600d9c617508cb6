package market

import (
	"errors"
	"log/slog"
	"time"

	"k8s.io/utils/clock"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

const (
	// signalsStaleAfter is the maximum age of the last report of a valid placement score, and
	// bandsStaleAfter that of an interruption band. Older values are treated as unknown.
	signalsStaleAfter = 6 * time.Hour
	bandsStaleAfter   = 30 * 24 * time.Hour

	// refusalSpan is how long after a refusal further refusals of the same market are not counted,
	// so that a burst of launches counts once. Provisioners do not retry within this time.
	refusalSpan = 3 * time.Minute

	// runningGapMax limits the hours that nodes are assumed to have run while they were not
	// counted, for example during a restart.
	runningGapMax = time.Hour
)

// A Config configures the sources of a book and how long their data is valid.
type Config struct {
	// Feeds are read while [Book.Run] runs. Without feeds, on-demand prices come from the catalog,
	// and nothing is known about Spot.
	Feeds []Feed

	// Cache is the file in which the book stores its data, so that after a restart feeds are read
	// only for newer data. If it is empty, nothing is stored.
	Cache string

	// StaleAfter is the maximum age of the last report of a valid Spot price. If it is raised,
	// buying continues during a longer failure of a feed, at prices that may have changed.
	StaleAfter time.Duration

	// RetryMin and RetryMax are the first and the longest wait before a feed that failed is read
	// again. The wait doubles with every failure and never exceeds the interval of the feed.
	RetryMin, RetryMax time.Duration

	// Timeout is the maximum duration of one read of a feed, including its own retries.
	Timeout time.Duration

	// ExportMax is the maximum size of the result of [Book.Export], in bytes. If it is exceeded,
	// the markets with the oldest observations are omitted.
	ExportMax int

	// Regions are the regions in which the cluster buys. If there is only one, it is the region of
	// a node that has no region and whose zone has no known region.
	Regions []string

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig returns a configuration without feeds.
func DefaultConfig() Config {
	return Config{
		StaleAfter: 2 * time.Hour, RetryMin: 5 * time.Second, RetryMax: 10 * time.Minute, Timeout: 5 * time.Minute,
		ExportMax: 256 << 10, Clock: clock.RealClock{}, Log: slog.Default(),
	}
}
