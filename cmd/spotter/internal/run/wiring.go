package run

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/asg"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/gpubudget"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/live/limit"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/live/notify"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/live/steady"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A wiring creates and connects the parts of a running controller. Parts are created in the order
// of their dependencies.
type wiring struct {
	f        *liveCall
	log      *slog.Logger
	rest     *rest.Config
	policies *runner.Runner

	clock      clock.WithTicker // shared by all parts, and not affected by changes of the system clock
	manager    manager.Manager
	lease      *live.Lease
	authority  *permit.Authority
	limiter    *limit.Limiter
	metrics    *metrics.Metrics
	book       *livemarket.Book
	observer   *cluster.Observer
	rackspace  *rackspace.Feed
	groups     *asg.Regions
	drains     *drain.Reconciler
	controller *live.Controller
	parts      live.Parts

	closers []func() error
}

func (w *wiring) close() {
	for _, end := range slices.Backward(w.closers) {
		if err := end(); err != nil {
			w.log.Error("closing", "error", err)
		}
	}
}

// connect creates all parts and adds them to the manager.
func (w *wiring) connect(ctx context.Context) error {
	CollectSooner()
	ctrl.SetLogger(logr.FromSlogHandler(w.log.Handler()))
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), metricsv1beta1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme), karpenter.AddToScheme(scheme)); err != nil {
		return err
	}
	time := steady.New(w.log)
	w.clock, w.rest = time, time.Wrap(w.rest)
	err := time.Sync(ctx, w.rest)
	if unreachable := new(cli.UnreachableError); errors.As(err, &unreachable) {
		return err
	}
	if err != nil {
		w.log.Warn("the API server's time is not known yet, and this machine's is used", "error", err)
	}
	if w.limiter, err = limit.New(limit.Config{QPS: w.f.Writes.QPS, Burst: w.f.Writes.Burst,
		Check: w.permits}); err != nil {
		return err
	}
	if w.metrics, err = metrics.New(ctrlmetrics.Registry, metrics.Config{
		Compat: w.f.Metrics.Compat, Writes: w.limiter.Counts, Clock: time.State,
	}); err != nil {
		return err
	}
	run, serving := w.f.controller(), live.Serving{Metrics: w.f.Metrics.BindAddress, Secure: w.f.Metrics.Secure,
		CertDir: w.f.Metrics.CertDir, Probes: w.f.Health.BindAddress, Pprof: w.f.Pprof.BindAddress}
	w.manager, w.lease, err = live.NewManager(&run, serving, w.limiter.Wrap(w.rest, false), scheme,
		cluster.CacheOptions(), w.log)
	if err != nil {
		return cli.Invalid(err, "check that the API server is reached, and that the addresses are free")
	}
	w.authorize(run.Mode)
	urgent, err := w.writer(w.limiter.Wrap(w.rest, true))
	if err != nil {
		return err
	}
	w.parts = live.Parts{
		Backends: map[policy.Provisioner]backend.Backend{}, Policy: w.policies.LivePolicy(w.f.Policies),
		Authority: w.authority, Client: w.manager.GetClient(), Reader: w.manager.GetAPIReader(), Events: w.manager.GetEventRecorder("spotter"),
		Urgent: urgent, Lease: w.lease, Clock: w.clock, Log: w.log, Metrics: w.metrics,
	}
	for _, make := range []func(context.Context) error{
		w.observe, w.forecast, w.provision, w.drain, w.gpuBudgets, w.notices, w.records, w.traces, w.notifications, w.decide, w.reload,
	} {
		if err := make(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writer returns a client that reads from the manager's cache and writes with cfg.
func (w *wiring) writer(cfg *rest.Config) (client.Client, error) {
	return client.New(cfg, client.Options{
		Scheme: w.manager.GetScheme(), Mapper: w.manager.GetRESTMapper(), Cache: &client.CacheOptions{Reader: w.manager.GetCache()},
	})
}

// authorize creates the authority that decides whether changes are permitted.
func (w *wiring) authorize(mode policy.Mode) {
	cfg := permit.DefaultConfig()
	cfg.Approve = w.f.Mode == "approve"
	cfg.Mode, cfg.Namespace, cfg.KillSwitch, cfg.Fence = mode, w.f.Namespace, w.f.KillSwitch, w.lease.Fence
	if w.lease != nil {
		cfg.Lease = live.LeaseName
	}
	cfg.Conflicts = func() map[string]string { return w.observer.Conflicts() }
	w.authority = permit.New(cfg, w.manager.GetAPIReader())
}

// permits returns the deadline of a write to the API server, or an error if it must not be sent.
func (w *wiring) permits(ctx context.Context, r *http.Request) (deadline time.Time, err error) {
	return w.authority.Request(ctx, r)
}

// everywhere adds f to the manager, to run on every replica.
func (w *wiring) everywhere(f func(context.Context) error) error {
	return w.manager.Add(watching(f))
}

type watching func(context.Context) error

func (f watching) Start(ctx context.Context) error { return f(ctx) }
func (watching) NeedLeaderElection() bool          { return false }

// drain creates the drain reconciler and the ranker of pods.
func (w *wiring) drain(ctx context.Context) error {
	cfg := drain.DefaultConfig()
	cfg.Log, cfg.Authority, cfg.Urgent, cfg.Clock = w.log, w.authority, w.parts.Urgent, w.clock
	cfg.Events, cfg.Meter = w.parts.Events, drainMeter{w}
	var err error
	if w.drains, err = drain.New(cfg, w.manager.GetClient(), w.manager.GetAPIReader(), releasers{w}); err != nil {
		return err
	}
	ranker := drain.NewRanker(w.manager.GetClient())
	w.parts.Drains, w.parts.Ranker = w.drains, ranker
	w.parts.Workers = append(w.parts.Workers, func(ctx context.Context) error {
		return ranker.Run(ctx, func(err error) { w.log.Warn("ranking pods", "error", err) })
	})
	return drain.SetupIndexes(ctx, w.manager.GetFieldIndexer())
}

// gpuBudgets creates the enforcer of GPUBudgets.
func (w *wiring) gpuBudgets(context.Context) error {
	cfg := gpubudget.DefaultConfig(w.f.Namespace)
	cfg.Log, cfg.Events, cfg.Clock = w.log, w.parts.Events, w.clock
	cfg.Enforcing = func() bool {
		v, err := w.authority.Cluster(context.Background())
		return err == nil && v == permit.Active
	}
	cfg.Idle = func() bool {
		rival, _, err := w.authority.Claims(context.Background())
		return err != nil || rival != ""
	}
	enforcer, err := gpubudget.New(cfg, w.manager.GetClient(), w.manager.GetAPIReader())
	if err != nil {
		return err
	}
	w.parts.Ledger, w.parts.Enforcer = enforcer, enforcer
	w.parts.Reporters = append(w.parts.Reporters, enforcer)
	return nil
}

// notifications creates the notifier, which sends events to a webhook while this replica leads.
func (w *wiring) notifications(context.Context) error {
	n := &w.f.Notifications
	if n.URL == "" {
		return nil
	}
	cfg := notify.DefaultConfig()
	cfg.URL, cfg.Header, cfg.HeaderFile, cfg.Source = n.URL, n.Header, n.HeaderFile, cmp.Or(n.Source,
		"/spotter/"+w.f.Namespace)
	cfg.Log, cfg.Counted = w.log, w.metrics.Notified
	w.parts.Notifier = notify.New(cfg)
	w.parts.Workers = append(w.parts.Workers, w.parts.Notifier.Run)
	return nil
}

// decide creates the controller, which the manager starts once it leads.
func (w *wiring) decide(context.Context) error {
	c, err := live.New(w.f.controller(), w.parts)
	if err != nil {
		return cli.Invalid(err, input.PolicyAdvice)
	}
	w.controller = c
	if err := w.manager.AddHealthzCheck("controller", c.Healthy); err != nil {
		return err
	}
	return w.manager.Add(c)
}
