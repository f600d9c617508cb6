package model

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Config holds the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// Margin is by how much the value of an action must exceed that of holding
	// still. Raising it moves fewer nodes.
	Margin float64

	// Cooldown is how often the share of a pool may change, unless the pool
	// states a longer time: in the step that follows each multiple of it (UTC),
	// so that a network is asked as often as it was while it learned. Leaving spot
	// altogether waits for nothing. Raising it makes the policy slower and moves
	// fewer pods.
	Cooldown time.Duration

	// Interval is the least time between two searches of all nodes and markets for better ones
	// while nothing else happens. Raising it costs less processor time and leaves nodes longer in
	// expensive markets.
	Interval time.Duration

	// Cap limits the share to what the pods can afford to lose with all of their pool's Spot nodes,
	// whatever the values say. Without it they are spread so that the loss of any one market or
	// zone does no harm.
	Cap bool

	// Spread is the most nodes that move at once out of Spot markets that have more pods of a
	// service than it can spare; 0 leaves them there. Raising it spreads sooner, and moves more
	// pods.
	Spread int

	// Floor is the largest part of a pool's capacity that may be on demand because more pods of a
	// service would be lost with a node, a market, a type or a zone of Spot than it can spare; 0
	// leaves all of it to the share. Raising it costs more and loses less: docs/models.md has the
	// figures, and how the default was chosen.
	Floor float64

	// Calm stops voluntary moves while a node is about to be taken. Without it moves continue, and
	// pods that have two minutes may wait for them.
	Calm bool
}

// DefaultConfig returns the parameters used where none are given.
func DefaultConfig() Config {
	return Config{Cooldown: 30 * time.Minute, Interval: 4 * time.Hour, Spread: 2, Floor: 0.3, Calm: true}
}

// Set reads the parameter key from value.
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

// longest is the longest cooldown or interval that makes sense.
const longest = 7 * 24 * time.Hour

// spreadMost is the largest number of nodes that makes sense to move at once.
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

// name returns "model" with the parameters that are not the default ones.
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
