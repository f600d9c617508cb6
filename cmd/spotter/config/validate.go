package config

import (
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// The values that are allowed in fields of a configuration.
var (
	Modes      = []string{"shadow", "approve", "active"}
	Backends   = []string{"asg", "karpenter", "rackspace"}
	Levels     = []string{"debug", "info", "warn", "error"}
	Formats    = []string{"json", "text"}
	encryption = []string{"", "AES256", "aws:kms"}
)

// pricesMax is the longest interval at which prices are read. It leaves time for a second read
// before prices are too old to be used.
const pricesMax = time.Hour

// Validate returns the fields with invalid values.
func (c *SpotterConfiguration) Validate() field.ErrorList {
	var all field.ErrorList
	oneOf := func(value string, of []string, at *field.Path) {
		if !slices.Contains(of, value) {
			all = append(all, field.NotSupported(at, value, of))
		}
	}
	eachOf := func(values, of []string, at *field.Path) {
		for i, v := range values {
			oneOf(v, of, at.Index(i))
		}
	}
	oneOf(c.Mode, Modes, field.NewPath("mode"))
	oneOf(c.Logging.Level, Levels, field.NewPath("logging", "level"))
	oneOf(c.Logging.Format, Formats, field.NewPath("logging", "format"))
	oneOf(c.Recording.Bucket.Encryption, encryption, field.NewPath("recording", "bucket", "encryption"))
	eachOf(c.Backends, Backends, field.NewPath("backends"))
	eachOf(c.Metrics.Compat, metrics.Systems, field.NewPath("metrics", "compat"))
	eachOf(c.Prices.AzureRegions, catalog.Regions(catalog.Azure), field.NewPath("prices", "azureRegions"))
	for i, l := range c.SpotLabels {
		if _, err := kube.ParseCapacityLabel(l); err != nil {
			all = append(all, field.Invalid(field.NewPath("spotLabels").Index(i), l, "must be of the form name or name=value"))
		}
	}
	if len(c.Backends) == 0 {
		all = append(all, field.Required(field.NewPath("backends"), "name what provisions nodes"))
	}
	if slices.Contains(c.Backends, "asg") && len(c.Prices.Regions) == 0 {
		all = append(all, field.Required(field.NewPath("prices", "regions"),
			"the backend asg needs the regions of its groups"))
	}
	all = append(all, c.Notifications.validate(field.NewPath("notifications"))...)
	return append(append(append(all, c.validateTimes()...), c.validateNumbers()...), c.validateUnused()...)
}

// headerName matches a valid name of an HTTP header.
var headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") })

// validate returns the invalid fields of n.
func (n *Notifications) validate(at *field.Path) field.ErrorList {
	var all field.ErrorList
	if u, err := url.Parse(n.URL); n.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "") {
		all = append(all, field.Invalid(at.Child("url"), n.URL, "must be a URL of http or https"))
	}
	if _, err := url.Parse(n.Source); err != nil {
		all = append(all, field.Invalid(at.Child("source"), n.Source, "must be a URI reference"))
	}
	if !headerName().MatchString(n.Header) {
		all = append(all, field.Invalid(at.Child("header"), n.Header, "must be the name of a header"))
	}
	return all
}

