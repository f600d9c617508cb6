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

// GateLabel and GateEnabled are the key and the value of the label of namespaces in which a closed
// gate rejects pods. Users set the label.
const (
	GateLabel   = "spotter.dev/budget-gate"
	GateEnabled = "enabled"
)

// fieldOwner is the field manager of Spotter's writes.
const fieldOwner = client.FieldOwner("spotter")

// A Config configures an [Enforcer]. Start from [DefaultConfig].
type Config struct {
	// Namespace is the namespace of the controller, in which the ledgers are stored.
	Namespace string

	// Enforcing reports whether budgets may be enforced now. Nil means never: only ledgers and
	// statuses are written.
	Enforcing func() bool

	// Idle reports whether another release acts in the cluster, which then writes the statuses of
	// budgets: two releases would alternately open and close each gate. Nil means never.
	Idle func() bool

	// Policy is the configuration of the decisions. It is used to predict when a gate will open.
	Policy gpubudget.Config

	// SaveEvery is the minimum time between two writes of a ledger in which only the usage has
	// changed. A higher value writes less. If the controller is killed, it loses more of the usage
	// of pods that have ended since.
	SaveEvery time.Duration

	// StatusEvery is the minimum time between two writes of a status that change only figures. A
	// higher value writes less and lets the figures be older.
	StatusEvery time.Duration

	Clock  clock.PassiveClock
	Log    *slog.Logger
	Events events.EventRecorder // may be nil
}

// DefaultConfig returns the configuration of a controller in a namespace. It does not enforce
// budgets.
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

// An Enforcer maintains the ledgers of the budgets of a cluster, and writes their gates and
// statuses.
type Enforcer struct {
	cfg     *Config
	client  client.Client
	reader  client.Reader
	ledgers *ledgerStore
}

// New returns an enforcer. c reads from a cache and writes; reader reads from the API server.
func New(cfg Config, c client.Client, reader client.Reader) (*Enforcer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &ledgerStore{cfg: &cfg, api: packed.API{Client: c, Reader: reader, Key: ledgerKey}, writing: semaphore.NewWeighted(1),
		byBudget: map[string]*packed.Object{}}
	return &Enforcer{cfg: &cfg, client: c, reader: reader, ledgers: l}, nil
}

func (k *Enforcer) enforcing() bool { return k.cfg.Enforcing != nil && k.cfg.Enforcing() }

// gated reports whether a closed gate rejects the pods of a namespace.
func (k *Enforcer) gated(ctx context.Context, namespace string) (bool, error) {
	var ns corev1.Namespace
	if err := k.client.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	return ns.Labels[GateLabel] == GateEnabled && namespace != "kube-system", nil
}
