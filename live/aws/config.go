package aws

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// DaysMax is how far back AWS keeps the prices (AWS documentation,
// DescribeSpotPriceHistory).
const DaysMax = 90

// AdvisorURL is where AWS publishes the interruption bands.
const AdvisorURL = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"

// ErrConfig is returned for a configuration that cannot be meant.
var ErrConfig = errors.New("invalid setting")

// A Config says what is recorded and where it goes.
type Config struct {
	// Dir is the folder of the trace.
	Dir string

	// Regions are recorded one after the other.
	Regions []string

	// Types and Families choose instance types: those named, and those of the
	// families named, as m5. Without either all types are recorded.
	Types, Families []string

	// Product is what runs on the nodes, as AWS names it.
	Product string

	// Days is how far back a recording starts. Raising it needs more requests, some 20 for each day
	// of a whole large region.
	Days int

	// Until is the end of the recording; zero means now. With an end in the past, data that is only
	// published for the present is not requested: placement scores and bands.
	Until time.Time

	// ZoneNames keeps the names of zones (us-east-1a), which mean another zone
	// in each account. Otherwise zones go by their IDs (use1-az1).
	ZoneNames bool

	// OnDemand, Scores and Bands say whether these are fetched.
	OnDemand, Scores, Bands bool

	// ScoresMax is the number of configurations (a type in a region) whose placement score is
	// requested within 24 hours. AWS limits new configurations and does not publish the limit; 50
	// is what collectors of the scores report.
	ScoresMax int

	// ScoreCapacity is the number of nodes for which a placement score is requested. Raising it
	// lowers the scores.
	ScoreCapacity int

	// AdvisorURL is where the interruption bands are read.
	AdvisorURL string

	// Endpoint replaces the endpoints of AWS; empty means those of the
	// environment and else AWS's own.
	Endpoint string

	// Timeout bounds one recording, all retries included; 0 means no bound.
	Timeout time.Duration

	// Every is the time from one recording to the next while following.
	Every time.Duration

	// Overlap is how much of the recorded time is requested again while following, because AWS
	// publishes some prices late.
	Overlap time.Duration

	// Pace bounds how fast requests follow each other.
	Pace Pace

	// Now is the clock.
	Now func() time.Time

	// Progress, if not nil, is called with how many of the windows of a recording
	// are done.
	Progress func(done, total int)

	// Warn, if not nil, is called with what does not stop a recording.
	Warn func(text string)

	// Put, if not nil, stores a file of a day elsewhere, whose path below Dir is name. It is
	// called with every one that a recording covers, changed or not, so that what failed is
	// made up for when the recording is finished.
	Put func(ctx context.Context, name string) error
}

// A Pace bounds how fast requests follow each other.
type Pace struct {
	// PerSecond is the most requests a second; 0 means 5 at AWS and 1,000 at
	// another endpoint. A throttled request halves the rate, and each success
	// raises it again a little. AWS refills some 10 a second for all callers of
	// an account together (AWS documentation, "Request throttling for the Amazon
	// EC2 API").
	PerSecond float64

	// BackoffMin and BackoffMax bound the wait before a retry, which doubles
	// from one to the next.
	BackoffMin, BackoffMax time.Duration
}

// DefaultConfig returns the configuration of a recording of the last 90 days. The caller adds
// folder and regions.
func DefaultConfig() Config {
	return Config{
		Product: trace.ProductLinux, Days: DaysMax,
		OnDemand: true, Scores: true, Bands: true, ScoresMax: 50, ScoreCapacity: 1,
		AdvisorURL: AdvisorURL,
		Timeout:    2 * time.Hour, Every: 10 * time.Minute, Overlap: 6 * time.Hour,
		Pace: Pace{BackoffMin: 50 * time.Millisecond, BackoffMax: 30 * time.Second},
		Now:  time.Now,
	}
}

