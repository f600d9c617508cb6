package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
)

// modelRetry is the delay before a bundle that could not be opened is tried again, since its volume
// may be filled in the meantime.
const modelRetry = 5 * time.Minute

// The reasons why a named bundle makes no forecasts.
const (
	ReasonModelUnusable = "BundleUnusable"
	modelTwoBundles     = "TwoBundles"
	modelLate           = "Late"
	modelPanicked       = "Panicked"
	modelFailed         = "Failed"
	modelNoScore        = "NothingScored"
	modelNotAsked       = "NotAsked"
)

// A modelConfig configures a [liveModel].
type modelConfig struct {
	// Policy is the value of --policies: one policy for all pools, or registry.Manifest.
	Policy string

	// Open verifies and opens a bundle: by its path if Policy names it, and by its name if a pool
	// does.
	Open func(dir string) (*bundles.Loaded, error)

	// Make returns the policy for pools that name these policies.
	Make func(named []string) (policy.Policy, error)

	// Late bounds the time of one call of a graph.
	Late time.Duration

	Clock clock.WithTicker
	Log   *slog.Logger
}

// A liveModel writes the forecasts of a running controller: those of the bundle that the policies
// in force name, or those of the closed form if they name none or the bundle fails. There is always
// a forecast, whatever happens to a bundle. Errors are reported as an error, the condition
// [ConditionModel] and metrics.
//
// It must be called by one goroutine at a time. Its conditions and metrics may be read
// concurrently.
type liveModel struct {
	modelConfig
	closed *models.ClosedForm

	// specs are the policies in force at the last forecast, wanted is what they require of a
	// bundle, and clash is the error if no bundle can satisfy that. All three are set when specs
	// change.
	specs  []string
	wanted registry.Bundle
	clash  error

	trained *models.Trained
	opening *opening    // while a bundle is being opened
	broken  error       // why it could not be opened
	opened  policy.Time // time of the last attempt

	mu    sync.Mutex
	state modelState
}

// An opening is a bundle that is being opened in the background, since its volume may hang.
type opening struct {
	dir    string
	ended  chan struct{}
	bundle *bundles.Loaded
	err    error
}

// A modelState is the reported state of a bundle.
type modelState struct {
	dir, fingerprint string
	pools            map[string]string // the folder that each pool names, by the pool's name
	reported         map[string]bool   // pools for which a condition was reported
	reason, why      string            // why it does not forecast; empty while it does
	said             models.Counts     // of the last forecast
	total            models.Counts
	failures         map[string]int // by reason
}

func newLiveModel(c modelConfig) (*liveModel, error) {
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return nil, fmt.Errorf("closed-form forecaster: %w", err)
	}
	return &liveModel{modelConfig: c, closed: closed, state: modelState{reason: modelNotAsked,
		reported: map[string]bool{}, failures: map[string]int{}}}, nil
}

// Forecast writes the forecast of every market and the action values of every pool. An error
// reports why the named bundle was not used or returned nothing; the forecast is then that of the
// closed form.
func (l *liveModel) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	l.choose(s)
	if l.wanted.Dir == "" && l.clash == nil {
		l.note(s, models.Counts{}, nil)
		return l.plain(s, m)
	}
	if l.trained == nil {
		err := cmp.Or(l.clash, l.broken)
		l.note(s, models.Counts{}, err)
		return errors.Join(l.plain(s, m), err)
	}
	before := l.trained.Counts()
	err := l.ask(s, m)
	if errors.Is(err, errModelPanicked) {
		err = errors.Join(err, l.plain(s, m))
	}
	l.note(s, since(l.trained.Counts(), before), err)
	if errors.Is(err, errModelPanicked) {
		l.trained, l.broken, l.opened = nil, err, s.Now // a panic may leave it in any state
	}
	return err
}

// plain writes the forecast of the closed form, and removes action values.
func (l *liveModel) plain(s *policy.Snapshot, m *policy.Memory) error {
	for i := range s.Pools {
		s.Pools[i].Actions = nil
	}
	return l.closed.Forecast(s, m)
}

// ask calls the forecaster of the bundle, and converts a panic to an error.
func (l *liveModel) ask(s *policy.Snapshot, m *policy.Memory) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("%w: %v", errModelPanicked, bug)
			l.Log.Error("the forecaster of a bundle panicked", "bundle", l.wanted.Dir, "panic", bug, "stack",
				string(debug.Stack()))
		}
	}()
	return l.trained.Forecast(s, m)
}

// choose determines the bundle that the policies in force name and opens it.
func (l *liveModel) choose(s *policy.Snapshot) {
	if specs := l.inForce(s); !slices.Equal(specs, l.specs) || l.specs == nil {
		was := l.wanted
		l.specs = specs
		l.wanted, l.clash = bundles.Of(specs, l.Make)
		if l.wanted != was || l.clash != nil {
			l.trained, l.broken, l.opened = nil, nil, 0
		}
	}
	if l.wanted.Dir == "" || l.trained != nil || l.opening == nil && l.broken != nil && s.Now.Sub(l.opened) < modelRetry {
		return
	}
	l.opened = s.Now
	if l.trained, l.broken = l.open(); l.broken != nil {
		l.Log.Error("a bundle cannot be used; the closed form is used instead", "error", l.broken)
		return
	}
	l.Log.Info("forecasts are of a bundle", "bundle", l.wanted.Dir, "fingerprint", l.trained.Fingerprint())
}

