// Package limit bounds how fast the controller writes to the API server. A [Limiter] is between
// client-go and the network, so that no user of a client can bypass it, including the event
// recorder and the status writers.
//
// Reads pass. So do requests that change nothing though their verb is a write:
// dry runs and reviews of tokens and of access. Leases pass as well, since a leader
// that waits for its own writes would lose its lease to them, and so do urgent writes:
// what a step waits for, and what is written for nodes under a notice. Both take their
// tokens, so that the ordinary writes make up for them.
package limit

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Config holds the bounds of a [Limiter]. Start from [DefaultConfig].
type Config struct {
	// QPS is how many writes a second are sent in the long run. Raising it
	// moves pods sooner and leaves the API server less for others.
	QPS float64

	// Burst is how many writes may be sent at once after a quiet time, and how many
	// urgent ones the ordinary ones make up for. Raising it lets a step with many writes
	// end sooner, and holds up ordinary writes longer after many urgent ones.
	Burst int

	// Check is asked after the wait and right before a write is sent. Its error becomes
	// that of the request, of which nothing is sent then. By the deadline the write is over,
	// on the server too; a zero one has no limit. Nil sends all.
	Check func(context.Context, *http.Request) (deadline time.Time, err error)
}

// DefaultConfig returns the bounds that the controller runs with. Priority and fairness
// of the API server protects it from more than it can do.
func DefaultConfig() Config { return Config{QPS: 50, Burst: 200} }

// pauseMax is the longest that one answer of the API server stops ordinary writes.
const pauseMax = 30 * time.Second

func validate(qps float64, burst int) error {
	switch {
	case !(qps > 0):
		return fmt.Errorf("limit: QPS %v is not above 0", qps)
	case burst < 1:
		return fmt.Errorf("limit: burst %d is less than 1", burst)
	}
	return nil
}

// A Limiter paces the writes of all configurations that it has wrapped
// together. It may be used by several goroutines.
type Limiter struct {
	check func(context.Context, *http.Request) (time.Time, error)

	// bucket holds the writes that ordinary requests may send. Urgent ones overdraw it.
	bucket *rate.Limiter

	// turn is held by the ordinary write that is next; those behind it come in their order.
	turn chan struct{}

	mu     sync.Mutex
	paused time.Time // until when the API server requested a pause of writes
	counts map[string]*Count
}

// A Count is what was written with one verb of HTTP.
type Count struct {
	// Verb is POST, PUT, PATCH or DELETE; "lease" is any write of a Lease.
	Verb string

	// Writes is how many were sent, Urgent how many of them did not wait, Throttled how
	// many the API server sent back with 429 or 503, and Refused how many
	// [Config.Check] refused.
	Writes, Urgent, Throttled, Refused uint64

	// Waited is how long they were kept back in all.
	Waited time.Duration
}

// New returns a limiter, or an error that names the field that is wrong.
func New(cfg Config) (*Limiter, error) {
	if err := validate(cfg.QPS, cfg.Burst); err != nil {
		return nil, err
	}
	return &Limiter{check: cfg.Check, bucket: rate.NewLimiter(rate.Limit(cfg.QPS), cfg.Burst),
		turn: make(chan struct{}, 1), counts: map[string]*Count{}}, nil
}

// SetLimits changes the bounds for all but the one write that is next.
func (l *Limiter) SetLimits(qps float64, burst int) error {
	if err := validate(qps, burst); err != nil {
		return err
	}
	l.bucket.SetLimit(rate.Limit(qps))
	l.bucket.SetBurst(burst)
	return nil
}

// Counts returns what was written so far, ascending by verb.
func (l *Limiter) Counts() []Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Count, 0, len(l.counts))
	for _, c := range l.counts {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Compare(a.Verb, b.Verb) })
	return all
}

// wait returns when an ordinary write may be sent, or with an error once ctx ends or
// would end before.
func (l *Limiter) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("limit: waiting to write: %w", ctx.Err())
	case l.turn <- struct{}{}:
	}
	defer func() { <-l.turn }()
	for {
		if err := l.sleep(ctx); err != nil {
			return err
		}
		if err := l.bucket.Wait(ctx); err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // it comes too late, and is said early
			}
			return fmt.Errorf("limit: waiting to write: %w", err)
		}
		if l.pause() <= 0 {
			return nil
		}
	}
}

// pause returns how long ordinary writes still pause.
func (l *Limiter) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.paused)
}

func (l *Limiter) sleep(ctx context.Context) error {
	pause := l.pause()
	if pause <= 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("limit: the API server is overloaded and accepts no writes: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}

// charge takes a token for a write that does not wait for one. The debt ends at a burst:
// what the ordinary writes do after a mass reclaim is not to wait for minutes.
func (l *Limiter) charge() {
	if l.bucket.Tokens() > -float64(l.bucket.Burst()) {
		l.bucket.ReserveN(time.Now(), 1)
	}
}

// count has f count a write with verb.
func (l *Limiter) count(verb string, f func(*Count)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.counts[verb]
	if !ok {
		c = &Count{Verb: verb}
		l.counts[verb] = c
	}
	f(c)
}

// throttled counts a write that was sent back, and stops ordinary writes for pause.
func (l *Limiter) throttled(verb string, pause time.Duration) {
	l.count(verb, func(c *Count) {
		c.Throttled++
		if until := time.Now().Add(min(pause, pauseMax)); until.After(l.paused) {
			l.paused = until
		}
	})
}
