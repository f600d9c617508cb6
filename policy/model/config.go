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

	// Cooldown is the least time between two changes of one pool, unless the
	// pool states a longer one; leaving spot altogether waits for nothing.
	// Raising it makes the policy slower and moves fewer pods.
	Cooldown time.Duration

	// Cap holds the share at what the pods can bear to lose, whatever the
	// values say. Without it only the guardrails do.
	Cap bool
}

// DefaultConfig returns the parameters used where none are given.
func DefaultConfig() Config { return Config{Cooldown: 10 * time.Minute, Cap: true} }

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
	case "cap":
		form = "true or false"
		next.Cap, err = strconv.ParseBool(value)
	default:
		return fmt.Errorf("model: unknown parameter %q: it knows bundle, cap, cooldown, margin", key)
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

// longest is the longest cooldown that makes sense.
const longest = 7 * 24 * time.Hour

func (c Config) validate() error {
	switch {
	case !(c.Margin >= 0 && c.Margin <= 1e6):
		return fmt.Errorf("model: margin %v is not in [0, 1e6]", c.Margin)
	case c.Cooldown < 0 || c.Cooldown > longest:
		return fmt.Errorf("model: cooldown %v is not in [0s, %v]", c.Cooldown, longest)
	}
	return nil
}

// name returns "model" with the parameters that are not the default ones.
func (c Config) name() string {
	d := DefaultConfig()
	parts := []string{"model"}
	if c.Cap != d.Cap {
		parts = append(parts, "cap="+strconv.FormatBool(c.Cap))
	}
	if c.Cooldown != d.Cooldown {
		parts = append(parts, "cooldown="+c.Cooldown.String())
	}
	if c.Margin != d.Margin {
		parts = append(parts, "margin="+strconv.FormatFloat(c.Margin, 'g', -1, 64))
	}
	return strings.Join(parts, ":")
}
