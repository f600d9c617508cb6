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

// ErrConfig is returned for a configuration that cannot be meant.
var ErrConfig = errors.New("invalid setting")

// A Config says where Rackspace Spot is and how long things may take there.
type Config struct {
	// Endpoint is the address of the API, LoginEndpoint that of the service which
	// gives access tokens, and PricesURL that of the public price feed.
	Endpoint, LoginEndpoint, PricesURL string

	// ClientID is the OAuth client for which refresh tokens were issued.
	ClientID string

	// Namespace is that of a credentials secret whose reference names none.
	Namespace string

	// Poll is the time from the end of one reading of the API to the start of the next. Raising it
	// detects outbid nodes later.
	Poll time.Duration

	// Prices is the time from the end of one reading of the price feed to the start of the next;
	// Rackspace settles an auction every few minutes.
	Prices time.Duration

	// Timeout is how long one attempt of a request may take, and Attempts the most attempts.
	// BackoffMin is the wait after the first, doubled after each until BackoffMax, which also
	// bounds the wait that the API requests.
	Timeout                time.Duration
	Attempts               int
	BackoffMin, BackoffMax time.Duration

	// WinMax is how long a bid may be open without being won before it counts as refused and is
	// withdrawn, and JoinMax how long after the order a node may take to join. Rackspace names 8 to
	// 9 minutes.
	WinMax, JoinMax time.Duration

	// Notice is how long a node is left once its bid is below the market price;
	// see [policy.NoticeLead].
	Notice time.Duration

	// Settle is for how long the API may not yet show what was ordered. Raising it
	// delays the removal of what a crash left behind.
	Settle time.Duration

	// Keep is how long a refused order stays in the ledger, where a call that is
	// made again finds its answer.
	Keep time.Duration

	// Feed is given regions, server classes and floors; nil makes one, which
	// [Backend.Feed] returns.
	Feed *Feed

	// Located is called with the region of a cloudspace, once that is known. It may be nil.
	Located func(cloudspace, region string)

	// Fence is called before each write to the cloud and returns whether this process still leads;
	// nil means that it always does.
	Fence func(context.Context) error

	// Transport carries the requests; nil is that of net/http.
	Transport http.RoundTripper

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig returns the settings for the public service.
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

// now returns the time.
func (c *Config) now() policy.Time { return policy.TimeOf(c.Clock.Now()) }

// validate reports the first setting that cannot be meant.
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
