package leftover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Config holds the parameters of the policy. Start from [DefaultConfig]. What
// the manifest of a pool states goes before ScoreMin, TypesMax and ZonesMax.
type Config struct {
	// Families are the instance families that may be bought, each a whole name:
	// g5 is not g5g. None means all that the pool allows. Naming some narrows
	// the choice.
	Families []string

	// GPUsMin is the least number of accelerators of one node. Raising it
	// leaves out small machines.
	GPUsMin int

	// ScoreMin is the least placement score, 0 to 10, of a Spot market. Raising it goes to
	// on-demand more often. An unknown score passes.
	ScoreMin int

	// TypesMax and ZonesMax are the most instance types and zones to buy in at a time. Raising them
	// spreads the nodes over more expensive markets.
	TypesMax, ZonesMax int

	// PriceMargin is the part of its price by which a market must be cheaper
	// than one that is chosen to take its place, in [0, 1). Raising it changes
	// the choice less often.
	PriceMargin float64

	// ScoreMargin is by how much the score of a market that is chosen may fall
	// below ScoreMin. Raising it keeps such markets for longer.
	ScoreMargin int

	// Window is the age up to which prices are believed: the choice is not
	// changed on older ones. 0 believes them all. Raising it trusts older prices.
	Window time.Duration
}

// DefaultConfig returns the defaults of a LeftoverNodePool, with a margin of a tenth on prices and
// of one on scores.
func DefaultConfig() Config {
	return Config{ScoreMin: 5, TypesMax: 5, ZonesMax: 2, PriceMargin: 0.1, ScoreMargin: 1, Window: 30 * time.Minute}
}

// parameters are the keys that Set knows, ascending.
const parameters = "families, max_instance_types, max_zones, min_gpus, min_placement_score, price_margin, price_window, score_margin"

// Set reads the parameter key from value.
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

// parseFamilies reads names with a plus between each two.
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

// Validate reports the first parameter that is out of range.
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

// name returns the name of the policy with c: what differs from the default
// configuration, in the order of the keys.
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
