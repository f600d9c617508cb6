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

// usageEvery is how often it is read what nodes use: as often as metrics-server
// measures it by default.
const usageEvery = time.Minute

// prometheusField is the field of the file that each setting of a source is.
var prometheusField = map[string]string{
	"URL": "usage.prometheus.url", "CPU": "usage.prometheus.cpuQuery", "Memory": "usage.prometheus.memoryQuery", "Timeout": "usage.prometheus.timeout",
}

// checkUsage finds what is wrong with what says who measures use, and makes the source.
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
	// The client of Kubernetes reads the token again when it is rotated.
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

// readUsage reads what nodes use, on every replica.
func (w *wiring) readUsage(ctx context.Context) error {
	from := w.f.usage
	if from == nil {
		from = cluster.NewMetricsServer(w.manager.GetAPIReader())
	}
	return w.observer.FollowUsage(ctx, from, w.clock, usageEvery)
}
