package run

import (
	"context"
	"errors"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/cluster"
)

// usageEvery is the interval at which the usage of nodes is read: the default interval of
// metrics-server.
const usageEvery = time.Minute

// prometheusField maps a setting of a Prometheus source to its field in the configuration file.
var prometheusField = map[string]string{
	"URL": "usage.prometheus.url", "CPU": "usage.prometheus.cpuQuery", "Memory": "usage.prometheus.memoryQuery", "Timeout": "usage.prometheus.timeout",
}

// checkUsage validates the settings of the usage source and creates the source.
func (f *liveCall) checkUsage() error {
	p := &f.Usage.Prometheus
	if p.URL == "" {
		return nil
	}
	if p.TokenFile != "" {
		if _, err := os.ReadFile(p.TokenFile); err != nil {
			return cli.Invalid(f.fault("usage.prometheus.tokenFile", err), "give a file with a bearer token")
		}
	}
	// the Kubernetes client reads the token again when it is rotated
	transport, err := rest.TransportFor(&rest.Config{BearerTokenFile: p.TokenFile,
		TLSClientConfig: rest.TLSClientConfig{CAFile: p.CAFile}, UserAgent: "spotter/" + f.version})
	if err != nil {
		return cli.Invalid(f.fault("usage.prometheus.caFile", err), "give a file of certificates in PEM")
	}
	c := cluster.DefaultPrometheusConfig()
	c.URL, c.CPU, c.Memory, c.Timeout, c.Transport = p.URL, p.CPUQuery, p.MemoryQuery, p.Timeout.Duration, transport
	source, err := cluster.NewPrometheus(c)
	if err != nil {
		var setting *cluster.PrometheusFieldError
		if errors.As(err, &setting) {
			err = f.fault(prometheusField[setting.Field], errors.New(setting.Problem))
		}
		return cli.Invalid(err, fieldAdvice)
	}
	f.usage = source
	return nil
}

// readUsage reads the usage of nodes. It runs on every replica.
func (w *wiring) readUsage(ctx context.Context) error {
	from := w.f.usage
	if from == nil {
		from = cluster.NewMetricsServer(w.manager.GetAPIReader())
	}
	return w.observer.FollowUsage(ctx, from, w.clock, usageEvery)
}
