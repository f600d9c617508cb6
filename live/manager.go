package live

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// A Serving configures the addresses on which the process serves. An address of "0" or an empty one
// disables the endpoint.
type Serving struct {
	// Metrics is the address of the metrics. Secure means that they are served over TLS, and only
	// to clients that the API server authenticates and authorises.
	Metrics string
	Secure  bool

	// CertDir is the folder with the files tls.crt and tls.key for the metrics, which are reloaded
	// when they change. If it is empty, the process creates a self-signed certificate.
	CertDir string

	// Probes is the address of /healthz and /readyz, and Pprof the address of the profiler.
	Probes, Pprof string
}

// NewManager returns the manager that runs the controller and its watches, and the Lease of the
// controller, nil without leader election. The watches run on every replica, so that the next
// leader need not wait for them.
func NewManager(cfg *Config, serving Serving, r *rest.Config, scheme *runtime.Scheme, caches cache.Options,
	log *slog.Logger) (manager.Manager, *Lease, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("live: %w", err)
	}
	grace := cfg.Shutdown + 2*time.Second
	o := manager.Options{
		Scheme: scheme, Cache: caches, Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: metricsserver.Options{BindAddress: serving.Metrics, SecureServing: serving.Secure,
			CertDir: serving.CertDir},
		HealthProbeBindAddress: serving.Probes, PprofBindAddress: serving.Pprof,
		GracefulShutdownTimeout: &grace,
	}
	if serving.Secure {
		o.Metrics.FilterProvider = guardMetrics
	}
	var lease *Lease
	if cfg.LeaderElect {
		var err error
		if lease, err = NewLease(cfg, r, clock.RealClock{}); err != nil {
			return nil, nil, err
		}
		o.LeaderElection, o.LeaderElectionResourceLockInterface, o.LeaderElectionReleaseOnCancel = true, lease.lock, true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &cfg.LeaseDuration, &cfg.RenewDeadline, &cfg.RetryPeriod
	}
	m, err := manager.New(r, o)
	if err != nil {
		return nil, nil, fmt.Errorf("starting the manager: %w", err)
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, nil, err
	}
	synced := func(q *http.Request) error {
		if !m.GetCache().WaitForCacheSync(q.Context()) {
			return fmt.Errorf("the watches have not caught up")
		}
		return nil
	}
	if err := m.AddReadyzCheck("watches", synced); err != nil {
		return nil, nil, err
	}
	return m, lease, nil
}
