package aws

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/live/flock"
	"github.com/spotter-dev/spotter/policy"
)

// ErrNothing is returned when AWS has no price for what was asked.
var ErrNothing = errors.New("no prices")

// A Recorder records into one folder. It is not to be used by several
// goroutines.
type Recorder struct {
	config  Config
	state   string // the folder for what is no part of the trace
	session *session
	stats   stats

	// listed is the end of the last recording for which on-demand prices and
	// bands were asked.
	listed policy.Time
}

// A Summary says what a recording brought.
type Summary struct {
	// From and Until are its span.
	From, Until policy.Time

	// Resumed says that a recording that was broken off has been finished, with
	// its own span.
	Resumed bool

	// Markets had a price in the span and changed it Changes times. Repeats
	// are answers that reported nothing new.
	Markets, Changes, Repeats int

	// Files were written; files that would hold the same were left.
	Files int

	// OnDemand is the number of on-demand prices, Bands that of interruption
	// bands, Scores that of placement scores.
	OnDemand, Bands, Scores int

	// Requests were sent, Throttled of them were refused as too many, and
	// Retries were sent again.
	Requests, Throttled, Retries int
}

// New returns a recorder. It sends no request yet.
func New(c Config) (*Recorder, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("%w: folder %q: it must be set", ErrConfig, c.Dir)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Recorder{config: c, state: filepath.Join(c.Dir, stateFolder)}, nil
}

// Record fetches of the span of the configuration what is not on record, but for an
// overlap, or finishes the recording that was broken off in the folder, and writes it.
func (r *Recorder) Record(ctx context.Context) (*Summary, error) {
	release, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	recorded, err := r.covered(r.span(0))
	if err != nil {
		return nil, err
	}
	return r.record(ctx, r.span(recorded))
}

