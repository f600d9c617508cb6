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

// DaysMax is the number of days for which AWS keeps Spot prices (AWS documentation,
// DescribeSpotPriceHistory).
const DaysMax = 90

// AdvisorURL is the address at which AWS publishes the interruption bands.
const AdvisorURL = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

// A Config configures a recording or a Reader.
type Config struct {
	// Dir is the folder of the trace.
	Dir string

	// Regions are recorded one after the other.
	Regions []string

	// Types and Families select instance types by name and by family, such as m5. If both are
	// empty, all types are recorded.
	Types, Families []string

	// Product is the product description of AWS, such as Linux/UNIX.
	Product string

	// Days is the number of days before the end at which a recording starts. A higher value needs
	// more requests, about 20 for each day of a large region with all types.
	Days int

	// Until is the end of the recording; zero means now. If it is set, data that AWS publishes only
	// for the present is not requested: placement scores and bands.
	Until time.Time

	// ZoneNames identifies zones by name (us-east-1a), which refers to a different zone in each
	// account. Otherwise zones are identified by ID (use1-az1).
	ZoneNames bool

	// OnDemand, Scores and Bands select whether these data are fetched.
	OnDemand, Scores, Bands bool

	// ScoresMax is the maximum number of configurations (a type in a region) whose placement score
	// is requested within 24 hours. AWS limits new configurations and does not publish the limit;
	// collectors of the scores report 50.
	ScoresMax int

	// ScoreCapacity is the number of nodes for which a placement score is requested. A higher value
	// lowers the scores.
	ScoreCapacity int

	// AdvisorURL is the address from which the interruption bands are read.
	AdvisorURL string

	// Endpoint replaces the endpoints of AWS. Empty means those of the environment, or else the
	// default endpoints of AWS.
	Endpoint string

	// Timeout is the maximum duration of one recording, including all retries; 0 means no limit.
	Timeout time.Duration

	// Every is the time from the start of one recording to the next while following.
	Every time.Duration

	// Overlap is the part of the recorded time that is requested again, because AWS publishes some
	// prices late.
	Overlap time.Duration

	// Pace limits the rate of requests.
	Pace Pace

	// Now returns the current time.
	Now func() time.Time

	// Progress, if not nil, is called with the number of completed windows of a recording and their
	// total.
	Progress func(done, total int)

	// Warn, if not nil, is called with problems that do not stop a recording.
	Warn func(text string)

	// Put, if not nil, copies the file of a day to other storage. name is its path relative to Dir.
	// Put is called for every day that a recording covers, changed or not, so that failed copies
	// are repeated when the recording is finished.
	Put func(ctx context.Context, name string) error
}

// A Pace limits the rate of requests.
type Pace struct {
	// PerSecond is the maximum number of requests per second; 0 means 5 for AWS and 1,000 for
	// another endpoint. A throttled request halves the rate, and each success increases it
	// slightly. AWS allows about 10 per second for all callers of an account together (AWS
	// documentation, "Request throttling for the Amazon EC2 API").
	PerSecond float64

	// BackoffMin and BackoffMax limit the wait before a retry, which doubles with each retry.
	BackoffMin, BackoffMax time.Duration
}

// DefaultConfig returns the configuration of a recording of the last 90 days. The caller must set
// Dir and Regions.
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

// products are the product descriptions of DescribeSpotPriceHistory (AWS documentation).
var products = []string{
	"Linux/UNIX", "Red Hat Enterprise Linux", "SUSE Linux", "Windows",
	"Linux/UNIX (Amazon VPC)", "Red Hat Enterprise Linux (Amazon VPC)",
	"SUSE Linux (Amazon VPC)", "Windows (Amazon VPC)",
}

// validate returns an error that names the first invalid field and its value.
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

// sorted returns the names sorted and without duplicates.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// takes reports whether types and families select the type with the name.
func takes(types, families []string, name string) bool {
	if len(types)+len(families) == 0 {
		return true
	}
	family, _, _ := strings.Cut(name, ".")
	return slices.Contains(types, name) || slices.Contains(families, family)
}

// warn calls Warn, if it is set, with a problem that does not stop a recording.
func (c *Config) warn(format string, args ...any) {
	if c.Warn != nil {
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// advisorProduct returns the operating system under which the bands of a product are published.
func advisorProduct(product string) string {
	if strings.HasPrefix(product, "Windows") {
		return "Windows"
	}
	return "Linux"
}

// pricingSystem returns the operating system under which the on-demand prices of a product are
// listed.
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
