package rackspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

// A Config contains the addresses of Rackspace Spot and the limits of the backend.
type Config struct {
	// Endpoint is the address of the API, LoginEndpoint the address of the service that issues
	// access tokens, and PricesURL the address of the public price feed.
	Endpoint, LoginEndpoint, PricesURL string

	// ClientID is the OAuth client for which refresh tokens were issued.
	ClientID string

	// Namespace is the default namespace of a credentials secret.
	Namespace string

	// Poll is the interval between two reads of the API. If it is raised, outbid nodes are detected
	// later.
	Poll time.Duration

	// Prices is the time from the end of one read of the price feed to the start of the next.
	// Rackspace settles an auction every few minutes.
	Prices time.Duration

	// Timeout is the maximum duration of one attempt of a request, and Attempts the maximum number
	// of attempts. BackoffMin is the wait after the first attempt. It doubles after each attempt up
	// to BackoffMax, which also limits the wait that the API may request.
	Timeout                time.Duration
	Attempts               int
	BackoffMin, BackoffMax time.Duration

	// WinMax is how long a bid may be open before it counts as refused and is withdrawn. JoinMax is
	// how long after the order a node may take to join the cluster. Rackspace documents 8 to 9
	// minutes.
	WinMax, JoinMax time.Duration

	// Notice is the time from when the market price exceeds the bid of a node to its reclaim; see
	// [policy.NoticeLead].
	Notice time.Duration

	// Settle is how long the API may take to list a new order. If it is raised, the remains of a
	// crash are removed later.
	Settle time.Duration

	// Keep is how long a refused order stays in the ledger, so that a repeated call gets the same
	// result.
	Keep time.Duration

	// Feed receives the regions, server classes and minimum bids. If it is nil, New creates a feed,
	// which [Backend.Feed] returns.
	Feed *Feed

	// Located is called with the region of a cloudspace, once it is known. It may be nil.
	Located func(cloudspace, region string)

	// Fence is called before each write to the cloud and returns an error if this process no longer
	// leads. Nil means that it always leads.
	Fence func(context.Context) error

	// Transport sends the requests; nil means the default transport of net/http.
	Transport http.RoundTripper

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig returns the configuration for the public service.
func DefaultConfig() Config {
	return Config{
		Endpoint:      "https://spot.rackspace.com",
		LoginEndpoint: "https://login.spot.rackspace.com",
		PricesURL:     "https://ngpc-prod-public-data.s3.us-east-2.amazonaws.com/percentiles.json",
		ClientID:      "mwG3lUMV8KyeMqHe4fJ5Bb3nM1vBvRNa",
		Namespace:     "spotter-system",
		Poll:          30 * time.Second, Prices: time.Minute,
		Timeout: 15 * time.Second, Attempts: 4, BackoffMin: 500 * time.Millisecond, BackoffMax: 10 * time.Second,
		WinMax: 10 * time.Minute, JoinMax: 25 * time.Minute, Notice: policy.NoticeLead(policy.Rackspace),
		Settle: 2 * time.Minute, Keep: 10 * time.Minute,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

// now returns the current time.
func (c *Config) now() policy.Time { return policy.TimeOf(c.Clock.Now()) }

// validate returns an error for the first invalid setting.
func (c *Config) validate() error {
	for _, x := range []struct{ name, text string }{
		{"Endpoint", c.Endpoint}, {"LoginEndpoint", c.LoginEndpoint}, {"PricesURL", c.PricesURL},
	} {
		if u, err := url.Parse(x.text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%w: %s is %q, which is not an http or https address", ErrConfig, x.name, x.text)
		}
	}
	if c.ClientID == "" {
		return fmt.Errorf("%w: ClientID is empty", ErrConfig)
	}
	for _, x := range []struct {
		name  string
		value time.Duration
	}{
		{"Poll", c.Poll}, {"Prices", c.Prices}, {"Timeout", c.Timeout}, {"BackoffMin", c.BackoffMin}, {"WinMax", c.WinMax},
		{"Notice", c.Notice}, {"Settle", c.Settle}, {"Keep", c.Keep},
	} {
		if x.value <= 0 {
			return fmt.Errorf("%w: %s is %v, which is not positive", ErrConfig, x.name, x.value)
		}
	}
	switch {
	case c.Attempts < 1:
		return fmt.Errorf("%w: Attempts is %d, which is less than 1", ErrConfig, c.Attempts)
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("%w: BackoffMax is %v, which is less than BackoffMin, %v", ErrConfig, c.BackoffMax, c.BackoffMin)
	case c.JoinMax < c.WinMax:
		return fmt.Errorf("%w: JoinMax is %v, which is less than WinMax, %v", ErrConfig, c.JoinMax, c.WinMax)
	case c.Clock == nil:
		return fmt.Errorf("%w: Clock is missing", ErrConfig)
	case c.Log == nil:
		return fmt.Errorf("%w: Log is missing", ErrConfig)
	}
	return nil
}