// inForce returns the distinct policies that decide for pools that are not off, ascending.
func (l *liveModel) inForce(s *policy.Snapshot) []string {
	specs := []string{}
	if l.Policy != registry.Manifest {
		return append(specs, l.Policy)
	}
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff && p.Policy != "" && !slices.Contains(specs, p.Policy) {
			specs = append(specs, p.Policy)
		}
	}
	slices.Sort(specs)
	return specs
}

// open returns the forecaster of the wanted bundle. The first call waits up to Late for a bundle
// that opens slowly; later calls only check whether it has been opened.
func (l *liveModel) open() (*models.Trained, error) {
	o := l.opening
	if o == nil || o.dir != l.wanted.Dir {
		o = l.begin(l.wanted.Dir)
		l.opening = o
		timer := l.Clock.NewTimer(l.Late)
		defer timer.Stop()
		select {
		case <-o.ended:
		case <-timer.C():
		}
	}
	select {
	case <-o.ended:
	default:
		return nil, fmt.Errorf("%w: the bundle %s is being read for more than %v", errModelLate, o.dir, l.Late)
	}
	l.opening = nil
	if o.err != nil {
		return nil, fmt.Errorf("bundle: %w", o.err)
	}
	t, err := models.NewTrained(o.bundle.Bundle, l.closed, l.bounded(o.bundle.ForecasterSession),
		l.bounded(o.bundle.ActionsSession),
		models.TrainedConfig{Unsupported: l.wanted.Letter, Actions: l.wanted.Actions})
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", l.wanted.Dir, err)
	}
	return t, nil
}

// begin starts opening a bundle.
func (l *liveModel) begin(dir string) *opening {
	o := &opening{dir: dir, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer func() {
			if bug := recover(); bug != nil {
				o.err = fmt.Errorf("%s: %w: %v", dir, errModelPanicked, bug)
			}
		}()
		o.bundle, o.err = l.Open(dir)
	}()
	return o
}

// bounded returns a session whose calls are limited in time, or nil if s is nil.
func (l *liveModel) bounded(s models.Session) models.Session {
	if s == nil {
		return nil
	}
	return &boundedSession{Session: s, limit: l.Late, clock: l.Clock}
}

// since returns the counts between two readings.
func since(now, before models.Counts) models.Counts {
	return models.Counts{
		Calls: now.Calls - before.Calls, Scored: now.Scored - before.Scored, OutOfScope: now.OutOfScope - before.OutOfScope,
		Unpriced: now.Unpriced - before.Unpriced, Failed: now.Failed - before.Failed, Valued: now.Valued - before.Valued, Unvalued: now.Unvalued - before.Unvalued,
	}
}

// note records the result of a forecast.
func (l *liveModel) note(s *policy.Snapshot, said models.Counts, err error) {
	pools := map[string]string{}
	for i := range s.Pools {
		spec := l.Policy
		if spec == registry.Manifest {
			spec = s.Pools[i].Policy
		}
		if b, bad := registry.BundleOf(spec); spec != "" && bad == nil && b.Dir != "" {
			pools[s.Pools[i].Name] = b.Dir
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x := &l.state
	x.dir, x.fingerprint, x.pools, x.said, x.total = l.wanted.Dir, "", pools, said, x.total.Plus(said)
	if l.trained != nil {
		x.fingerprint = l.trained.Fingerprint()
	}
	x.reason, x.why = l.reason(said, err)
	if err != nil {
		x.failures[x.reason]++
	}
}

// reason returns why a bundle does not forecast, as a reason of a condition and as text. Both are
// empty if it does.
func (l *liveModel) reason(said models.Counts, err error) (reason, why string) {
	switch {
	case errors.Is(err, errModelLate):
		return modelLate, err.Error()
	case errors.Is(err, errModelPanicked):
		return modelPanicked, strings.ReplaceAll(err.Error(), "\n", "; ")
	case err != nil && l.clash != nil:
		return modelTwoBundles, err.Error()
	case err != nil && l.trained == nil:
		return ReasonModelUnusable, err.Error()
	case err != nil:
		return modelFailed, err.Error()
	case said.Scored == 0:
		return modelNoScore, cmp.Or(said.String(), "no Spot market that a pool may use is known")
	}
	return "", ""
}

// forecast creates the forecaster.
func (w *wiring) forecast(context.Context) error {
	l, err := newLiveModel(modelConfig{
		Policy: w.f.Policies, Open: w.openLive, Make: w.policies.LivePolicy(w.f.Policies), Late: w.f.Models.Timeout.Duration, Clock: w.clock, Log: w.log,
	})
	if err != nil {
		return err
	}
	w.parts.Forecaster = l
	w.parts.Judges = append(w.parts.Judges, l)
	if err := ctrlmetrics.Registry.Register(l); err != nil {
		return fmt.Errorf("metrics of the model: %w", err)
	}
	return nil
}

// openLive opens a bundle: the one of --policies as it was verified at the start, or one that a
// pool names in its current state.
func (w *wiring) openLive(dir string) (*bundles.Loaded, error) {
	if w.f.Policies == registry.Manifest {
		return w.policies.Models.Open(dir)
	}
	return w.policies.Bundle(dir)
}
