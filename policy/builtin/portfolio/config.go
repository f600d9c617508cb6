package portfolio

import (
	"fmt"
	"strconv"
	"time"
)

// A Config contains the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// Share, if Fixed is set, is the target Spot share of every pool's capacity, in [0, 1], within
	// what the pool allows. Markets are then chosen as usual, and everything else is done as in the
	// policy static: this isolates the value of the choice of markets. Raising it saves more and
	// risks more.
	Share float64
	Fixed bool

	// Holding is how long a saving is expected to last: a move must pay for itself in that time.
	// Raising it makes more moves, for smaller savings.
	Holding time.Duration

	// Lasting is the same for the saving of a cheaper market: prices change far more slowly than
	// demand.
	Lasting time.Duration

	// Interval is the minimum time between two rounds of moves in a pool that states no cooldown.
	// Raising it moves more nodes at once, and pods less often.
	Interval time.Duration

	// Disturbance is the cost of one interruption of a service's pod while it starts elsewhere, as
	// a time at the pod's value, in addition to the cost of outages: the effect on its users, its
	// caches and its neighbours. Raising it moves fewer pods, and prefers markets that are
	// reclaimed less often.
	Disturbance time.Duration

	// Edge is the minimum saving of a replacement as a fraction of the cost of the nodes, in [0,
	// 1), where the pool states none. Raising it moves fewer nodes.
	Edge float64

	// Margin is the fraction by which Spot, including its losses, must be cheaper than on-demand
	// before a pool that left Spot returns to it, in [0, 1). The pool returns when the saving
	// forgone since equals the cost of moving there and leaving again, after Return at the latest.
	// Raising either delays the return.
	Margin float64
	Return time.Duration

	// Choices is the number of Spot markets of a zone to buy in. Raising it spreads nodes more,
	// over more expensive markets.
	Choices int

	// Width is the fraction by which a chosen market may be more expensive than the best market of
	// its zone, in [0, 10]. Raising it has the same effect.
	Width float64

	// MarketRisk, TypeRisk and ZoneRisk are the fractions by which a node counts as more expensive
	// if all of the pool's capacity is in its market, of its type, or in its zone, each in [0,
	// 100]. Raising them spreads nodes more.
	MarketRisk, TypeRisk, ZoneRisk float64

	// LossBudget is the fraction of the on-demand bill that Spot may cost a pool more than it
	// saves, in [0, 1], where the pool states none; 0 means no limit. Raising it returns to Spot
	// sooner after losses.
	LossBudget float64

	// Cores is the size of the largest node that is bought, in vCPUs. A node of more than 8 vCPUs
	// is also limited to half, and one of more than 16 vCPUs to a quarter, of the maximum that pods
	// that may run in the pool requested within a day. A pod that fits no such node gets the
	// smallest node that it fits. Raising it buys larger nodes, which waste less on DaemonSets and
	// take more pods with them.
	Cores int
}

// DefaultConfig returns the parameters that were chosen on recorded prices.
func DefaultConfig() Config {
	return Config{
		Holding: 8 * time.Hour, Lasting: 12 * time.Hour, Interval: 30 * time.Minute, Disturbance: 2 * time.Hour, Edge: 0.15, Margin: 0.1, Return: 2 * time.Hour, Choices: 3, Width: 0.1, Cores: 32, MarketRisk: 0.1, TypeRisk: 0.1, ZoneRisk: 0.05,
		LossBudget: 0.05,
	}
}

// Set sets the parameter key to value. On an error c is unchanged.
func (c *Config) Set(key, value string) error {
	next := *c
	var err error
	switch key {
	case "share":
		next.Fixed = true
		next.Share, err = number(key, value)
	case "holding":
		next.Holding, err = span(key, value)
	case "lasting":
		next.Lasting, err = span(key, value)
	case "interval":
		next.Interval, err = span(key, value)
	case "disturbance":
		next.Disturbance, err = span(key, value)
	case "edge":
		next.Edge, err = number(key, value)
	case "margin":
		next.Margin, err = number(key, value)
	case "return":
		next.Return, err = span(key, value)
	case "choices":
		if next.Choices, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("choices %q is not a whole number", value)
		}
	case "market_risk":
		next.MarketRisk, err = number(key, value)
	case "type_risk":
		next.TypeRisk, err = number(key, value)
	case "zone_risk":
		next.ZoneRisk, err = number(key, value)
	case "loss_budget":
		next.LossBudget, err = number(key, value)
	case "cores":
		if next.Cores, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("cores %q is not a whole number", value)
		}
	case "width":
		next.Width, err = number(key, value)
	default:
		err = fmt.Errorf("unknown parameter %q: it takes choices, cores, disturbance, edge, holding, interval, lasting, "+
			"loss_budget, margin, market_risk, return, share, type_risk, width, zone_risk", key)
	}
	if err != nil {
		return fmt.Errorf("portfolio: %w", err)
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

func number(key, value string) (float64, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a number", key, value)
	}
	return x, nil
}

