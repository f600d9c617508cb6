package leftover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Config contains the parameters of the policy. Start from [DefaultConfig]. Values in the
// manifest of a pool override ScoreMin, TypesMax and ZonesMax.
type Config struct {
	// Families are the instance families that may be bought, as whole names: g5 does not include
	// g5g. An empty list means all families that the pool allows. Naming some narrows the choice.
	Families []string

	// GPUsMin is the minimum number of accelerators of a node. Raising it excludes small machines.
	GPUsMin int

	// ScoreMin is the minimum placement score, 0 to 10, of a Spot market. Raising it falls back to
	// on-demand more often. An unknown score passes.
	ScoreMin int

	// TypesMax and ZonesMax are the maximum numbers of instance types and zones to buy in at a
	// time. Raising them spreads the nodes over more expensive markets.
	TypesMax, ZonesMax int

	// PriceMargin is the fraction by which a market must be cheaper than a chosen one to replace
	// it, in [0, 1). Raising it changes the choice less often.
	PriceMargin float64

	// ScoreMargin is how far the score of a chosen market may fall below ScoreMin. Raising it keeps
	// such markets for longer.
	ScoreMargin int

	// Window is the maximum age of prices on which the choice may change; 0 means no limit. Raising
	// it trusts older prices.
	Window time.Duration
}

// DefaultConfig returns the defaults of a LeftoverNodePool, with a price margin of a tenth and a
// score margin of one.
func DefaultConfig() Config {
	return Config{ScoreMin: 5, TypesMax: 5, ZonesMax: 2, PriceMargin: 0.1, ScoreMargin: 1, Window: 30 * time.Minute}
}

// parameters are the keys that Set accepts, in ascending order.
const parameters = "families, max_instance_types, max_zones, min_gpus, min_placement_score, price_margin, price_window, score_margin"

// Set sets the parameter key to value. On an error c is unchanged.
func (c *Config) Set(key, value string) error {
	next := *c
	var err error
	switch key {
	case "families":
		next.Families, err = parseFamilies(value)
	case "max_instance_types":
		next.TypesMax, err = parseCount(key, value)
	case "max_zones":
		next.ZonesMax, err = parseCount(key, value)
	case "min_gpus":
		next.GPUsMin, err = parseCount(key, value)
	case "min_placement_score":
		next.ScoreMin, err = parseCount(key, value)
	case "score_margin":
		next.ScoreMargin, err = parseCount(key, value)
	case "price_margin":
		if next.PriceMargin, err = strconv.ParseFloat(value, 64); err != nil {
			err = fmt.Errorf("price_margin %q is not a number", value)
		}
	case "price_window":
		if next.Window, err = time.ParseDuration(value); err != nil {
			err = fmt.Errorf("price_window %q is not a duration such as 30m", value)
		}
	default:
		err = fmt.Errorf("unknown parameter %q: it takes %s", key, parameters)
	}
	if err != nil {
		return fmt.Errorf("leftover: %w", err)
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

// parseFamilies parses names separated by plus signs.
func parseFamilies(value string) ([]string, error) {
	names := strings.Split(value, "+")
	if slices.Contains(names, "") {
		return nil, fmt.Errorf("families %q is not a list such as g4dn+g5", value)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func parseCount(key, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a whole number", key, value)
	}
	return n, nil
}

// Validate returns an error for the first parameter that is out of range.
func (c Config) Validate() error {
	for _, x := range [...]struct {
		key         string
		value       int
		least, most int
	}{
		{"max_instance_types", c.TypesMax, 1, 1000},
		{"max_zones", c.ZonesMax, 1, 1000},
		{"min_gpus", c.GPUsMin, 0, 1000},
		{"min_placement_score", c.ScoreMin, 0, 10},
		{"score_margin", c.ScoreMargin, 0, 10},
	} {
		if x.value < x.least || x.value > x.most {
			return fmt.Errorf("leftover: %s %d is not in [%d, %d]", x.key, x.value, x.least, x.most)
		}
	}
	if !(c.PriceMargin >= 0 && c.PriceMargin < 1) {
		return fmt.Errorf("leftover: price_margin %v is not in [0, 1)", c.PriceMargin)
	}
	if c.Window < 0 {
		return fmt.Errorf("leftover: price_window %v is negative", c.Window)
	}
	return nil
}

// name returns the name of the policy with c: it lists the parameters that differ from the default,
// in the order of their keys.
func (c Config) name() string {
	d := DefaultConfig()
	name := "leftover"
	add := func(differs bool, key, value string) {
		if differs {
			name += ":" + key + "=" + value
		}
	}
	add(len(c.Families) > 0, "families", strings.Join(c.Families, "+"))
	add(c.TypesMax != d.TypesMax, "max_instance_types", strconv.Itoa(c.TypesMax))
	add(c.ZonesMax != d.ZonesMax, "max_zones", strconv.Itoa(c.ZonesMax))
	add(c.GPUsMin != d.GPUsMin, "min_gpus", strconv.Itoa(c.GPUsMin))
	add(c.ScoreMin != d.ScoreMin, "min_placement_score", strconv.Itoa(c.ScoreMin))
	add(c.PriceMargin != d.PriceMargin, "price_margin", strconv.FormatFloat(c.PriceMargin, 'g', -1, 64))
	add(c.Window != d.Window, "price_window", c.Window.String())
	add(c.ScoreMargin != d.ScoreMargin, "score_margin", strconv.Itoa(c.ScoreMargin))
	return name
}
