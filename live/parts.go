package live

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/live/notify"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// Drains empties nodes, for all backends. It checks the authority itself before it changes
// anything, and undoes what may not continue.
type Drains interface {
	// Trust has the marks believed that a process with the same key left on nodes. It is
	// called before Run.
	Trust(key []byte)

	// Start takes the order to empty a node. It may be called again.
	Start(context.Context, *policy.Snapshot, *policy.Drain) error

	// Notice takes the order to empty a node that the provider takes, whatever is being
	// decided. It may be called again.
	Notice(drain.Noticed)

	// Hurry reports notices, also for nodes that are being emptied already.
	Hurry(*policy.Snapshot)

	// Status returns the state of the drains. Only here is a drain visible that has been ordered
	// but whose node carries no mark yet.
	Status() []drain.Status

	// Run works on the orders, and undoes drains without an order, until the context ends.
	Run(context.Context) error

	// Shutdown finishes or takes back what is half done, since the process ends. It says
	// which drains were taken back and which were left, and why.
	Shutdown(context.Context) (drain.Settled, error)
}

// A Noticer is an Observer that knows which nodes the provider is about to take, also
// while nothing else is known of the cluster.
type Noticer interface {
	Notices(context.Context) ([]drain.Noticed, error)
}

// A Ledger keeps what is remembered of budgets, each in an object of its own.
type Ledger interface {
	Load(context.Context) ([]policy.BudgetMemory, error)
	Save(context.Context, []policy.BudgetMemory) error

	// Flush writes what Save kept back to write less.
	Flush(context.Context) error
}

// An Experience is what was met in the markets, as bytes that survive a restart.
type Experience interface {
	Export() []byte
	Import([]byte) error
}

// A Judge says what holds of a pool that only it can know, as conditions of its
// CapacityPool. It is asked after each step.
type Judge interface {
	Conditions(pool string) []metav1.Condition
}

// A Referee names the pools that must not be touched since they lay claim to the
// same nodes, each with the reason in a sentence.
type Referee interface{ Conflicts() map[string]string }

// A Tender does the periodic work of a backend: writes that had to wait, remains of a crash, and
// failed launches. It is called after each step of an active controller, and every
// Config.TendEvery, with the last snapshot, in which the mode of a pool is the one that it may have
// now. Steps and launches continue meanwhile.
type Tender interface {
	Tend(context.Context, *policy.Snapshot) error
}

// An Awaited is an Observer that has to read the whole cluster once before it can report
// it. It is waited for before the first step, so that what a step takes is its own.
type Awaited interface{ Await(context.Context) error }

// A Reporter writes the status of GPUBudgets after each step, in every mode, and while
// nothing else is done to them.
type Reporter interface {
	Report(context.Context, *policy.Snapshot) error
}

// Parts are what a controller is put together from. Forecaster, Ranker, Enforcer,
// Ledger, Experience, Referee, Recorder, Panics, Wakes, Priced and Urgent may be
// nil, and Judges, Tenders, Reporters, Workers and Backends empty.
type Parts struct {
	Observer   driver.Observer
	Wakes      <-chan string
	Forecaster driver.Forecaster
	Ranker     driver.Ranker
	Enforcer   driver.Enforcer
	Recorder   driver.Recorder
	Drains     Drains
	Backends   map[policy.Provisioner]backend.Backend

	// Priced is closed once every source of prices was asked. The first step waits for
	// it, for at most Config.PricesWait.
	Priced <-chan struct{}

	// Policy makes the policy for pools that name these policies.
	Policy func(manifests []string) (policy.Policy, error)

	Ledger     Ledger
	Experience Experience
	Referee    Referee
	Judges     []Judge
	Tenders    []Tender
	Reporters  []Reporter

	// Workers run while this replica leads, until their context ends.
	Workers []func(context.Context) error

	// Notifier tells operators what happened; nil sends nothing.
	Notifier *notify.Sender

	// Panics keeps the snapshots on which a policy panicked.
	Panics driver.Recorder

	// Authority says whether something may be changed at the moment at which it is.
	Authority *permit.Authority

	// Client reads from the cache and writes, Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder

	// Urgent writes what must not wait for other writes: the memory, since until it is
	// saved nothing is done, for a node under notice neither. Nil means Client.
	Urgent client.Client

	Lease   *Lease // nil without leader election
	Clock   clock.WithTicker
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Tracer  trace.Tracer
}
