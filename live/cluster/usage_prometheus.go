package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A PrometheusConfig configures the queries for the usage of nodes. Start from
// [DefaultPrometheusConfig].
type PrometheusConfig struct {
	// URL is the address of the HTTP API, without /api/v1.
	URL string

	// Transport sends requests, with the necessary credentials.
	Transport http.RoundTripper

	// CPU and Memory are queries that return one sample for each node: the cores and bytes in use.
	// The name of the node is the value of the label node, or else of instance, or else of the only
	// label.
	CPU, Memory string

	// Timeout is the maximum duration of one read, which consists of both queries.
	Timeout time.Duration

	// Clock provides the time with which the times of samples are compared.
	Clock clock.PassiveClock
}

// DefaultPrometheusConfig returns queries for the measurements of the kubelets' cAdvisor for whole
// nodes, which metrics-server shows as well. The name of a node is in the label node if the
// Prometheus operator configures the scrapes, and in instance if Prometheus discovers nodes itself.
func DefaultPrometheusConfig() PrometheusConfig {
	return PrometheusConfig{
		CPU:     `sum by (node, instance) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))`,
		Memory:  `sum by (node, instance) (container_memory_working_set_bytes{id="/"})`,
		Timeout: 10 * time.Second, Transport: http.DefaultTransport, Clock: clock.RealClock{},
	}
}

// A PrometheusFieldError describes an invalid field of a [PrometheusConfig].
type PrometheusFieldError struct{ Field, Problem string }

func (e *PrometheusFieldError) Error() string { return e.Field + ": " + e.Problem }

// Validate returns a [PrometheusFieldError] for the first invalid field.
func (c *PrometheusConfig) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return &PrometheusFieldError{"URL",
			fmt.Sprintf("%q does not have the form http://host:port or https://host:port", c.URL)}
	case u.User != nil:
		return &PrometheusFieldError{"URL", u.Redacted() + " holds a user or a password, which logs would show"}
	case u.RawQuery != "" || u.Fragment != "":
		return &PrometheusFieldError{"URL", fmt.Sprintf("%q is the address of a page, not of the API", c.URL)}
	case strings.TrimSpace(c.CPU) == "":
		return &PrometheusFieldError{"CPU", "the query is empty"}
	case strings.TrimSpace(c.Memory) == "":
		return &PrometheusFieldError{"Memory", "the query is empty"}
	case c.Timeout <= 0:
		return &PrometheusFieldError{"Timeout", fmt.Sprintf("%v is not positive", c.Timeout)}
	}
	return nil
}

// Limits of a response of Prometheus. answerMax is its size in bytes, enough for a hundred thousand
// nodes. detailMax is the number of bytes of an error page that are reported. skewMax is the
// maximum difference between clocks.
const (
	answerMax = 32 << 20
	detailMax = 200
	skewMax   = 5 * time.Minute
)

// A prometheus is a [UsageSource] that queries the HTTP API of Prometheus or of a compatible
// server.
type prometheus struct {
	cfg PrometheusConfig
	api prometheusv1.API
}

// NewPrometheus returns a source. It does not send any requests.
func NewPrometheus(c PrometheusConfig) (UsageSource, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	// Redirects are not followed: the credentials are for this server only.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client, err := api.NewClient(api.Config{Address: c.URL, Client: &http.Client{Transport: strict{c.Transport},
		CheckRedirect: stay}})
	if err != nil {
		return nil, err
	}
	return &prometheus{c, prometheusv1.NewAPI(client)}, nil
}

// A statusError is an HTTP response that concerns access, not the query.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("it answered %d %s", e.code, http.StatusText(e.code))
}

// strict turns responses that concern access into errors, and limits the size of responses.
type strict struct{ http.RoundTripper }

func (s strict) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch a.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return nil, errors.Join(&statusError{a.StatusCode}, a.Body.Close())
	}
	a.Body = http.MaxBytesReader(nil, a.Body, answerMax)
	return a, nil
}

