// Package limit limits the rate at which the controller writes to the API server. A [Limiter] is
// between client-go and the network, so that no user of a client can bypass it, including the event
// recorder and the status writers.
//
// Reads are not limited. Neither are requests that change nothing although their verb is a write:
// dry runs, token reviews and access reviews. Two kinds of writes do not wait: writes of Leases,
// since a leader that waited for its own writes would lose its Lease, and urgent writes, which are
// the writes that a step waits for and the writes for nodes under a notice. Both take tokens, so
// that ordinary writes are delayed instead.
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

// A Config configures a [Limiter]. Start from [DefaultConfig].
type Config struct {
	// QPS is the number of writes per second in the long run. If it is raised, pods move sooner,
	// and less of the API server's capacity is left for other clients.
	QPS float64

	// Burst is the number of writes that may be sent at once after a quiet time, and the maximum
	// number of urgent writes for which ordinary ones are delayed. If it is raised, a step with
	// many writes ends sooner, and ordinary writes wait longer after many urgent ones.
	Burst int

	// Check is called after the wait, right before a write is sent. If it returns an error, the
	// request fails with that error and is not sent. The write must end by the deadline, also on
	// the server; a zero deadline is no limit. A nil Check allows all writes.
	Check func(context.Context, *http.Request) (deadline time.Time, err error)
}

// DefaultConfig returns the default limits. API Priority and Fairness protects the API server from
// overload.
func DefaultConfig() Config { return Config{QPS: 50, Burst: 200} }

// pauseMax is the maximum time for which one response of the API server stops ordinary writes.
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

// A Limiter limits the total rate of the writes of all configurations that it has wrapped. It is
// safe for concurrent use.
type Limiter struct {
	check func(context.Context, *http.Request) (time.Time, error)

	// bucket contains the tokens for ordinary writes. Urgent writes may overdraw it.
	bucket *rate.Limiter

	// turn is held by the next ordinary write; the others wait in order of arrival.
	turn chan struct{}

	mu     sync.Mutex
	paused time.Time // until when ordinary writes pause at the request of the API server
	counts map[string]*Count
}

// A Count contains the counters of one HTTP verb.
type Count struct {
	// Verb is POST, PUT, PATCH or DELETE, or "lease" for all writes of Leases.
	Verb string

	// Writes is the number of writes that were sent, Urgent the number of these that were urgent
	// and did not wait, Throttled the number that the API server rejected with status 429 or 503,
	// and Refused the number that [Config.Check] refused.
	Writes, Urgent, Throttled, Refused uint64

	// Waited is the total time for which the writes were delayed.
	Waited time.Duration
}

// New returns a limiter, or an error that names the invalid field.
func New(cfg Config) (*Limiter, error) {
	if err := validate(cfg.QPS, cfg.Burst); err != nil {
		return nil, err
	}
	return &Limiter{check: cfg.Check, bucket: rate.NewLimiter(rate.Limit(cfg.QPS), cfg.Burst),
		turn: make(chan struct{}, 1), counts: map[string]*Count{}}, nil
}

// SetLimits changes the limits. They do not apply to the write that is next.
func (l *Limiter) SetLimits(qps float64, burst int) error {
	if err := validate(qps, burst); err != nil {
		return err
	}
	l.bucket.SetLimit(rate.Limit(qps))
	l.bucket.SetBurst(burst)
	return nil
}

// Counts returns the counters, sorted by verb.
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

// wait blocks until an ordinary write may be sent. It returns an error when ctx ends or if the wait
// would exceed the deadline of ctx.
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
				err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // the wait would exceed the deadline; fail at once
			}
			return fmt.Errorf("limit: waiting to write: %w", err)
		}
		if l.pause() <= 0 {
			return nil
		}
	}
}

// pause returns the remaining time of the pause of ordinary writes. It is not positive if there is
// no pause.
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

// charge takes a token for a write that does not wait. The debt is limited to one burst, so that
// ordinary writes do not wait for minutes after a mass reclaim.
func (l *Limiter) charge() {
	if l.bucket.Tokens() > -float64(l.bucket.Burst()) {
		l.bucket.ReserveN(time.Now(), 1)
	}
}

// count calls f with the counters of verb.
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

// throttled counts a write that the API server rejected, and stops ordinary writes for pause, at
// most pauseMax.
func (l *Limiter) throttled(verb string, pause time.Duration) {
	l.count(verb, func(c *Count) {
		c.Throttled++
		if until := time.Now().Add(min(pause, pauseMax)); until.After(l.paused) {
			l.paused = until
		}
	})
}
