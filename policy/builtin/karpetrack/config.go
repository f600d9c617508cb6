package karpetrack

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Config holds the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// BatchWindow is how long to wait for more pods after the first pending pod before nodes are
	// bought for all of them together. Raising it buys fewer and larger nodes, later.
	BatchWindow time.Duration

	// Threshold is the share of its price that must be saved for a node to be replaced, in [0, 1),
	// where the pool states no threshold. Raising it moves fewer pods.
	Threshold float64

	// Periodic repacks each pool tentatively once per PeriodicInterval, and replaces several nodes
	// together if that saves the threshold.
	Periodic         bool
	PeriodicInterval time.Duration

	// RemovalDelay is the minimum time between the launch of such a replacement and the drain of
	// the nodes that it replaces. Raising it costs more, since both are paid for, and leaves longer
	// to find out whether the new nodes last.
	RemovalDelay time.Duration

	// Underutilized is the mean of the requested shares of CPU and memory below which a node is
	// released if its pods fit on others, in [0, 1]. Raising it releases more nodes and moves more
	// pods.
	Underutilized float64

	// EmptyGrace is how long a node must be empty before it is released, where the pool states no
	// consolidateAfter. Raising it keeps capacity for pods that come back.
	EmptyGrace time.Duration

	// MaxPrice is the highest price per hour of one Spot node; 0 means no limit. It also limits
	// bids. Raising it allows more markets.
	MaxPrice policy.Money

	// Percentile is the percentile of the published bids at which to bid in an auction: 20, 50 or
	// 80. It moves with the losses of Spotter's own nodes there. BidOver is the fraction by which a
	// bid exceeds the percentile, in [0, 10]. Raising either loses fewer nodes to other bidders and
	// pays more while they bid.
	Percentile int
	BidOver    float64
}

// DefaultConfig returns the parameters of Karpetrack's controller.
func DefaultConfig() Config {
	return Config{
		BatchWindow: 10 * time.Second, Threshold: 0.20, Periodic: true, PeriodicInterval: 30 * time.Minute,
		RemovalDelay: 20 * time.Minute, Underutilized: 0.30, EmptyGrace: 5 * time.Minute, Percentile: 50, BidOver: 0.10,
	}
}

// Set sets the parameter key to value. On an error c is unchanged.
func (c *Config) Set(key, value string) error {
	next := *c
	var err error
	switch key {
	case "batch_window":
		next.BatchWindow, err = parseDuration(key, value)
	case "bid_over":
		next.BidOver, err = parseNumber(key, value)
	case "empty_grace":
		next.EmptyGrace, err = parseDuration(key, value)
	case "max_price":
		var dollars float64
		if dollars, err = parseNumber(key, value); err == nil {
			next.MaxPrice, err = toMoney(dollars)
		}
	case "percentile":
		if next.Percentile, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("percentile %q is not a whole number", value)
		}
	case "periodic":
		if next.Periodic, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("periodic %q is not true or false", value)
		}
	case "periodic_interval":
		next.PeriodicInterval, err = parseDuration(key, value)
	case "removal_delay":
		next.RemovalDelay, err = parseDuration(key, value)
	case "threshold":
		next.Threshold, err = parseNumber(key, value)
	case "underutilized":
		next.Underutilized, err = parseNumber(key, value)
	default:
		err = fmt.Errorf("unknown parameter %q: it takes batch_window, bid_over, empty_grace, max_price, percentile, "+
			"periodic, periodic_interval, removal_delay, threshold, underutilized", key)
	}
	if err != nil {
		return fmt.Errorf("karpetrack: %w", err)
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

func parseDuration(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a duration such as 10m", key, value)
	}
	return d, nil
}

func parseNumber(key, value string) (float64, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a number", key, value)
	}
	return x, nil
}

func toMoney(dollars float64) (policy.Money, error) {
	if !(dollars >= 0) || dollars > 1e6 {
		return 0, fmt.Errorf("max_price %v is not a price in $ per hour", dollars)
	}
	return policy.Dollars(dollars), nil
}

// Validate returns an error that names the first parameter out of range, with its value.
func (c Config) Validate() error {
	for _, d := range [...]struct {
		key   string
		value time.Duration
	}{
		{"batch_window", c.BatchWindow}, {"empty_grace", c.EmptyGrace}, {"removal_delay", c.RemovalDelay},
	} {
		if d.value < 0 {
			return fmt.Errorf("karpetrack: %s %v is negative", d.key, d.value)
		}
	}
	switch {
	case c.PeriodicInterval < time.Minute:
		return fmt.Errorf("karpetrack: periodic_interval %v is less than 1m", c.PeriodicInterval)
	case !(c.Threshold >= 0 && c.Threshold < 1):
		return fmt.Errorf("karpetrack: threshold %v is not in [0, 1)", c.Threshold)
	case !(c.Underutilized >= 0 && c.Underutilized <= 1):
		return fmt.Errorf("karpetrack: underutilized %v is not in [0, 1]", c.Underutilized)
	case !(c.BidOver >= 0 && c.BidOver <= 10):
		return fmt.Errorf("karpetrack: bid_over %v is not in [0, 10]", c.BidOver)
	case c.MaxPrice < 0:
		return fmt.Errorf("karpetrack: max_price %v is negative", c.MaxPrice)
	case c.Percentile != 20 && c.Percentile != 50 && c.Percentile != 80:
		return fmt.Errorf("karpetrack: percentile %d is not 20, 50 or 80", c.Percentile)
	}
	return nil
}

// name returns the name of the policy with c: it lists the parameters that differ from the default,
// in a fixed order.
func (c Config) name() string {
	d := DefaultConfig()
	name := "karpetrack"
	add := func(key, value, usual string) {
		if value != usual {
			name += ":" + key + "=" + value
		}
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	add("batch_window", c.BatchWindow.String(), d.BatchWindow.String())
	add("bid_over", number(c.BidOver), number(d.BidOver))
	add("empty_grace", c.EmptyGrace.String(), d.EmptyGrace.String())
	add("max_price", number(c.MaxPrice.Float()), number(d.MaxPrice.Float()))
	add("percentile", strconv.Itoa(c.Percentile), strconv.Itoa(d.Percentile))
	add("periodic", strconv.FormatBool(c.Periodic), strconv.FormatBool(d.Periodic))
	add("periodic_interval", c.PeriodicInterval.String(), d.PeriodicInterval.String())
	add("removal_delay", c.RemovalDelay.String(), d.RemovalDelay.String())
	add("threshold", number(c.Threshold), number(d.Threshold))
	add("underutilized", number(c.Underutilized), number(d.Underutilized))
	return name
}