// Read implements [UsageSource].
func (p *prometheus) Read(ctx context.Context) (Usage, error) {
	ctx, stop := context.WithTimeout(ctx, p.cfg.Timeout)
	defer stop()
	u := Usage{Nodes: map[string]policy.Resources{}}
	cores, err := p.ask(ctx, "CPU", p.cfg.CPU, &u)
	if err != nil {
		return u, err
	}
	bytes, err := p.ask(ctx, "memory", p.cfg.Memory, &u)
	if err != nil {
		return u, err
	}
	for node, c := range cores {
		if b, both := bytes[node]; both {
			u.Nodes[node] = policy.Resources{CPU: int64(c * 1000), Memory: int64(b)}
		}
	}
	if alone := len(cores) + len(bytes) - 2*len(u.Nodes); alone > 0 {
		u.Odd = append(u.Odd, fmt.Sprintf("only CPU or only memory is known of %s", figures.Count(alone, "node")))
	}
	if len(u.Nodes) == 0 {
		return u, &UsageError{"NoMetrics", joined("Prometheus has no value for any node", u.Odd)}
	}
	return u, nil
}

// valuesMax contains the maximum plausible usage of a node, in cores and bytes.
var valuesMax = map[string]float64{"CPU": 1 << 20, "memory": 1 << 50}

// ask returns the result of a query by node. It lowers u.At to the time of the oldest sample, and
// adds ignored samples to u.Odd.
func (p *prometheus) ask(ctx context.Context, what, query string, u *Usage) (map[string]float64, error) {
	answer, warnings, _, err := p.api.Query(ctx, query, time.Time{})
	if err != nil {
		return nil, refused(what, err)
	}
	for _, w := range warnings {
		u.Odd = append(u.Odd, "Prometheus warns about the query for "+what+": "+w)
	}
	samples, is := answer.(model.Vector)
	if !is {
		return nil,
			&UsageError{"BadAnswer",
				fmt.Sprintf("Prometheus answered the query for %s with a %v; it must have one sample per node", what,
					answer.Type())}
	}
	values, twice := map[string]float64{}, map[string]bool{}
	for _, s := range samples {
		node, odd := p.node(s, valuesMax[what])
		if odd != "" {
			u.Odd = append(u.Odd, what+": "+odd)
			continue
		}
		if _, there := values[node]; there && !twice[node] {
			twice[node] = true
			u.Odd = append(u.Odd, fmt.Sprintf("%s: node %q has two values", what, node))
		}
		values[node] = float64(s.Value)
		if at := policy.TimeOf(s.Timestamp.Time()); u.At == 0 || at < u.At {
			u.At = at
		}
	}
	for node := range twice {
		delete(values, node)
	}
	return values, nil
}

// node returns the name of the node of a sample, or a description of the problem with the sample.
func (p *prometheus) node(s *model.Sample, most float64) (name, odd string) {
	for _, label := range []model.LabelName{"node", "instance"} {
		if name = string(s.Metric[label]); name != "" {
			break
		}
	}
	if name == "" && len(s.Metric) == 1 {
		for _, only := range s.Metric {
			name = string(only)
		}
	}
	switch skew := s.Timestamp.Time().Sub(p.cfg.Clock.Now()); {
	case name == "":
		return "", fmt.Sprintf("a sample with the labels %v names no node; have the query keep the label node", s.Metric)
	case !(s.Value >= 0 && float64(s.Value) <= most):
		return "", fmt.Sprintf("%g is not a valid usage of node %q", float64(s.Value), name)
	case skew > skewMax || skew < -skewMax:
		return "", fmt.Sprintf("the sample of node %q is from %v, which is not current", name,
			policy.TimeOf(s.Timestamp.Time()))
	}
	return name, ""
}

// refused returns a [UsageError] that explains why a query failed.
func refused(what string, err error) error {
	var status *statusError
	var timeout net.Error
	var long *http.MaxBytesError
	var said *prometheusv1.Error
	reason := "Unreachable"
	switch {
	case errors.As(err, &status):
		reason = map[int]string{http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden",
			http.StatusTooManyRequests: "Throttled"}[status.code]
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		reason = "Timeout"
	case errors.As(err, &long), errors.Is(err, io.ErrUnexpectedEOF):
		reason = "BadAnswer"
	case errors.As(err, &said):
		reason = "Failed"
		switch said.Type {
		case prometheusv1.ErrBadData:
			reason = "BadQuery"
		case prometheusv1.ErrTimeout, prometheusv1.ErrCanceled:
			reason = "Timeout"
		case prometheusv1.ErrBadResponse:
			reason = "BadAnswer"
		}
	}
	text := fmt.Sprintf("reading the usage of %s from Prometheus: %v", what, err)
	if said != nil && said.Detail != "" {
		text += ": " + strings.Join(strings.Fields(said.Detail[:min(len(said.Detail), detailMax)]), " ")
	}
	return &UsageError{reason, strings.ToValidUTF8(text, "?")}
}
