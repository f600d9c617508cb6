// Package limit bounds how fast the controller writes to the API server. A
// [Limiter] stands between client-go and the network, so that nothing that uses
// a client can get around it: not the event recorder, not a status writer.
//
// Reads pass. So do requests that change nothing though their verb is a write:
// dry runs and reviews of tokens and of access. Leases pass as well, since a leader
// that waits for its own writes would lose its lease to them, but the other writes make
// up for them.
// What a step cannot go on without, such as the memory, goes first, then what is
// written for nodes that the provider is about to take. Parts of the burst are kept for
// the two, so that neither waits because all others have written as much as they may.
package limit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// A Config holds the bounds of a [Limiter]. Start from [DefaultConfig].
type Config struct {
	// Rate is how many writes a second are sent in the long run. Raising it
	// moves pods sooner and leaves the API server less for others.
	Rate float64

	// Burst is how many writes may be sent at once after a quiet time. Raising
	// it lets a step with many writes end sooner.
	Burst int

	// Kept is how many of Burst are kept from ordinary writes, and Reserved how many of
	// these from the urgent ones as well: they are for what goes ahead of all. So what a
	// step waits for need not wait for its turn while nodes are drained, under a notice
	// neither; 0 keeps none. The others make up for it: the rate is that of all together.
	// Raising Kept lets more be written at once that a step waits for or that is urgent,
	// and less of the rest; raising Reserved lets less of it be urgent.
	Kept, Reserved int

	// PauseMax is the longest that an overloaded API server can have us stop
	// writing for by one answer. Raising it obeys it further.
	PauseMax time.Duration

	// Clock tells the time.
	Clock clock.Clock
}

// DefaultConfig returns the bounds that the controller runs with: 5 writes a
// second and 50 at once. Of these 40 are enough for a step that writes the memory of ten
// pools, their NodePools and three launches; drains under a notice may use half of them.
func DefaultConfig() Config {
	return Config{Rate: 5, Burst: 50, Kept: 40, Reserved: 20, PauseMax: 30 * time.Second, Clock: clock.RealClock{}}
}

func (c *Config) validate() error {
	switch {
	case !(c.Rate > 0):
		return fmt.Errorf("limit: rate %v is not above 0", c.Rate)
	case c.Burst < 1:
		return fmt.Errorf("limit: burst %d is less than 1", c.Burst)
	case c.Kept < 0 || c.Kept >= max(1, c.Burst):
		return fmt.Errorf("limit: kept %d is not between 0 and burst %d", c.Kept, c.Burst)
	case c.Reserved < 0 || c.Reserved > c.Kept:
		return fmt.Errorf("limit: reserved %d is not between 0 and kept %d", c.Reserved, c.Kept)
	case c.PauseMax < 0:
		return fmt.Errorf("limit: pause max %v is negative", c.PauseMax)
	case c.Clock == nil:
		return fmt.Errorf("limit: clock is not set")
	}
	return nil
}

// A Limiter paces the writes of all configurations that it has wrapped
// together. It may be used by several goroutines.
type Limiter struct {
	cfg Config

	// bucket holds the writes that any may take. What is kept from some the others may
	// overdraw it by. hastened is for how many callers of Hasten all may.
	mu       sync.Mutex
	bucket   *rate.Limiter
	hastened int

	// waiting is who waits, by rank, first come first. The head of the highest rank is
	// next.
	waiting [ranks][]*waiter

	// paused is until when the API server asked us to write nothing.
	paused time.Time

	counts map[string]*Count
}

// A rank says before what a write goes.
type rank uint8

// The ranks.
const (
	ordinary rank = iota
	urgent        // for nodes that the provider is about to take
	ahead         // what a step cannot go on without
	ranks
)

// A waiter is one write that has not been sent yet. turn holds a value after it
// has become the next, or may wait less long than it was told.
type waiter struct {
	rank rank
	turn chan struct{}
}

// A Count is what was written with one verb of HTTP.
type Count struct {
	// Verb is POST, PUT, PATCH or DELETE; "lease" is any write of a Lease.
	Verb string

	// Writes is how many were sent, Urgent how many of them went before others, and
	// Throttled how many the API server sent back with 429 or 503.
	Writes, Urgent, Throttled uint64

	// Waited is how long they were kept back in all.
	Waited time.Duration
}

// New returns a limiter, or an error that names the field that is wrong.
func New(cfg Config) (*Limiter, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Limiter{cfg: cfg, bucket: rate.NewLimiter(rate.Limit(cfg.Rate), cfg.Burst-cfg.Kept), counts: map[string]*Count{}}, nil
}