var (
	regionShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`) })
	typeShape   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9-]+$`) })
	familyShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]*$`) })
)

// products are those that DescribeSpotPriceHistory knows (AWS documentation).
var products = []string{
	"Linux/UNIX", "Red Hat Enterprise Linux", "SUSE Linux", "Windows",
	"Linux/UNIX (Amazon VPC)", "Red Hat Enterprise Linux (Amazon VPC)",
	"SUSE Linux (Amazon VPC)", "Windows (Amazon VPC)",
}

// validate names the field that is wrong and its value.
func (c *Config) validate() error {
	fault := func(field, value, rule string) error {
		return fmt.Errorf("%w: %s %q: %s", ErrConfig, field, value, rule)
	}
	if len(c.Regions) == 0 {
		return fault("region", "", "at least one must be set")
	}
	for _, check := range []struct {
		field, rule string
		shape       *regexp.Regexp
		values      []string
	}{
		{"region", "a region is written as us-east-1", regionShape(), c.Regions},
		{"type", "a type is written as m5.large", typeShape(), c.Types},
		{"family", "a family is written as m5", familyShape(), c.Families},
	} {
		for _, v := range check.values {
			if !check.shape.MatchString(v) {
				return fault(check.field, v, check.rule)
			}
		}
	}
	if n := len(c.Types) + len(c.Families); n > filterMax {
		return fault("types", fmt.Sprint(n), fmt.Sprintf("AWS filters by at most %d types and families at once", filterMax))
	}
	if !slices.Contains(products, c.Product) {
		return fault("product", c.Product, "AWS has "+strings.Join(products, ", "))
	}
	for _, address := range []struct{ field, value string }{{"endpoint", c.Endpoint}, {"advisor URL", c.AdvisorURL}} {
		u, err := url.Parse(address.value)
		if address.value != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return fault(address.field, address.value, "it must start with http:// or https:// and name a host")
		}
	}
	return c.validateNumbers()
}

func (c *Config) validateNumbers() error {
	for _, n := range []struct {
		field     string
		value     float64
		low, high float64
	}{
		{"days", float64(c.Days), 1, DaysMax},
		{"score configurations", float64(c.ScoresMax), 0, 1e6},
		{"score capacity", float64(c.ScoreCapacity), 1, 1e6},
		{"time between recordings, in seconds", c.Every.Seconds(), 1, 7 * 86400},
		{"timeout, in seconds", c.Timeout.Seconds(), 0, 365 * 86400},
		{"requests a second", c.Pace.PerSecond, 0, 1e6},
	} {
		if n.value < n.low || n.value > n.high {
			return fmt.Errorf("%w: %s %v: it must be between %v and %v", ErrConfig, n.field, n.value, n.low, n.high)
		}
	}
	if !c.Until.IsZero() && c.Until.After(c.Now()) {
		return fmt.Errorf("%w: the end %v is in the future", ErrConfig, c.Until.UTC().Format(time.RFC3339))
	}
	return nil
}

// sorted returns the names in order, each once.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// takes reports whether the configuration includes a type.
func takes(types, families []string, name string) bool {
	if len(types)+len(families) == 0 {
		return true
	}
	family, _, _ := strings.Cut(name, ".")
	return slices.Contains(types, name) || slices.Contains(families, family)
}

// warn passes on what does not stop a recording.
func (c *Config) warn(format string, args ...any) {
	if c.Warn != nil {
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// advisorProduct is the operating system under which the bands of a product
// are published.
func advisorProduct(product string) string {
	if strings.HasPrefix(product, "Windows") {
		return "Windows"
	}
	return "Linux"
}

// pricingSystem is the operating system under which the on-demand price of a
// product is listed.
func pricingSystem(product string) string {
	name, _, _ := strings.Cut(product, " (")
	switch name {
	case "Windows":
		return "Windows"
	case "Red Hat Enterprise Linux":
		return "RHEL"
	case "SUSE Linux":
		return "SUSE"
	}
	return "Linux"
}
