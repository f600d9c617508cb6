package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/cluster"
)

// usageEvery is how often it is read what nodes use: as often as metrics-server
// measures it by default.
const usageEvery = time.Minute

// A usageCall is what the flags of run say about who measures what nodes use.
type usageCall struct {
	cluster.PrometheusConfig
	token, ca string
	flags     *pflag.FlagSet

	source cluster.UsageSource // Prometheus; nil without
}

// The flags that mean nothing without --prometheus-url, and which setting of a source
// each flag is.
var (
	prometheusFlags = []string{"prometheus-token-file", "prometheus-ca-file", "prometheus-cpu-query", "prometheus-memory-query", "prometheus-timeout"}
	prometheusFlag  = map[string]string{"URL": "prometheus-url", "CPU": "prometheus-cpu-query", "Memory": "prometheus-memory-query", "Timeout": "prometheus-timeout"}
)

func (u *usageCall) register(flags *pflag.FlagSet) {
	u.flags, u.PrometheusConfig = flags, cluster.DefaultPrometheusConfig()
	flags.StringVar(&u.URL, "prometheus-url", "", "read what nodes use from the Prometheus at `URL`, as http://prometheus.monitoring:9090 (default: from metrics-server)")
	flags.StringVar(&u.token, "prometheus-token-file", "", "show Prometheus the bearer token in `FILE`, which is read again as it changes")
	flags.StringVar(&u.ca, "prometheus-ca-file", "", "trust the certificates in `FILE` for Prometheus (default: those of the system)")
	flags.StringVar(&u.CPU, "prometheus-cpu-query", u.CPU, "ask for the cores in use by `QUERY`, one sample for each node, named by the label node or instance")
	flags.StringVar(&u.Memory, "prometheus-memory-query", u.Memory, "ask for the bytes in use by `QUERY`, likewise")
	flags.DurationVar(&u.Timeout, "prometheus-timeout", u.Timeout, "wait for Prometheus for at most `TIME`")
}

// check finds what is wrong with the flags, and makes the source.
func (u *usageCall) check() error {
	if u.URL == "" {
		for _, name := range prometheusFlags {
			if u.flags.Changed(name) {
				return wrong(fmt.Errorf("--%s: Prometheus is not asked without --prometheus-url", name), "give --prometheus-url, as http://prometheus.monitoring:9090")
			}
		}
		return nil
	}
	if u.token != "" {
		if _, err := os.ReadFile(u.token); err != nil {
			return wrong(fmt.Errorf("--prometheus-token-file: %w", err), "give a file with a bearer token")
		}
	}
	// The client of Kubernetes reads the token anew as it is rotated.
	transport, err := rest.TransportFor(&rest.Config{BearerTokenFile: u.token, TLSClientConfig: rest.TLSClientConfig{CAFile: u.ca}, UserAgent: "spotter/" + version})
	if err != nil {
		return wrong(fmt.Errorf("--prometheus-ca-file: %w", err), "give a file of certificates in PEM")
	}
	u.Transport = transport
	if u.source, err = cluster.NewPrometheus(u.PrometheusConfig); err != nil {
		var field *cluster.PrometheusFieldError
		if errors.As(err, &field) {
			err = fmt.Errorf("--%s: %s", prometheusFlag[field.Field], field.Problem)
		}
		return wrong(err, "run `spotter run --help`")
	}
	return nil
}

// readUsage reads what nodes use, on every replica.
func (w *wiring) readUsage(ctx context.Context) error {
	from := w.f.usage.source
	if from == nil {
		from = cluster.NewMetricsServer(w.manager.GetAPIReader())
	}
	return w.observer.FollowUsage(ctx, from, clock.RealClock{}, usageEvery)
}