// validateTimes returns the durations that are out of range.
func (c *SpotterConfiguration) validateTimes() field.ErrorList {
	var all field.ErrorList
	within := func(value, low, high time.Duration, path ...string) {
		if value < low || value > high {
			all = append(all, field.Invalid(field.NewPath(path[0], path[1:]...), value.String(),
				"must be within "+low.String()+" and "+high.String()))
		}
	}
	const day = 24 * time.Hour
	within(c.StepInterval.Duration, time.Second, day, "stepInterval")
	within(c.ShutdownTimeout.Duration, time.Second, time.Hour, "shutdownTimeout")
	within(c.Models.Timeout.Duration, time.Millisecond, time.Hour, "models", "timeout")
	within(c.Usage.Prometheus.Timeout.Duration, time.Millisecond, time.Hour, "usage", "prometheus", "timeout")
	within(c.Recording.Keep.Duration, 0, 100*365*day, "recording", "keep")
	within(c.Recording.Complete.Duration, time.Second, time.Hour, "recording", "complete")
	if c.Prices.Interval.Duration != 0 {
		within(c.Prices.Interval.Duration, time.Second, pricesMax, "prices", "interval")
	}
	l := &c.LeaderElection
	within(l.RetryPeriod.Duration, 100*time.Millisecond, time.Minute, "leaderElection", "retryPeriod")
	// client-go adds a random jitter of up to a fifth of the period.
	if at := field.NewPath("leaderElection",
		"renewDeadline"); l.RenewDeadline.Duration <= l.RetryPeriod.Duration+l.RetryPeriod.Duration/5 {
		all = append(all, field.Invalid(at, l.RenewDeadline.Duration.String(),
			"must be more than 1.2 times retryPeriod, "+l.RetryPeriod.Duration.String()))
	}
	if at := field.NewPath("leaderElection", "leaseDuration"); l.LeaseDuration.Duration <= l.RenewDeadline.Duration {
		all = append(all, field.Invalid(at, l.LeaseDuration.Duration.String(),
			"must be more than renewDeadline, "+l.RenewDeadline.Duration.String()))
	}
	return all
}

// validateNumbers returns the numbers that are out of range.
func (c *SpotterConfiguration) validateNumbers() field.ErrorList {
	var all field.ErrorList
	within := func(value, low, high float64, says string, path ...string) {
		if !(value >= low && value <= high) {
			all = append(all, field.Invalid(field.NewPath(path[0], path[1:]...), value, "must be within "+says))
		}
	}
	within(c.Discounts.OneYear, 0, 1, "0 and 1", "discounts", "1y")
	within(c.Discounts.ThreeYears, 0, 1, "0 and 1", "discounts", "3y")
	within(c.Writes.QPS, 1, 10_000, "1 and 10000", "writes", "qps")
	within(float64(c.Writes.Burst), 1, 100_000, "1 and 100000", "writes", "burst")
	if c.Recording.KeepBytes.Sign() < 0 {
		all = append(all, field.Invalid(field.NewPath("recording", "keepBytes"), c.Recording.KeepBytes.String(),
			"must not be negative"))
	}
	return all
}

// validateUnused returns the fields that have no effect because another field is not set.
func (c *SpotterConfiguration) validateUnused() field.ErrorList {
	var all field.ErrorList
	d := Default()
	if at, p := field.NewPath("usage", "prometheus"), c.Usage.Prometheus; p.URL == "" && p != d.Usage.Prometheus {
		all = append(all,
			field.Required(at.Child("url"), "Prometheus is not asked without it, and the other fields mean nothing"))
	}
	if n := c.Notifications; n.URL == "" && n != d.Notifications {
		all = append(all, field.Required(field.NewPath("notifications", "url"),
			"nothing is sent without it, and the other fields mean nothing"))
	}
	if c.Metrics.CertDir != "" && !c.Metrics.Secure {
		all = append(all, field.Invalid(field.NewPath("metrics", "certDir"), c.Metrics.CertDir,
			"metrics are not served over TLS where metrics.secure is false"))
	}
	r, at := c.Recording, field.NewPath("recording")
	if r.Dir == "" && asJSON(r) != asJSON(d.Recording) {
		all = append(all,
			field.Required(at.Child("dir"), "nothing is recorded without it, and the other fields mean nothing"))
	}
	if r.Bucket.URL == "" && r.Bucket != d.Recording.Bucket {
		all = append(all,
			field.Required(at.Child("bucket", "url"), "nothing is uploaded without it, and the other fields mean nothing"))
	}
	return all
}
