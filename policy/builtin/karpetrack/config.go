package karpetrack

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Config holds the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// BatchWindow is how long pods that come one after the other are waited
	// for, from the first of them, before nodes are bought for all together.
	// Raising it buys fewer and larger nodes, later.
	BatchWindow time.Duration

	// Threshold is the least part of its price that must be saved for a node
	// to be replaced, in [0, 1), where the pool states none. Raising it moves
	// fewer pods.
	Threshold float64

	// Periodic repacks each pool tentatively once in PeriodicInterval, and replaces several nodes
	// together if that saves the threshold.
	Periodic         bool
	PeriodicInterval time.Duration

	// RemovalDelay is the least time between the launch of such a wave and the
	// drain of the nodes in whose place it came. Raising it costs more, since
	// both are paid, and leaves longer to find out that the new ones do not last.
	RemovalDelay time.Duration

	// Underutilized is the mean of the requested shares of CPU and memory below which a node is
	// released if its pods fit on others, in [0, 1]. Raising it releases more nodes and moves more
	// pods.
	Underutilized float64

	// EmptyGrace is how long a node is empty before it is released if the pool states no
	// consolidateAfter. Raising it keeps capacity for pods that come back.
	EmptyGrace time.Duration

	// MaxPrice is the most to pay for one node per hour on spot; 0 means no
	// limit. It bounds bids too. Raising it lets more markets be bought.
	MaxPrice policy.Money

	// Percentile is that of the published bids at which an auction is entered,
	// 20, 50 or 80: it moves with what happens to our own nodes there. BidOver
	// is the part by which a bid is higher. Raising either loses fewer nodes to
	// others and pays more while they bid.
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

// Set reads the parameter key from value.
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

// Validate names the first parameter that is out of its range, and its value.
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

// name returns the name of the policy with c: what differs from the default
// configuration, in a fixed order.
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
