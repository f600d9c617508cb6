package static

import (
	"fmt"
	"strconv"
)

// A Config contains the parameters of the policy. Start from [DefaultConfig].
type Config struct {
	// Share is the target Spot share of every pool's capacity, in [0, 1], within what the pool
	// allows. Raising it saves more and risks more.
	Share float64
}

// DefaultConfig returns a share of one half.
func DefaultConfig() Config { return Config{Share: 0.5} }

// Set sets the parameter key to value. On an error c is unchanged.
func (c *Config) Set(key, value string) error {
	if key != "share" {
		return fmt.Errorf("static: unknown parameter %q: it takes share", key)
	}
	share, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("static: share %q is not a number", value)
	}
	next := *c
	next.Share = share
	if err := next.validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

func (c Config) validate() error {
	if !(c.Share >= 0 && c.Share <= 1) {
		return fmt.Errorf("static: share %v is not in [0, 1]", c.Share)
	}
	return nil
}
