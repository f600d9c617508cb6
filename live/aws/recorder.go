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

// ErrNothing is returned when AWS has no price for the plan.
var ErrNothing = errors.New("no prices")

// A Recorder records into one folder. It must not be used by several goroutines at the same time.
type Recorder struct {
	config  Config
	state   string // folder of the files that are not part of the trace
	session *session
	stats   stats

	// listed is the end of the last recording for which on-demand prices and bands were requested.
	listed policy.Time
}

// A Summary summarizes a recording.
type Summary struct {
	// From and Until are the bounds of its span.
	From, Until policy.Time

	// Resumed reports whether this was the rest of an interrupted recording, whose span it kept.
	Resumed bool

	// Markets is the number of markets with a price in the span, and Changes the number of their
	// price changes. Repeats is the number of rows without new information.
	Markets, Changes, Repeats int

	// Files is the number of files written. Unchanged files are not written.
	Files int

	// OnDemand, Bands and Scores are the numbers of on-demand prices, interruption bands and
	// placement scores.
	OnDemand, Bands, Scores int

	// Requests is the number of requests sent, Throttled the number of those that AWS throttled,
	// and Retries the number of retries.
	Requests, Throttled, Retries int
}

// New returns a recorder. It does not send any requests.
func New(c Config) (*Recorder, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("%w: folder %q: it must be set", ErrConfig, c.Dir)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Recorder{config: c, state: filepath.Join(c.Dir, stateFolder)}, nil
}

// Record fetches and writes the part of the configured span that is not yet recorded, plus an
// overlap. If a recording in the folder was interrupted, it finishes that one instead.
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

// Follow records until ctx is cancelled, and then returns nil. It first records the missing part of
// the configured days, and then the new data at every interval. It passes the summary of each
// recording to done. If a recording other than the first fails for a temporary reason, the next one
// covers its span.
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

// passes reports whether the next recording may succeed where this one failed.
func passes(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUpload)
}

// ended returns nil for the error of a cancelled ctx, and other errors unchanged.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// span returns the plan of a recording that starts now. It omits the time before newest, the end of
// the recorded data, except for an overlap. A newest of 0 means that nothing is recorded.
func (r *Recorder) span(newest policy.Time) *plan {
	c := &r.config
	until := c.Until
	if until.IsZero() {
		until = c.Now()
	}
	p := &plan{
		Regions: sorted(c.Regions), Types: sorted(c.Types), Families: sorted(c.Families),
		Product: c.Product, ZoneNames: c.ZoneNames, Present: c.Until.IsZero(),
		Until: policy.TimeOf(until.Truncate(time.Second)), // the resolution of a request
	}
	p.From = p.Until.Add(-time.Duration(c.Days) * 24 * time.Hour)
	if overlapped := newest.Add(-c.Overlap); newest > 0 && overlapped < p.Until {
		p.From = max(p.From, overlapped)
	}
	return p
}

// newest returns the earliest end of the recorded data of the regions; 0 if a region has none.
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

// open checks the folder and the credentials, and locks the folder for this process.
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

// removeEmpty removes the folders of a recorder that has not recorded anything.
func (r *Recorder) removeEmpty(lock string) {
	for _, name := range []string{filepath.Join(r.config.Dir, "provider=aws"), r.journalPath()} {
		if _, err := os.Stat(name); err == nil {
			return
		}
	}
	os.Remove(lock)
	os.Remove(r.state) // Remove keeps a folder that is not empty
	os.Remove(r.config.Dir)
}

func (r *Recorder) journalPath() string { return filepath.Join(r.state, "journal") }

// record carries out p, or the unfinished plan of the journal.
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

// start writes the plan to the journal, or continues the plan of the journal.
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

// presentMax is how long after its end an interrupted recording may still request data that AWS
// publishes only for the present. The trace contains this data at the end of the recording,
// although it was published later.
const presentMax = time.Hour

// like reports whether two plans are equal except for their spans.
func (p *plan) like(q *plan) bool {
	return slices.Equal(p.Regions, q.Regions) && slices.Equal(p.Types, q.Types) &&
		slices.Equal(p.Families, q.Families) && p.Product == q.Product && p.ZoneNames == q.ZoneNames
}

// String formats the plan as the flags that request it.
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

// leave closes the journal of a failed recording. It deletes a journal without prices, which would
// not help the next recording.
func (r *run) leave() error {
	if len(r.pages) == 0 {
		return r.journal.remove()
	}
	return r.journal.file.Close()
}
