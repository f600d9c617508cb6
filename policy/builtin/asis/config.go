package asis

import "fmt"

// A Config holds the parameters of the policy. It has none: a baseline that
// could be tuned would be none.
type Config struct{}

// DefaultConfig returns the only configuration.
func DefaultConfig() Config { return Config{} }

// Set reports that the policy has no parameters.
func (c *Config) Set(key, value string) error {
	return fmt.Errorf("as-is: unknown parameter %q: the policy takes none", key)
}
