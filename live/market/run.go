package market

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
)

// A feedState is the state of reading a feed.
type feedState struct {
	asOf   policy.Time // AsOf of the last update that was used
	readAt policy.Time // when the last update was used
	asked  bool        // whether a read has ended since the book was created
	failed int         // consecutive failed reads
	err    error       // of the last read; nil if it succeeded
	said   string      // the last message in the log
}

// A Health is the state of reading a feed.
type Health struct {
	Feed string

	// Asked reports whether a read has ended since the book was created, successfully or not. Data
	// in the cache was read by an earlier process.
	Asked bool

	// AsOf is the time up to which the feed has reported; zero if it never did.
	AsOf policy.Time

	// Failed is the number of consecutive failed reads. Err is the error of the last read or
	// describes its invalid data, nil if there was neither.
	Failed int
	Err    error
}

// A feedReader reads the feeds and records the state of each. If both its lock and the lock of the
// book are needed, the lock of the book is acquired first.
type feedReader struct {
	config *Config
	book   feedBook

	mu     sync.Mutex
	states []feedState
}

// A feedBook stores the data that feeds report.
type feedBook interface {
	take(*Update, Ask) error
	wanted() []TypeInRegion
	saveSometimes(now policy.Time) error
}

// Health returns the state of each feed, in the order of Config.Feeds.
func (b *Book) Health() []Health { return b.feeds.health() }

func (r *feedReader) health() []Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Health, len(r.states))
	for i, s := range r.states {
		all[i] = Health{Feed: r.config.Feeds[i].Name(), Asked: s.asked, AsOf: s.asOf, Failed: s.failed, Err: s.err}
	}
	return all
}

// Run reads the feeds until ctx ends, and then writes the cache. A feed that fails is read again at
// increasing intervals and does not stop other feeds. The end of ctx is not an error.
func (b *Book) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for i := range b.config.Feeds {
		all.Go(func() { b.feeds.follow(ctx, i) })
	}
	<-ctx.Done()
	all.Wait()
	return b.save()
}

// Refresh reads every feed once, one after the other, and returns their errors. It is for callers
// that need prices before their first step.
func (b *Book) Refresh(ctx context.Context) error {
	var errs []error
	for i := range b.config.Feeds {
		if err := b.feeds.read(ctx, i); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", b.config.Feeds[i].Name(), err))
		}
	}
	return errors.Join(errs...)
}

// follow reads feed i repeatedly. Data in the cache is not requested again before it is due.
func (r *feedReader) follow(ctx context.Context, i int) {
	wait := r.due(i)
	for sleep(ctx, r.config.Clock, wait) {
		err := r.read(ctx, i)
		if ctx.Err() != nil {
			return
		}
		wait = r.config.Feeds[i].Every()
		switch {
		case errors.Is(err, ErrNothingWanted):
			wait = min(wait, r.config.RetryMin)
		case err != nil:
			wait = min(wait, r.backoff(i))
		}
	}
}

// due returns the time until the first read of feed i.
func (r *feedReader) due(i int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.states[i]
	if s.readAt == 0 {
		return 0
	}
	return min(r.config.Feeds[i].Every(), s.readAt.Add(r.config.Feeds[i].Every()).Sub(policy.TimeOf(r.config.Clock.Now())))
}

// backoff returns how long to wait after the last failure of feed i.
func (r *feedReader) backoff(i int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.config.RetryMin << min(max(r.states[i].failed-1, 0), 20)
	if wait <= 0 || wait > r.config.RetryMax {
		return r.config.RetryMax
	}
	return wait
}

// sleep waits for d. It returns false if ctx has ended.
func sleep(ctx context.Context, c clock.WithTicker, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}

// read reads feed i once and stores the data that it reported, also if an error made it incomplete.
// It returns the error of the feed. Invalid values are ignored, logged, and reported by Health.
func (r *feedReader) read(ctx context.Context, i int) error {
	ctx, stop := context.WithTimeout(ctx, r.config.Timeout)
	defer stop()
	feed, ask := r.config.Feeds[i], r.ask(i)
	u, err := feed.Read(ctx, ask)
	if err == nil && u == nil {
		err = errors.New("it reported nothing")
	}
	var wrong error
	if u != nil {
		wrong = r.book.take(u, ask)
	}
	r.note(i, ask, u, err, wrong)
	if err == nil && r.config.Cache != "" {
		if err := r.book.saveSometimes(ask.Now); err != nil {
			r.config.Log.Warn("the market cache could not be saved", "error", err)
		}
	}
	return err
}

func (r *feedReader) ask(i int) Ask {
	wanted := r.book.wanted()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Ask{Now: policy.TimeOf(r.config.Clock.Now()), Since: r.states[i].asOf, Wanted: wanted}
}

// note records the result of a read. A message that was logged for the previous read is not logged
// again.
func (r *feedReader) note(i int, ask Ask, u *Update, err, wrong error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.states[i]
	s.asked = true
	s.err = cmp.Or(err, wrong)
	if errors.Is(err, ErrNothingWanted) {
		if err == ErrNothingWanted { //nolint:errorlint // a wrapped one has a reason, and so is a fault
			s.err = nil
		}
		return
	}
	said := fmt.Sprint(err, wrong)
	if u != nil {
		said += strings.Join(u.Warnings, "\n")
	}
	if said != s.said {
		s.said = said
		r.log(r.config.Feeds[i].Name(), u, err, wrong)
	}
	if err != nil || errors.Is(wrong, errNoAsOf) {
		s.failed++
		return
	}
	s.failed, s.readAt, s.asOf = 0, ask.Now, max(s.asOf, u.AsOf)
}

// log logs the result of a read.
func (r *feedReader) log(feed string, u *Update, err, wrong error) {
	if err != nil {
		r.config.Log.Warn("reading market data failed; earlier data stays in use", "feed", feed, "error", err)
	}
	if wrong != nil {
		r.config.Log.Warn("some reported market data is invalid and is ignored", "feed", feed, "error", wrong)
	}
	if u == nil {
		return
	}
	for _, text := range u.Warnings {
		r.config.Log.Warn("market data is incomplete", "feed", feed, "what", text)
	}
}

// wanted returns the types that the tables contain, by region.
func (b *Book) wanted() []TypeInRegion {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []TypeInRegion
	for i := range b.table.from {
		key := b.table.from[i].offer.key
		all = append(all, TypeInRegion{key.provider, key.region, key.kind})
	}
	slices.SortFunc(all, func(a, b TypeInRegion) int { return a.compare(&b) })
	return slices.Compact(all)
}

// sources returns the feeds and the AsOf of their data, in the order of the feeds.
func (r *feedReader) sources() []policy.Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]policy.Source, 0, len(r.config.Feeds))
	for i, f := range r.config.Feeds {
		all = append(all, policy.Source{Name: f.Name(), Prices: f.Prices(), At: r.states[i].asOf})
	}
	return all
}