func span(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a duration such as 6h", key, value)
	}
	return d, nil
}

// Validate returns an error that names the first parameter out of range, with its value.
func (c Config) Validate() error {
	switch {
	case !(c.Share >= 0 && c.Share <= 1):
		return fmt.Errorf("portfolio: share %v is not in [0, 1]", c.Share)
	case c.Holding <= 0:
		return fmt.Errorf("portfolio: holding %v is not positive", c.Holding)
	case c.Lasting <= 0:
		return fmt.Errorf("portfolio: lasting %v is not positive", c.Lasting)
	case c.Return < 0:
		return fmt.Errorf("portfolio: return %v is negative", c.Return)
	case c.Interval < 0:
		return fmt.Errorf("portfolio: interval %v is negative", c.Interval)
	case c.Disturbance < 0:
		return fmt.Errorf("portfolio: disturbance %v is negative", c.Disturbance)
	case !(c.Edge >= 0 && c.Edge < 1):
		return fmt.Errorf("portfolio: edge %v is not in [0, 1)", c.Edge)
	case c.Choices < 1:
		return fmt.Errorf("portfolio: choices %d is less than 1", c.Choices)
	case !(c.Width >= 0 && c.Width <= 10):
		return fmt.Errorf("portfolio: width %v is not in [0, 10]", c.Width)
	case !(c.Margin >= 0 && c.Margin < 1):
		return fmt.Errorf("portfolio: margin %v is not in [0, 1)", c.Margin)
	case !(c.LossBudget >= 0 && c.LossBudget <= 1):
		return fmt.Errorf("portfolio: loss_budget %v is not in [0, 1]", c.LossBudget)
	case c.Cores < 1:
		return fmt.Errorf("portfolio: cores %d is less than 1", c.Cores)
	}
	for _, r := range [...]struct {
		key  string
		risk float64
	}{{"market_risk", c.MarketRisk}, {"type_risk", c.TypeRisk}, {"zone_risk", c.ZoneRisk}} {
		if !(r.risk >= 0 && r.risk <= 100) {
			return fmt.Errorf("portfolio: %s %v is not in [0, 100]", r.key, r.risk)
		}
	}
	return nil
}

// name returns the name of the policy with c: it lists the parameters that differ from the default,
// in a fixed order.
func (c Config) name() string {
	d := DefaultConfig()
	name := "portfolio"
	float := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, p := range [...]struct {
		differs bool
		text    string
	}{
		{c.Fixed, "share=" + float(c.Share)},
		{c.Holding != d.Holding, "holding=" + c.Holding.String()},
		{c.Lasting != d.Lasting, "lasting=" + c.Lasting.String()},
		{c.Interval != d.Interval, "interval=" + c.Interval.String()},
		{c.Disturbance != d.Disturbance, "disturbance=" + c.Disturbance.String()},
		{c.Edge != d.Edge, "edge=" + float(c.Edge)},
		{c.Margin != d.Margin, "margin=" + float(c.Margin)},
		{c.Return != d.Return, "return=" + c.Return.String()},
		{c.Choices != d.Choices, "choices=" + strconv.Itoa(c.Choices)},
		{c.MarketRisk != d.MarketRisk, "market_risk=" + float(c.MarketRisk)},
		{c.TypeRisk != d.TypeRisk, "type_risk=" + float(c.TypeRisk)},
		{c.ZoneRisk != d.ZoneRisk, "zone_risk=" + float(c.ZoneRisk)},
		{c.LossBudget != d.LossBudget, "loss_budget=" + float(c.LossBudget)},
		{c.Cores != d.Cores, "cores=" + strconv.Itoa(c.Cores)},
		{c.Width != d.Width, "width=" + float(c.Width)},
	} {
		if p.differs {
			name += ":" + p.text
		}
	}
	return name
}
