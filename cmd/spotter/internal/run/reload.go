package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/live"
)

// The file is read reloadQuiet after its folder changed, so that a file that is written in parts is
// complete, and every reloadEvery without a notification.
const (
	reloadQuiet = 200 * time.Millisecond
	reloadEvery = time.Minute
)

// A reloader applies changes of the file of --config while the program runs.
type reloader struct {
	read  func() (*config.SpotterConfiguration, error)
	apply func(*config.SpotterConfiguration)
	log   *slog.Logger

	// force is the configuration in force. said is the last error, and left are the fields that
	// require a restart, both as last logged.
	force config.SpotterConfiguration
	said  string
	left  []string

	good, restart prometheus.Gauge
}

// newReloader returns a reloader for the configuration in force.
func newReloader(force *config.SpotterConfiguration, read func() (*config.SpotterConfiguration, error),
	apply func(*config.SpotterConfiguration), log *slog.Logger) *reloader {
	r := &reloader{
		read: read, apply: apply, log: log, force: *force,
		good: prometheus.NewGauge(prometheus.GaugeOpts{Name: "spotter_config_last_reload_successful",
			Help: "0 while the file of --config cannot be used, and what it said before holds."}),
		restart: prometheus.NewGauge(prometheus.GaugeOpts{Name: "spotter_config_restart_required",
			Help: "How many fields of the file of --config wait for a restart."}),
	}
	r.good.Set(1)
	return r
}

// register registers the metrics of the file.
func (r *reloader) register(to prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{r.good, r.restart} {
		if err := to.Register(c); err != nil {
			return fmt.Errorf("metrics of the configuration: %w", err)
		}
	}
	return nil
}

// look reads the file and applies the fields that can change at run time. An error changes nothing.
func (r *reloader) look() {
	next, err := r.read()
	if err != nil {
		r.good.Set(0)
		if r.said != err.Error() {
			r.log.Error("the configuration cannot be used: what it said before holds", "error", err)
		}
		r.said = err.Error()
		return
	}
	r.good.Set(1)
	r.said = ""
	taken, left := r.force.Reload(next)
	r.restart.Set(float64(len(left)))
	if len(taken) > 0 {
		r.log.Info("the configuration has changed", "fields", taken) // logged first, since the change may disable this log level
		r.apply(&r.force)
	}
	if len(left) > 0 && !slices.Equal(left, r.left) {
		r.log.Warn("the configuration has changed in what takes a restart", "fields", left)
	}
	r.left = left
}

// follow reads the file whenever its folder changes, until ctx ends. It watches the folder, since a
// ConfigMap is changed by replacing a symbolic link in the path of the file.
func (r *reloader) follow(ctx context.Context, path string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the configuration: %w", err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watching the configuration: %w", err)
	}
	due := time.NewTimer(0) // for changes before the watch started
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.Events:
			due.Reset(reloadQuiet)
		case err := <-w.Errors:
			r.log.Warn("watching the configuration", "error", err)
			due.Reset(reloadQuiet)
		case <-due.C:
			r.look()
			due.Reset(reloadEvery)
		}
	}
}

// reload makes every replica follow the file of --config, if there is one.
func (w *wiring) reload(context.Context) error {
	if w.f.file == "" {
		return nil
	}
	apply := func(c *config.SpotterConfiguration) {
		w.f.setLevel(c)
		w.controller.Set(settings(c))
		if err := w.limiter.SetLimits(c.Writes.QPS, c.Writes.Burst); err != nil { // the limits have been validated
			w.log.Error("setting the limits of writes", "error", err)
		}
	}
	r := newReloader(&w.f.SpotterConfiguration, w.f.read, apply, w.log)
	return errors.Join(r.register(ctrlmetrics.Registry),
		w.everywhere(func(ctx context.Context) error { return r.follow(ctx, w.f.file) }))
}

// settings returns the settings of the controller that can change while it runs.
func settings(c *config.SpotterConfiguration) live.Settings {
	return live.Settings{StepMax: c.StepInterval.Duration, Discount1y: c.Discounts.OneYear,
		Discount3y: c.Discounts.ThreeYears}
}
