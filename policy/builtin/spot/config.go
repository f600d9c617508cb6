package spot

import "fmt"

// A Config holds the parameters of the policy. It has none.
type Config struct{}

// DefaultConfig returns the only configuration.
func DefaultConfig() Config { return Config{} }

// Set reports that the policy has no parameters.
func (c *Config) Set(key, value string) error {
	return fmt.Errorf("spot: unknown parameter %q: the policy takes none", key)
}
