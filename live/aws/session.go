package aws

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/spotter-dev/spotter/live/aws/wire"
)

// pricingRegion is one of the few regions whose endpoint returns the prices of all regions (AWS
// documentation, "AWS Price List Query API endpoints").
const pricingRegion = "us-east-1"

// A session contains the clients of a recording. Each region has its own rate limiter, as in AWS.
type session struct {
	endpoint string
	pace     Pace
	base     sdk.Config
	http     *wholeClient
	prices   map[string]*ec2.Client // by region; no limit of attempts
	optional map[string]*ec2.Client // by region, for requests that a recording of prices does not depend on
	stats    *stats
	warn     func(format string, args ...any)
}

// newSession finds credentials with the default chain of the SDK.
func newSession(ctx context.Context, c *Config, s *stats) (*session, error) {
	// The chain ends at the instance metadata service, which does not respond outside EC2.
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	base, err := config.LoadDefaultConfig(ctx, config.WithRegion(c.Regions[0]), wire.Silent)
	if err != nil {
		return nil, fmt.Errorf("%w: the AWS configuration cannot be read: %w", ErrNoCredentials, err)
	}
	if _, err := base.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s", ErrNoCredentials, wire.CredentialsFault(err))
	}
	x := &session{
		endpoint: c.Endpoint, pace: c.Pace, base: base, http: newWholeClient(base.HTTPClient),
		prices: map[string]*ec2.Client{}, optional: map[string]*ec2.Client{}, stats: s, warn: c.warn,
	}
	for _, region := range c.Regions {
		x.prices[region], x.optional[region] = x.client(region, 0), x.client(region, optionalAttempts)
	}
	return x, nil
}

// client returns a client of a region. The retries and the check for complete responses apply only
// to this client, not to the sources of credentials.
func (s *session) client(region string, attempts int) *ec2.Client {
	return ec2.NewFromConfig(s.base, func(o *ec2.Options) {
		if s.endpoint != "" {
			o.BaseEndpoint = sdk.String(s.endpoint)
		}
		o.Region, o.RetryMaxAttempts, o.HTTPClient = region, 0, s.http
		o.Retryer = s.pacer(o.BaseEndpoint, "EC2 of "+region, attempts)
	})
}

// pricing returns a client of the price list.
func (s *session) pricing() *pricing.Client {
	return pricing.NewFromConfig(s.base, func(o *pricing.Options) {
		if s.endpoint != "" {
			o.BaseEndpoint = sdk.String(s.endpoint)
		}
		o.Region, o.RetryMaxAttempts, o.HTTPClient = pricingRegion, 0, s.http
		o.Retryer = s.pacer(o.BaseEndpoint, "the price list", optionalAttempts)
	})
}

// pacer returns a pacer for the requests to an endpoint. A nil endpoint is that of AWS.
func (s *session) pacer(endpoint *string, name string, attempts int) *pacer {
	p := newPacer(s.pace.at(endpoint), s.stats)
	p.attempts = attempts
	p.waiting = func(err error) {
		s.warn("%s failed and is retried: %s", name, cause(err))
	}
	return p
}