// SetLimits replaces how many writes are sent, and how many of them are kept for whom, by
// what cfg says. Writes that wait go by the new bounds.
func (l *Limiter) SetLimits(cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg.Rate, l.cfg.Burst, l.cfg.Kept, l.cfg.Reserved = cfg.Rate, cfg.Burst, cfg.Kept, cfg.Reserved
	now := l.cfg.Clock.Now()
	l.bucket.SetLimitAt(now, rate.Limit(cfg.Rate))
	l.bucket.SetBurstAt(now, cfg.Burst-cfg.Kept)
	if h := l.head(); h != nil { // it may have a shorter wait now
		h.call()
	}
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

// wait returns when the write may be sent, or with the error of ctx.
func (l *Limiter) wait(ctx context.Context, r rank) error {
	w := l.join(r)
	defer l.leave(w)
	for {
		delay, next := l.take(w)
		if next && delay == 0 {
			return nil
		}
		if err := l.sleep(ctx, w, delay, next); err != nil {
			return err
		}
	}
}

// sleep waits for w to become the next or, where it is, for the delay.
func (l *Limiter) sleep(ctx context.Context, w *waiter, delay time.Duration, next bool) error {
	if !next {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.turn:
			return nil
		}
	}
	timer := l.cfg.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.turn:
		return nil
	case <-timer.C():
		return nil
	}
}

// take takes a token for w if it is the next and there is one. Else it returns
// how long that will last at least.
func (l *Limiter) take(w *waiter) (delay time.Duration, next bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head() != w {
		return 0, false
	}
	now := l.cfg.Clock.Now()
	if now.Before(l.paused) {
		return l.paused.Sub(now), true
	}
	r := l.bucket.ReserveN(now, 1)
	delay = r.DelayFrom(now)
	delay = max(0, delay-time.Duration(float64(l.overdraft(w.rank))/l.cfg.Rate*float64(time.Second)))
	if delay > 0 {
		r.CancelAt(now)
	}
	return delay, true
}

// overdraft returns by how many writes one of rank r may overdraw the bucket.
func (l *Limiter) overdraft(r rank) int {
	switch {
	case r == ahead || l.hastened > 0:
		return l.cfg.Kept
	case r == urgent:
		return l.cfg.Kept - l.cfg.Reserved
	}
	return 0
}

// Hasten lets all writes use what is kept from them until the function that it returns
// is called. It is for what is to be over soon while no step is waited for, such as
// taking back what is half done before the process ends.
func (l *Limiter) Hasten() (end func()) {
	l.hasten(1)
	return sync.OnceFunc(func() { l.hasten(-1) })
}

func (l *Limiter) hasten(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hastened += by
	if h := l.head(); h != nil { // it may have a shorter wait now
		h.call()
	}
}

func (l *Limiter) head() *waiter {
	for _, queue := range slices.Backward(l.waiting[:]) {
		if len(queue) > 0 {
			return queue[0]
		}
	}
	return nil
}

func (l *Limiter) join(r rank) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{rank: r, turn: make(chan struct{}, 1)}
	l.waiting[r] = append(l.waiting[r], w)
	return w
}

// leave takes w out of its queue and tells who is the next now.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := &l.waiting[w.rank]
	if i := slices.Index(*queue, w); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
	}
	if h := l.head(); h != nil {
		h.call()
	}
}

// call tells w to look again whether it may be sent.
func (w *waiter) call() {
	select {
	case w.turn <- struct{}{}:
	default:
	}
}

// charge takes a token for a write that does not wait for one.
func (l *Limiter) charge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket.ReserveN(l.cfg.Clock.Now(), 1)
}

// sent counts a write that was let through.
func (l *Limiter) sent(verb string, r rank, waited time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.count(verb)
	c.Writes++
	c.Waited += waited
	if r > ordinary {
		c.Urgent++
	}
}

// throttled counts a write that was sent back, and stops all writes for pause.
func (l *Limiter) throttled(verb string, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(verb).Throttled++
	until := l.cfg.Clock.Now().Add(min(pause, l.cfg.PauseMax))
	if until.After(l.paused) {
		l.paused = until
	}
}

func (l *Limiter) count(verb string) *Count {
	c, ok := l.counts[verb]
	if !ok {
		c = &Count{Verb: verb}
		l.counts[verb] = c
	}
	return c
}