// Follow records until ctx is cancelled, which is its good end: first what is
// missing of the days of the configuration, then every so often what is new.
// Each recording is passed to done. One that fails because AWS cannot be
// reached is made up for by the next.
func (r *Recorder) Follow(ctx context.Context, done func(*Summary)) error {
	release, err := r.open(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	defer release()
	for first := true; ; first = false {
		newest, err := r.newest()
		if err != nil {
			return err
		}
		began := r.config.Now()
		s, err := r.record(ctx, r.span(newest))
		switch passing := passes(err); {
		case err == nil:
			done(s)
		case first || !passing:
			return ended(ctx, err)
		default:
			r.config.warn("%v; the next attempt follows", err)
		}
		if err := sleep(ctx, r.config.Every-r.config.Now().Sub(began)); err != nil {
			return ended(ctx, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// passes reports whether the next recording may do what one failed to.
func passes(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUpload)
}

// ended takes the end of ctx for a good one.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// span returns the plan of a recording that starts now. It leaves out the time before newest, the
// end of the record, except for an overlap.
func (r *Recorder) span(newest policy.Time) *plan {
	c := &r.config
	until := c.Until
	if until.IsZero() {
		until = c.Now()
	}
	p := &plan{
		Regions: sorted(c.Regions), Types: sorted(c.Types), Families: sorted(c.Families),
		Product: c.Product, ZoneNames: c.ZoneNames, Present: c.Until.IsZero(),
		Until: policy.TimeOf(until.Truncate(time.Second)), // as precise as a request
	}
	p.From = p.Until.Add(-time.Duration(c.Days) * 24 * time.Hour)
	if overlapped := newest.Add(-c.Overlap); newest > 0 && overlapped < p.Until {
		p.From = max(p.From, overlapped)
	}
	return p
}

// newest returns the end of the record of the region that ends first.
func (r *Recorder) newest() (policy.Time, error) {
	var least policy.Time
	for i, region := range sorted(r.config.Regions) {
		f, err := newestDay(r.config.Dir, region)
		if err != nil || f == nil {
			return 0, err
		}
		if i == 0 || f.t.WholeTo < least {
			least = f.t.WholeTo
		}
	}
	return least, nil
}

// open checks folder and credentials and takes the folder for this process.
func (r *Recorder) open(ctx context.Context) (release func(), err error) {
	if err := checkFolder(r.config.Dir); err != nil {
		return nil, err
	}
	if r.session, err = newSession(ctx, &r.config, &r.stats); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.state, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	path := filepath.Join(r.state, "lock")
	held, err := flock.Lock(path)
	if err != nil {
		return nil, err
	}
	release = func() {
		r.removeEmpty(path)
		held.Close()
	}
	if err := r.sweep(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// removeEmpty removes the folders of a recorder that has recorded nothing.
func (r *Recorder) removeEmpty(lock string) {
	for _, name := range []string{filepath.Join(r.config.Dir, "provider=aws"), r.journalPath()} {
		if _, err := os.Stat(name); err == nil {
			return
		}
	}
	os.Remove(lock)
	os.Remove(r.state) // a folder that is not empty stays
	os.Remove(r.config.Dir)
}

func (r *Recorder) journalPath() string { return filepath.Join(r.state, "journal") }

// record carries out p, or what the journal says is unfinished.
func (r *Recorder) record(ctx context.Context, p *plan) (*Summary, error) {
	if r.config.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.config.Timeout, ErrTimeout)
		defer stop()
	}
	j, entries, err := openJournal(r.journalPath())
	if err != nil {
		return nil, err
	}
	run := &run{Recorder: r, plan: p, journal: j, session: r.session}
	run.replay(entries)
	before := r.stats.snapshot()
	s := &Summary{}
	if err := run.start(entries, s); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	if err := run.fetch(ctx); err != nil {
		return nil, errors.Join(err, run.leave())
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(fault(ctx, actionHistory, run.plan.Regions[0], err), run.leave())
	}
	if err := run.commit(ctx, s); err != nil {
		if errors.Is(err, ErrNothing) {
			return nil, errors.Join(err, j.remove())
		}
		return nil, errors.Join(err, j.file.Close())
	}
	now := r.stats.snapshot()
	s.Requests, s.Throttled, s.Retries = now.requests-before.requests, now.throttled-before.throttled, now.retries-before.retries
	s.From, s.Until = run.plan.From, run.plan.Until
	if r.listed == 0 || s.Until.Sub(r.listed) >= listedSpan {
		r.listed = s.Until
	}
	return s, errors.Join(r.cover(run.plan), j.remove())
}

func (s *stats) snapshot() (now struct{ requests, throttled, retries int }) {
	now.requests, now.throttled, now.retries = int(s.requests.Load()), int(s.throttled.Load()), int(s.retries.Load())
	return now
}

// start writes the plan, or continues with the plan of the journal.
func (r *run) start(entries []entry, s *Summary) error {
	if len(entries) == 0 {
		return r.journal.add(entry{Plan: r.plan})
	}
	begun := entries[0].Plan
	if begun == nil {
		return fmt.Errorf("%s: %w: it does not start with a plan; remove it to start over", r.journal.path, ErrFolder)
	}
	if !begun.like(r.plan) {
		return fmt.Errorf("%s: %w: %s", r.config.Dir, ErrUnfinished, begun)
	}
	r.plan, s.Resumed = begun, true
	if r.plan.Present && policy.TimeOf(r.config.Now()).Sub(begun.Until) > presentMax {
		r.plan.Present = false
	}
	return nil
}

// presentMax is how long after its end an interrupted recording may still request data that is only
// published for the present. The trace has this data at that end, at which data that is published
// later was not known.
const presentMax = time.Hour

// like reports whether two plans are the same except for the span.
func (p *plan) like(q *plan) bool {
	return slices.Equal(p.Regions, q.Regions) && slices.Equal(p.Types, q.Types) &&
		slices.Equal(p.Families, q.Families) && p.Product == q.Product && p.ZoneNames == q.ZoneNames
}

// String writes the plan as the flags that request it.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--region %s", strings.Join(p.Regions, ","))
	if len(p.Types) > 0 {
		fmt.Fprintf(&b, " --types %s", strings.Join(p.Types, ","))
	}
	if len(p.Families) > 0 {
		fmt.Fprintf(&b, " --families %s", strings.Join(p.Families, ","))
	}
	fmt.Fprintf(&b, " --product %q", p.Product)
	if p.ZoneNames {
		b.WriteString(" --zone-names")
	}
	fmt.Fprintf(&b, ", from %v to %v", p.From, p.Until)
	return b.String()
}

// leave closes the journal of a recording that failed. One that holds no
// prices is of no use to the next.
func (r *run) leave() error {
	if len(r.pages) == 0 {
		return r.journal.remove()
	}
	return r.journal.file.Close()
}
