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

// Drains drains nodes for all backends. It checks the authority itself before every change, and
// undoes drains that may not continue.
type Drains interface {
	// Trust sets the key with which the drain annotations on nodes are verified. It must be called
	// before Run.
	Trust(key []byte)

	// Start orders the drain of a node. It may be called again.
	Start(context.Context, *policy.Snapshot, *policy.Drain) error

	// Notice orders the drain of a node under notice, independently of the current step. It may be
	// called again.
	Notice(drain.Noticed)

	// Hurry reports notices, also for nodes that are already being drained.
	Hurry(*policy.Snapshot)

	// Status returns the state of the drains. It includes drains that have been ordered but whose
	// node has no annotation yet.
	Status() []drain.Status

	// Run executes the orders, and undoes drains without an order, until the context ends.
	Run(context.Context) error

	// Shutdown finishes or undoes the drains in progress before the process ends. It returns the
	// drains that were undone and those that were left, with the reasons.
	Shutdown(context.Context) (drain.Settled, error)
}

// A Noticer is an Observer that knows the nodes under notice even when the rest of the cluster
// cannot be observed.
type Noticer interface {
	Notices(context.Context) ([]drain.Noticed, error)
}

// A Ledger stores the memory of GPU budgets, each in its own object.
type Ledger interface {
	Load(context.Context) ([]policy.BudgetMemory, error)
	Save(context.Context, []policy.BudgetMemory) error

	// Flush writes the changes that Save delayed to reduce the number of writes.
	Flush(context.Context) error
}

// An Experience contains the observations in markets, encoded so that they survive a restart.
type Experience interface {
	Export() []byte
	Import([]byte) error
}

// A Judge returns conditions of a CapacityPool that only it can determine. It is called after each
// step.
type Judge interface {
	Conditions(pool string) []metav1.Condition
}

// A Referee returns the pools that must not be changed because they select the same nodes, each
// with the reason as a sentence.
type Referee interface{ Conflicts() map[string]string }

// A Tender does the periodic work of a backend: pending writes, cleanup after a crash, and failed
// launches. It is called after each step of an active controller, and every Config.TendEvery, with
// the last snapshot, in which each pool has its present mode. Steps and launches continue
// meanwhile.
type Tender interface {
	Tend(context.Context, *policy.Snapshot) error
}

// An Awaited is an Observer that must read the whole cluster once before it can observe it. The
// first step waits for Await, so that the duration of the step does not include this read.
type Awaited interface{ Await(context.Context) error }

// A Reporter writes the status of GPUBudgets after each step, in every mode, even if nothing else
// may be changed.
type Reporter interface {
	Report(context.Context, *policy.Snapshot) error
}

// Parts are the components of a controller. Forecaster, Ranker, Enforcer, Ledger, Experience,
// Referee, Recorder, Panics, Wakes, Priced and Urgent may be nil, and Judges, Tenders, Reporters,
// Workers and Backends empty.
type Parts struct {
	Observer   driver.Observer
	Wakes      <-chan string
	Forecaster driver.Forecaster
	Ranker     driver.Ranker
	Enforcer   driver.Enforcer
	Recorder   driver.Recorder
	Drains     Drains
	Backends   map[policy.Provisioner]backend.Backend

	// Priced is closed once every source of prices has been read. The first step waits for it, for
	// at most Config.PricesWait.
	Priced <-chan struct{}

	// Policy creates the policy for pools that name these policy manifests.
	Policy func(manifests []string) (policy.Policy, error)

	Ledger     Ledger
	Experience Experience
	Referee    Referee
	Judges     []Judge
	Tenders    []Tender
	Reporters  []Reporter

	// Workers run while this replica leads. They must return when their context ends.
	Workers []func(context.Context) error

	// Notifier sends notifications to operators; nil sends nothing.
	Notifier *notify.Sender

	// Panics records the snapshots on which a policy panicked.
	Panics driver.Recorder

	// Authority decides, at the time of a change, whether it is permitted.
	Authority *permit.Authority

	// Client reads from the cache and writes. Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder

	// Urgent writes objects that must not wait for other writes: the memory, since nothing is
	// changed until it is saved, even for a node under notice. Nil means Client.
	Urgent client.Client

	Lease   *Lease // nil without leader election
	Clock   clock.WithTicker
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Tracer  trace.Tracer
}
