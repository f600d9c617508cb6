package market

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
)

// ErrConfig is returned for a configuration that cannot be meant.
var ErrConfig = errors.New("invalid setting")

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

	// SignalsStaleAfter is the same for placement scores, which then count as not
	// known, and BandsStaleAfter for interruption bands.
	SignalsStaleAfter, BandsStaleAfter time.Duration

	// RetryMin and RetryMax bound the wait before a feed that failed is read again.
	// It doubles from one failure to the next and is never longer than the time
	// between two readings.
	RetryMin, RetryMax time.Duration

	// Timeout bounds one reading of a feed, its own retries included.
	Timeout time.Duration

	// RefusalSpan is how long a market that refused is not counted as refusing
	// again, so that a burst of launches counts once. Provisioners do not ask
	// again within it.
	RefusalSpan time.Duration

	// QuotaSpan is how long a quota that a launch met is taken to be used up.
	QuotaSpan time.Duration

	// RunningGapMax bounds the hours that nodes are assumed to have run while they were not
	// counted, as through a restart.
	RunningGapMax time.Duration

	// ExportMax bounds what [Book.Export] returns, in bytes. Beyond it the markets
	// that were met longest ago are forgotten.
	ExportMax int

	// Limits are quotas of the account.
	Limits []Limit

	// Commitments are what was paid for in advance. Unused is written by
	// [Book.Settle].
	Commitments []policy.Commitment

	// Places has the region of each cluster, by the name of its cloudspace, empty for the cluster
	// of all pools that have none. A cluster that is not named is where its first pool finds the
	// most markets.
	Places map[string]Place

	// Regions are where the cluster buys. If there is only one, a node without a region, whose zone
	// has no known region either, is in it.
	Regions []string

	Clock clock.WithTicker
	Log   *slog.Logger
}

// A Place is a region of a provider.
type Place struct{ Provider, Region string }

// A Limit is a quota of the account: the most vCPUs of one kind that may run at
// once.
type Limit struct {
	// Name is the provider's, such as "L-34B43A08".
	Name     string
	Region   string
	Capacity policy.CapacityType

	// Families are those that count against it, such as "m5"; none means all.
	Families []string

	// VCPU is the quota. What nodes of the cluster take is taken off.
	VCPU int64
}

// DefaultConfig returns a configuration without feeds.
func DefaultConfig() Config {
	return Config{
		StaleAfter: 2 * time.Hour, SignalsStaleAfter: 6 * time.Hour, BandsStaleAfter: 30 * 24 * time.Hour,
		RetryMin: 5 * time.Second, RetryMax: 10 * time.Minute, Timeout: 5 * time.Minute,
		RefusalSpan: 3 * time.Minute, QuotaSpan: 15 * time.Minute, RunningGapMax: time.Hour,
		ExportMax: 256 << 10,
		Clock:     clock.RealClock{}, Log: slog.Default(),
	}
}

// validate names the field that is wrong and its value.
func (c *Config) validate() error {
	fault := func(field string, value any, rule string) error {
		return fmt.Errorf("%w: %s %v: %s", ErrConfig, field, value, rule)
	}
	for _, d := range []struct {
		field            string
		value, low, high time.Duration
	}{
		{"StaleAfter", c.StaleAfter, time.Minute, 30 * 24 * time.Hour},
		{"SignalsStaleAfter", c.SignalsStaleAfter, time.Minute, 365 * 24 * time.Hour},
		{"BandsStaleAfter", c.BandsStaleAfter, time.Minute, 365 * 24 * time.Hour},
		{"RetryMin", c.RetryMin, time.Millisecond, time.Hour},
		{"RetryMax", c.RetryMax, c.RetryMin, 24 * time.Hour},
		{"Timeout", c.Timeout, time.Second, 24 * time.Hour},
		{"RefusalSpan", c.RefusalSpan, 0, 24 * time.Hour},
		{"QuotaSpan", c.QuotaSpan, time.Second, 24 * time.Hour},
		{"RunningGapMax", c.RunningGapMax, 0, 24 * time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			return fault(d.field, d.value, fmt.Sprintf("it must be between %v and %v", d.low, d.high))
		}
	}
	if c.ExportMax < 1<<10 {
		return fault("ExportMax", c.ExportMax, "it must be 1024 bytes at least")
	}
	if c.Clock == nil || c.Log == nil {
		return fault("Clock, Log", nil, "both must be set")
	}
	for i, f := range c.Feeds {
		if slices.ContainsFunc(c.Feeds[:i], func(g Feed) bool { return g.Name() == f.Name() }) {
			return fault("Feeds", f.Name(), "two feeds have this name")
		}
		if f.Every() <= 0 {
			return fault("Feeds", f.Name(), fmt.Sprintf("its interval %v is not above 0", f.Every()))
		}
	}
	for i := range c.Limits {
		if l := &c.Limits[i]; l.Name == "" || l.Region == "" || l.VCPU < 0 {
			return fault("Limits", fmt.Sprintf("%q in region %q with %d vCPUs", l.Name, l.Region, l.VCPU),
				"a limit has a name, a region and no negative size")
		}
	}
	return c.validateCommitments()
}

func (c *Config) validateCommitments() error {
	for i := range c.Commitments {
		x := &c.Commitments[i]
		switch {
		case x.Name == "" || slices.ContainsFunc(c.Commitments[:i], func(y policy.Commitment) bool { return y.Name == x.Name }):
			return fmt.Errorf("%w: Commitments %q: each must have a unique name", ErrConfig, x.Name)
		case x.Amount < 0 || x.Amount > policy.CommitmentMax || x.Unit > policy.CoverDollars:
			return fmt.Errorf("%w: Commitments %q: amount %d %v is not from 0 to %d", ErrConfig, x.Name, x.Amount, x.Unit,
				policy.CommitmentMax)
		case x.Fee < 0 && x.Fee != policy.NoPrice:
			return fmt.Errorf("%w: Commitments %q: fee %v is negative", ErrConfig, x.Name, x.Fee)
		}
	}
	return nil
}

// commitments returns those of the configuration in order, none of them used.
func (c *Config) commitments() []policy.Commitment {
	all := slices.Clone(c.Commitments)
	slices.SortFunc(all, func(a, b policy.Commitment) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].Unused = all[i].Amount
	}
	return all
}
