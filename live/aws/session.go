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
)

// pricingRegion is one of the few regions that answer for the prices of all
// (AWS documentation, "AWS Price List Query API endpoints").
const pricingRegion = "us-east-1"

// A session holds the clients of a recording. Each region has a limiter of its
// own, as it has at AWS.
type session struct {
	endpoint string
	pace     Pace
	base     sdk.Config
	http     *wholeClient
	regions  map[string]*ec2.Client
	stats    *stats
}

// newSession finds credentials by the default chain of the SDK.
func newSession(ctx context.Context, c *Config, s *stats) (*session, error) {
	// The chain ends at the metadata service of an instance, which elsewhere
	// nobody answers.
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	base, err := config.LoadDefaultConfig(ctx, config.WithRegion(c.Regions[0]))
	if err != nil {
		return nil, fmt.Errorf("%w: the configuration of AWS cannot be read: %w", ErrNoCredentials, err)
	}
	if _, err := base.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s", ErrNoCredentials, firstLine(err.Error()))
	}
	return &session{
		endpoint: c.Endpoint, pace: c.Pace, base: base, http: newWholeClient(base.HTTPClient),
		regions: map[string]*ec2.Client{}, stats: s,
	}, nil
}

// ec2 returns the client of a region. Retries and the check of whole answers
// are for it alone: the sources of credentials keep their own.
func (s *session) ec2(region string) *ec2.Client {
	if c := s.regions[region]; c != nil {
		return c
	}
	limits := newPacer(s.pace, s.stats)
	c := ec2.NewFromConfig(s.base, func(o *ec2.Options) {
		o.Region, o.Retryer, o.RetryMaxAttempts, o.HTTPClient = region, limits, 0, s.http
		if s.endpoint != "" {
			o.BaseEndpoint = sdk.String(s.endpoint)
		}
	})
	s.regions[region] = c
	return c
}

// pricing returns the client of the price list.
func (s *session) pricing() *pricing.Client {
	limits := newPacer(s.pace, s.stats)
	return pricing.NewFromConfig(s.base, func(o *pricing.Options) {
		o.Region, o.Retryer, o.RetryMaxAttempts, o.HTTPClient = pricingRegion, limits, 0, s.http
		if s.endpoint != "" {
			o.BaseEndpoint = sdk.String(s.endpoint)
		}
	})
}

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' {
			return s[:i]
		}
	}
	return s
}
