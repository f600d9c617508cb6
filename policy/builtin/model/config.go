package model

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Config contains the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// Margin is how far the value of an action must exceed the value of holding. Raising it moves
	// fewer nodes.
	Margin float64

	// Cooldown is the interval at which the share of a pool may change, unless the pool states a
	// longer one. The share changes only in the step after a multiple of it (UTC), so that the
	// network is evaluated as often as during training. Leaving Spot altogether is not delayed.
	// Raising it makes the policy slower and moves fewer pods.
	Cooldown time.Duration

	// Interval is the minimum time between two searches of all nodes and markets for better ones
	// while nothing else happens. Raising it costs less processor time and leaves nodes longer in
	// expensive markets.
	Interval time.Duration

	// Cap limits the share to what the pods can afford to lose with all Spot nodes of their pool,
	// whatever the values are. Without it, pods are spread so that the loss of any one market or
	// zone does no harm.
	Cap bool

	// Spread is the maximum number of nodes that move at once out of Spot markets that have more
	// pods of a service than the service can spare; 0 leaves them there. Raising it spreads sooner,
	// and moves more pods.
	Spread int

	// Floor is the maximum fraction of a pool's capacity, in [0, 1], that may be on-demand because
	// with a Spot node, market, type or zone more pods of a service would be lost than the service
	// can spare; 0 disables it. Raising it costs more and loses less: docs/models.md has the
	// figures, and how the default was chosen.
	Floor float64

	// Calm stops voluntary moves while a node is about to be reclaimed. Without it moves continue,
	// and pods that have two minutes may wait for them.
	Calm bool
}

// DefaultConfig returns the default parameters.
func DefaultConfig() Config {
	return Config{Cooldown: 30 * time.Minute, Interval: 4 * time.Hour, Spread: 2, Floor: 0.3, Calm: true}
}

// Set sets the parameter key to value. On an error c is unchanged.
func (c *Config) Set(key, value string) error {
	next := *c
	var err error
	form := "a number"
	switch key {
	case "margin":
		next.Margin, err = strconv.ParseFloat(value, 64)
	case "cooldown":
		form = "a duration such as 10m"
		next.Cooldown, err = time.ParseDuration(value)
	case "interval":
		form = "a duration such as 10m"
		next.Interval, err = time.ParseDuration(value)
	case "spread":
		form = "a whole number"
		next.Spread, err = strconv.Atoi(value)
	case "calm":
		form = "true or false"
		next.Calm, err = strconv.ParseBool(value)
	case "floor":
		next.Floor, err = strconv.ParseFloat(value, 64)
	case "cap":
		form = "true or false"
		next.Cap, err = strconv.ParseBool(value)
	default:
		return fmt.Errorf("model: unknown parameter %q: it takes bundle, calm, cap, cooldown, floor, interval, margin, spread", key)
	}
	if err != nil {
		return fmt.Errorf("model: %s %q is not %s", key, value, form)
	}
	if err := next.validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

// longest is the upper limit of the cooldown and of the interval.
const longest = 7 * 24 * time.Hour

// spreadMost is the upper limit of Spread.
const spreadMost = 100

func (c Config) validate() error {
	switch {
	case !(c.Margin >= 0 && c.Margin <= 1e6):
		return fmt.Errorf("model: margin %v is not in [0, 1e6]", c.Margin)
	case c.Cooldown < 0 || c.Cooldown > longest:
		return fmt.Errorf("model: cooldown %v is not in [0s, %v]", c.Cooldown, longest)
	case c.Spread < 0 || c.Spread > spreadMost:
		return fmt.Errorf("model: spread %d is not in [0, %d]", c.Spread, spreadMost)
	case !(c.Floor >= 0 && c.Floor <= 1):
		return fmt.Errorf("model: floor %v is not in [0, 1]", c.Floor)
	case c.Interval < 0 || c.Interval > longest:
		return fmt.Errorf("model: interval %v is not in [0s, %v]", c.Interval, longest)
	}
	return nil
}

// name returns "model" followed by the parameters that differ from the default.
func (c Config) name() string {
	d := DefaultConfig()
	parts := []string{"model"}
	if c.Calm != d.Calm {
		parts = append(parts, "calm="+strconv.FormatBool(c.Calm))
	}
	if c.Cap != d.Cap {
		parts = append(parts, "cap="+strconv.FormatBool(c.Cap))
	}
	if c.Cooldown != d.Cooldown {
		parts = append(parts, "cooldown="+c.Cooldown.String())
	}
	if c.Floor != d.Floor {
		parts = append(parts, "floor="+strconv.FormatFloat(c.Floor, 'g', -1, 64))
	}
	if c.Interval != d.Interval {
		parts = append(parts, "interval="+c.Interval.String())
	}
	if c.Margin != d.Margin {
		parts = append(parts, "margin="+strconv.FormatFloat(c.Margin, 'g', -1, 64))
	}
	if c.Spread != d.Spread {
		parts = append(parts, "spread="+strconv.Itoa(c.Spread))
	}
	return strings.Join(parts, ":")
}
