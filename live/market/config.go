package market

import (
	"errors"
	"log/slog"
	"time"

	"k8s.io/utils/clock"
)

// ErrConfig is returned for a configuration that cannot be meant.
var ErrConfig = errors.New("invalid setting")

const (
	// signalsStaleAfter is the age of the last report up to which a placement score is valid,
	// and bandsStaleAfter that of an interruption band. Older ones are not known.
	signalsStaleAfter = 6 * time.Hour
	bandsStaleAfter   = 30 * 24 * time.Hour

	// refusalSpan is how long a market that refused is not counted as refusing
	// again, so that a burst of launches counts once. Provisioners do not ask
	// again within it.
	refusalSpan = 3 * time.Minute

	// runningGapMax bounds the hours that nodes are assumed to have run while they were not
	// counted, as through a restart.
	runningGapMax = time.Hour
)

// A Config says where a book learns of markets and how long it believes it.
type Config struct {
	// Feeds are read from [Book.Run] on. Without any, prices on demand come from
	// the catalog and nothing is known of spot.
	Feeds []Feed

	// Cache is a file in which the book keeps what it knows, so that after a
	// restart feeds are asked only for what is new; empty keeps nothing.
	Cache string

	// StaleAfter is the age of the last report up to which a Spot price is valid. Raising it
	// continues buying through a longer failure of a feed, at prices that may have changed.
	StaleAfter time.Duration

	// RetryMin and RetryMax bound the wait before a feed that failed is read again.
	// It doubles from one failure to the next and is never longer than the time
	// between two readings.
	RetryMin, RetryMax time.Duration

	// Timeout bounds one reading of a feed, its own retries included.
	Timeout time.Duration

	// ExportMax bounds what [Book.Export] returns, in bytes. Beyond it the markets
	// that were met longest ago are forgotten.
	ExportMax int

	// Regions are where the cluster buys. If there is only one, a node without a region, whose zone
	// has no known region either, is in it.
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
