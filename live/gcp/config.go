package gcp

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/live/pricelist"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = pricelist.ErrConfig

// A Config contains the address of the price list, the API key and the limits of requests.
type Config struct {
	// Regions are the regions whose prices a [Feed] reports, such as us-central1.
	Regions []string

	// Config contains the address of the Compute Engine SKUs in the Cloud Billing Catalog API, and
	// the limits of requests.
	pricelist.Config

	// Key returns an API key of any project in which the Cloud Billing API is enabled. It is called
	// for each read of the list, so that a key can be replaced. The key is sent as a header, so that
	// it appears in no address and in no error.
	Key func() (string, error)

	// PageSize is the number of SKUs of a page, at most 5,000. With smaller pages a request that
	// fails costs less.
	PageSize int
}

// computeEngine is the address of the SKUs of Compute Engine.
const computeEngine = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"

// DefaultConfig returns the configuration for the public service, without regions and without a
// key. The list, which Google changes on few days of a month, is read once an hour.
func DefaultConfig() Config {
	c := Config{Config: pricelist.DefaultConfig(computeEngine), PageSize: 5000}
	c.Every = time.Hour
	return c
}

// validate returns an error for the first invalid setting.
func (c *Config) validate() error {
	if err := c.Validate(); err != nil {
		return err
	}
	for _, r := range c.Regions {
		if !slices.Contains(catalog.Regions(catalog.GCP), r) {
			return fmt.Errorf("%w: Regions has %q, which is not a region of Google Cloud in the catalog of %s", ErrConfig, r,
				catalog.Date(catalog.GCP))
		}
	}
	switch {
	case c.Key == nil:
		return fmt.Errorf("%w: Key is missing", ErrConfig)
	case c.PageSize < 1 || c.PageSize > 5000:
		return fmt.Errorf("%w: PageSize is %d, which is not from 1 to 5000", ErrConfig, c.PageSize)
	}
	return nil
}
