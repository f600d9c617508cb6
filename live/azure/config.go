package azure

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

// A Config contains the address of the price API and the limits of its requests.
type Config struct {
	// Regions are the regions whose prices a [Feed] reports, such as westeurope.
	Regions []string

	// Endpoint is the address of the Azure Retail Prices API.
	Endpoint string

	// Every is the time from the end of one read of the prices to the start of the next. Azure
	// changes its Spot prices on few days of a month. If it is raised above half of the market
	// book's StaleAfter, one failed read stops purchases.
	Every time.Duration

	// Whole is the time after which the whole list of a region is read again, which finds types
	// that the region did not sell before.
	Whole time.Duration

	// Timeout is the maximum duration of one attempt of a request, and Attempts the maximum number
	// of attempts. BackoffMin is the wait after the first attempt. It doubles after each attempt up
	// to BackoffMax, which also limits the wait that the API may request.
	Timeout                time.Duration
	Attempts               int
	BackoffMin, BackoffMax time.Duration

	// Transport sends the requests; nil means the default transport of net/http.
	Transport http.RoundTripper

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig returns the configuration for the public service, without regions.
func DefaultConfig() Config {
	return Config{
		Endpoint: "https://prices.azure.com/api/retail/prices",
		Every:    30 * time.Minute, Whole: 24 * time.Hour,
		Timeout: 30 * time.Second, Attempts: 5, BackoffMin: time.Second, BackoffMax: 30 * time.Second,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

// validate returns an error for the first invalid setting.
func (c *Config) validate() error {
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: Endpoint is %q, which is not an http or https address", ErrConfig, c.Endpoint)
	}
	for _, r := range c.Regions {
		if !slices.Contains(catalog.Regions(catalog.Azure), r) {
			return fmt.Errorf("%w: Regions has %q, which is not a region of Azure in the catalog of %s", ErrConfig, r,
				catalog.Date(catalog.Azure))
		}
	}
	for _, x := range []struct {
		name  string
		value time.Duration
	}{{"Every", c.Every}, {"Whole", c.Whole}, {"Timeout", c.Timeout}, {"BackoffMin", c.BackoffMin}} {
		if x.value <= 0 {
			return fmt.Errorf("%w: %s is %v, which is not positive", ErrConfig, x.name, x.value)
		}
	}
	switch {
	case c.Attempts < 1:
		return fmt.Errorf("%w: Attempts is %d, which is less than 1", ErrConfig, c.Attempts)
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("%w: BackoffMax is %v, which is less than BackoffMin, %v", ErrConfig, c.BackoffMax, c.BackoffMin)
	case c.Clock == nil:
		return fmt.Errorf("%w: Clock is missing", ErrConfig)
	case c.Log == nil:
		return fmt.Errorf("%w: Log is missing", ErrConfig)
	}
	return nil
}
