package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// batchMax is the maximum number of messages per request (AWS documentation).
const batchMax = 10

// A Queue reads messages from one queue and reports them to a Sink.
type Queue struct {
	config *Config
	sqs    *sqs.Client
	nodes  client.Reader
	sink   backend.Sink

	// Only the goroutine of Run uses the following fields.
	seen       *lru.Cache // IDs of events that were reported to the sink
	failures   int        // consecutive failed requests
	warned     []warning
	done       []string // receipts of the messages to delete
	byInstance map[string]*corev1.Node

	logged logOnce
	state  stateCell
	rivals rivalFinder
}

// A state is the part of a Queue that other goroutines may read.
type state struct {
	counts Counts
	sent   policy.Time // time of the newest event
	err    error

	// running reports whether Run is running.
	running bool
}

// A stateCell stores the state. Only the goroutine of Run changes it; any goroutine may read it.
type stateCell struct{ at atomic.Pointer[state] }

// get returns the state, which is empty before the first change.
func (s *stateCell) get() state {
	if x := s.at.Load(); x != nil {
		return *x
	}
	return state{}
}

// change applies f to a copy of the state and stores the copy.
func (s *stateCell) change(f func(*state)) {
	x := s.get()
	f(&x)
	s.at.Store(&x)
}

// Counts are the numbers of messages since the start.
type Counts struct {
	// Received is the number of all messages, including redeliveries.
	Received int

	Interruptions, Recommendations, StateChanges, ScheduledChanges int

	// Lifecycle counts lifecycle events of Auto Scaling groups, which Spotter leaves to the groups,
	// Unknown counts events of unknown kinds, and Malformed unreadable messages.
	Lifecycle, Unknown, Malformed int

	// Repeated counts events that were already reported, and Late those whose event had passed.
	Repeated, Late int

	// Deleted counts deleted messages, and Failures failed requests.
	Deleted, Failures int
}

// New returns a queue. If reader is not nil, it is used to search for other consumers of queues.
// nodes is the cache of nodes.
func New(c Config, s *sqs.Client, reader, nodes client.Reader, sink backend.Sink) (*Queue, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	q := &Queue{config: &c, sqs: s, nodes: nodes, sink: sink, seen: lru.New(recentMax),
		logged: logOnce{lru.New(loggedMax)}}
	q.rivals.config, q.rivals.reader = &c, reader
	return q, nil
}

// Counts returns the counts of messages.
func (q *Queue) Counts() Counts { return q.state.get().counts }

// Err returns the reason why notices may be missed, or nil: an error of AWS, or an [ErrRival] if
// another consumer receives some of the messages.
func (q *Queue) Err() error {
	if err := q.state.get().err; err != nil {
		return err
	}
	return q.rivals.shared()
}

// NeedLeaderElection returns true, because consumers of a queue compete for its messages.
func (q *Queue) NeedLeaderElection() bool { return true }

// Start calls [Queue.Run], for a manager.
func (q *Queue) Start(ctx context.Context) error { return q.Run(ctx) }

// Run reads messages until ctx ends, which is not an error. It repeats failed requests at
// increasing intervals. It reads the queue even if another consumer also does.
func (q *Queue) Run(ctx context.Context) error {
	var looking sync.WaitGroup
	defer looking.Wait()
	if q.rivals.reader != nil {
		var fault string
		looking.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { q.rivals.look(ctx, &fault) }, q.config.CheckEvery)
		})
	}
	q.state.change(func(s *state) { s.running = true })
	defer q.state.change(func(s *state) { s.running = false })
	for ctx.Err() == nil {
		err := q.once(ctx)
		if ctx.Err() != nil {
			break
		}
		q.note(err)
		switch {
		case err != nil && len(q.warned) > 0:
			q.sleep(ctx, min(q.backoff(), q.config.ClaimWait))
		case err != nil:
			q.sleep(ctx, q.backoff())
		}
	}
	q.leave(ctx)
	return nil
}

// once deletes the processed messages and receives new ones. It waits no longer than until the next
// warning is due.
func (q *Queue) once(ctx context.Context) error {
	q.byInstance = nil
	q.settle(ctx)
	if err := q.forget(ctx); err != nil {
		return err
	}
	long := q.config.Wait
	if len(q.warned) > 0 {
		due := q.warned[0].due.Sub(q.config.Clock.Now())
		long = min(long, max(time.Second, due.Round(time.Second)))
	}
	short, stop := context.WithTimeout(ctx, long+q.config.Timeout)
	defer stop()
	received, err := q.sqs.ReceiveMessage(short, &sqs.ReceiveMessageInput{
		QueueUrl: &q.config.URL, MaxNumberOfMessages: batchMax,
		WaitTimeSeconds: int32(long.Seconds()), VisibilityTimeout: int32(q.config.Visibility.Seconds()),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return q.failed("receiving messages", err)
	}
	q.count(func(c *Counts) { c.Received += len(received.Messages) })
	q.byInstance = nil
	for i := range received.Messages {
		q.handle(ctx, &received.Messages[i])
	}
	return q.forget(ctx)
}

// leave deletes the processed messages at the end, so that the next leader does not receive them
// again. Messages that it does not delete are redelivered, which does no harm.
func (q *Queue) leave(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveMax)
	defer stop()
	if err := q.forget(ctx); err != nil {
		q.config.Log.Info("messages that were received will be redelivered", "queue", q.config.URL, "error", err)
	}
}

// leaveMax is the maximum duration of leave.
const leaveMax = 2 * time.Second

// failed wraps err and counts it. Rejected credentials are loaded again.
func (q *Queue) failed(doing string, err error) error {
	q.count(func(c *Counts) { c.Failures++ })
	if kind := wire.KindOf(err); kind == wire.KindExpired || kind == wire.KindCredentials {
		if cache, ok := q.sqs.Options().Credentials.(interface{ Invalidate() }); ok {
			cache.Invalidate()
		}
	}
	return fmt.Errorf("%s of %s: %w", doing, q.config.URL, err)
}

// note records the result of the last round and logs changes.
func (q *Queue) note(err error) {
	before := q.state.get().err
	q.state.change(func(s *state) { s.err = err })
	switch err {
	case nil:
		q.failures = 0
		if before != nil {
			q.config.Log.Info("the queue is read again", "queue", q.config.URL)
		}
	default:
		q.failures++
		if before == nil || before.Error() != err.Error() {
			q.config.Log.Warn("the queue is not read", "queue", q.config.URL, "error", err)
		}
	}
}

func (q *Queue) backoff() time.Duration {
	wait := q.config.BackoffMin << min(max(q.failures-1, 0), 20)
	if wait <= 0 || wait > q.config.BackoffMax {
		return q.config.BackoffMax
	}
	return wait
}

func (q *Queue) sleep(ctx context.Context, d time.Duration) {
	t := q.config.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C():
	}
}

func (q *Queue) count(f func(*Counts)) { q.state.change(func(s *state) { f(&s.counts) }) }

// A logOnce remembers which messages were logged, up to loggedMax.
type logOnce struct{ seen *lru.Cache }

// first reports whether a message has not been logged before, and remembers it.
func (l *logOnce) first(what string) bool {
	_, known := l.seen.Get(what)
	l.seen.Add(what, nil)
	return !known
}

// loggedMax is the maximum number of remembered log messages.
const loggedMax = 1000
