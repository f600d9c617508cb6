package rescheduler

import (
	"fmt"
	"strconv"
	"time"
)

// A Config contains the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// OnDemandLabel and SpotLabel distinguish nodes by a label, "name" or "name=value"; a node with
	// both is Spot. If one is empty, the nodes of that kind are identified by the capacity type
	// that they were bought as.
	OnDemandLabel, SpotLabel string

	// DrainDelay is the minimum time between two rounds of drains, over all pools. Raising it moves
	// nodes less often.
	DrainDelay time.Duration

	// Drains is the number of nodes that one round empties.
	Drains Drains

	// DeleteNonReplicated evicts pods that no controller would create again. Such pods are lost.
	DeleteNonReplicated bool

	// ScaleUp buys Spot nodes for pods that fit on no existing node, if they cost less than the
	// node that they replace.
	ScaleUp bool
}

// Drains is the number of nodes that one round of drains empties.
type Drains string

// The values of Drains: one node, or as many as the disruption budgets of the pools allow.
const (
	OneNode  Drains = "one"
	ByBudget Drains = "budget"
)

// DefaultConfig returns the limits of the K8s Spot Rescheduler: one node every ten minutes, and no
// pod that would be lost. Nodes are distinguished by the capacity type that they were bought as.
func DefaultConfig() Config {
	return Config{DrainDelay: 10 * time.Minute, Drains: OneNode, ScaleUp: true}
}

// Set sets the parameter key to value. On an error c is unchanged.
func (c *Config) Set(key, value string) error {
	next := *c
	var err error
	switch key {
	case "on_demand_label":
		next.OnDemandLabel, err = value, checkLabel("on demand", value)
	case "spot_label":
		next.SpotLabel, err = value, checkLabel("spot", value)
	case "drain_delay":
		if next.DrainDelay, err = time.ParseDuration(value); err != nil {
			err = fmt.Errorf("drain_delay %q is not a duration such as 10m", value)
		}
	case "drains":
		next.Drains = Drains(value)
	case "delete_non_replicated":
		next.DeleteNonReplicated, err = parseBool(key, value)
	case "scale_up":
		next.ScaleUp, err = parseBool(key, value)
	default:
		err = fmt.Errorf("unknown parameter %q: it takes delete_non_replicated, drain_delay, drains, on_demand_label, scale_up, spot_label", key)
	}
	if err != nil {
		return fmt.Errorf("rescheduler: %w", err)
	}
	if err := next.validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

func parseBool(key, value string) (bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s %q is not true or false", key, value)
	}
	return b, nil
}

func (c Config) validate() error {
	switch {
	case c.DrainDelay < 0:
		return fmt.Errorf("rescheduler: drain_delay %v is negative", c.DrainDelay)
	case c.Drains != OneNode && c.Drains != ByBudget:
		return fmt.Errorf("rescheduler: drains %q is neither %s nor %s", c.Drains, OneNode, ByBudget)
	}
	if c.OnDemandLabel != "" {
		if err := checkLabel("on demand", c.OnDemandLabel); err != nil {
			return fmt.Errorf("rescheduler: %w", err)
		}
	}
	if c.SpotLabel != "" {
		if err := checkLabel("spot", c.SpotLabel); err != nil {
			return fmt.Errorf("rescheduler: %w", err)
		}
	}
	return nil
}

// name returns the name of the policy with c: it lists the parameters that differ from the default,
// in a fixed order.
func (c Config) name() string {
	d := DefaultConfig()
	name := "rescheduler"
	if c.OnDemandLabel != d.OnDemandLabel {
		name += ":on_demand_label=" + c.OnDemandLabel
	}
	if c.SpotLabel != d.SpotLabel {
		name += ":spot_label=" + c.SpotLabel
	}
	if c.DrainDelay != d.DrainDelay {
		name += ":drain_delay=" + c.DrainDelay.String()
	}
	if c.Drains != d.Drains {
		name += ":drains=" + string(c.Drains)
	}
	if c.DeleteNonReplicated != d.DeleteNonReplicated {
		name += ":delete_non_replicated=" + strconv.FormatBool(c.DeleteNonReplicated)
	}
	if c.ScaleUp != d.ScaleUp {
		name += ":scale_up=" + strconv.FormatBool(c.ScaleUp)
	}
	return name
}
