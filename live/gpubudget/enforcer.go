package gpubudget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy/gpubudget"
)

// GateLabel is the label, and GateEnabled the value, of namespaces in which a closed
// gate keeps pods out. Users set it.
const (
	GateLabel   = "spotter.dev/budget-gate"
	GateEnabled = "enabled"
)

// fieldOwner is under which name fields are written.
const fieldOwner = client.FieldOwner("spotter")

// A Config says how budgets are kept. Start from [DefaultConfig].
type Config struct {
	// Namespace is where the ledgers are, that of the controller.
	Namespace string

	// Enforcing reports whether budgets may be enforced now. Nil is never: nothing
	// is written but ledgers and status.
	Enforcing func() bool

	// Idle reports whether another release acts in the cluster, which writes the statuses
	// of budgets then: two would open and close each gate in turn. Nil is never.
	Idle func() bool

	// Policy is the configuration of the decisions, for when a gate will open.
	Policy gpubudget.Config

	// SaveEvery is how long a ledger is kept back of which only the use has
	// changed. Raising it writes less and, when the controller is killed, loses
	// more of what pods used that ended meanwhile.
	SaveEvery time.Duration

	// StatusEvery is the least time between two writes of a status that report
	// nothing but figures. Raising it writes less and lets the figures be older.
	StatusEvery time.Duration

	Clock  clock.PassiveClock
	Log    *slog.Logger
	Events events.EventRecorder // may be nil
}

// DefaultConfig returns the configuration of a controller in a namespace, which
// enforces nothing.
func DefaultConfig(namespace string) Config {
	return Config{
		Namespace: namespace, Policy: gpubudget.DefaultConfig(), SaveEvery: time.Minute, StatusEvery: time.Minute,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

func (c *Config) validate() error {
	switch {
	case c.Namespace == "":
		return errors.New("gpubudget: namespace is empty")
	case c.SaveEvery < 0:
		return fmt.Errorf("gpubudget: save every %v is negative", c.SaveEvery)
	case c.StatusEvery < 0 || c.StatusEvery > confirmEvery:
		return fmt.Errorf("gpubudget: status every %v is not in [0, %v]", c.StatusEvery, confirmEvery)
	case c.Clock == nil:
		return errors.New("gpubudget: clock is nil")
	case c.Log == nil:
		return errors.New("gpubudget: log is nil")
	}
	return c.Policy.Validate()
}

// An Enforcer keeps the ledgers of the budgets of a cluster, and writes their gates and
// their status.
type Enforcer struct {
	cfg     *Config
	client  client.Client
	reader  client.Reader
	ledgers *ledgerStore
}

// New returns an enforcer. The client reads from a cache, the reader from the API
// server.
func New(cfg Config, c client.Client, reader client.Reader) (*Enforcer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &ledgerStore{cfg: &cfg, api: packed.API{Client: c, Reader: reader, Key: ledgerKey}, writing: semaphore.NewWeighted(1),
		byBudget: map[string]*packed.Object{}}
	return &Enforcer{cfg: &cfg, client: c, reader: reader, ledgers: l}, nil
}

func (k *Enforcer) enforcing() bool { return k.cfg.Enforcing != nil && k.cfg.Enforcing() }

// gated reports whether a closed gate keeps pods of a namespace out.
func (k *Enforcer) gated(ctx context.Context, namespace string) (bool, error) {
	var ns corev1.Namespace
	if err := k.client.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	return ns.Labels[GateLabel] == GateEnabled && namespace != "kube-system", nil
}
