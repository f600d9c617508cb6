package pricelist

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

// A Config contains the address of a price list and the limits of its requests.
type Config struct {
	// Endpoint is the address of the list.
	Endpoint string

	// Every is the time from the end of one read of the prices to the start of the next. If it is
	// raised above half of the market book's StaleAfter, one failed read stops purchases.
	Every time.Duration

	// Timeout is the maximum duration of one attempt of a request, and Attempts the maximum number
	// of attempts. BackoffMin is the wait after the first attempt. It doubles after each attempt up
	// to BackoffMax, which also limits the wait that the service may request.
	Timeout                time.Duration
	Attempts               int
	BackoffMin, BackoffMax time.Duration

	// Transport sends the requests; nil means the default transport of net/http.
	Transport http.RoundTripper

	Clock clock.WithTicker
}

// DefaultConfig returns the limits of requests to a list at an address.
func DefaultConfig(endpoint string) Config {
	return Config{
		Endpoint: endpoint, Every: 30 * time.Minute,
		Timeout: 30 * time.Second, Attempts: 5, BackoffMin: time.Second, BackoffMax: 30 * time.Second,
		Clock: clock.RealClock{},
	}
}

// Validate returns an error for the first invalid setting.
func (c *Config) Validate() error {
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: Endpoint is %q, which is not an http or https address", ErrConfig, c.Endpoint)
	}
	for _, x := range []struct {
		name  string
		value time.Duration
	}{{"Every", c.Every}, {"Timeout", c.Timeout}, {"BackoffMin", c.BackoffMin}} {
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
	}
	return nil
}
