package azure

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/live/pricelist"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = pricelist.ErrConfig

// A Config contains the address of the price API and the limits of its requests.
type Config struct {
	// Regions are the regions whose prices a [Feed] reports, such as westeurope.
	Regions []string

	// Config contains the address of the Azure Retail Prices API and the limits of requests. Azure
	// changes its Spot prices on few days of a month.
	pricelist.Config

	// Whole is the time after which the whole list of a region is read again, which finds types
	// that the region did not sell before.
	Whole time.Duration

	Log *slog.Logger
}

// DefaultConfig returns the configuration for the public service, without regions.
func DefaultConfig() Config {
	return Config{
		Config: pricelist.DefaultConfig("https://prices.azure.com/api/retail/prices"),
		Whole:  24 * time.Hour, Log: slog.Default(),
	}
}

// validate returns an error for the first invalid setting.
func (c *Config) validate() error {
	if err := c.Validate(); err != nil {
		return err
	}
	for _, r := range c.Regions {
		if !slices.Contains(catalog.Regions(catalog.Azure), r) {
			return fmt.Errorf("%w: Regions has %q, which is not a region of Azure in the catalog of %s", ErrConfig, r,
				catalog.Date(catalog.Azure))
		}
	}
	switch {
	case c.Whole <= 0:
		return fmt.Errorf("%w: Whole is %v, which is not positive", ErrConfig, c.Whole)
	case c.Log == nil:
		return fmt.Errorf("%w: Log is missing", ErrConfig)
	}
	return nil
}
