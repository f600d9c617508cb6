package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/screen"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
)

const (
	// liveSince is the default age of the oldest decisions that are read.
	liveSince = 24 * time.Hour

	// liveEvery is the interval at which the record is checked for changes.
	liveEvery = time.Second

	// liveRest is the minimum pause between two reads as a multiple of the time that the first
	// took, so that a large record does not keep a machine busy.
	liveRest = 4
)

// follow returns the function that shows the record of a controller and keeps following it.
func (f *tuiFlags) follow(args []string) (string, func(context.Context, func(any)), error) {
	given := slices.ContainsFunc([]string{"policies", "seed", "trace", "from", "intensity", "node-fee", "run"},
		f.Flags.Changed)
	switch {
	case len(args) > 0 || given:
		return "", nil, cli.Invalid(errors.New("--live: a record has its own cluster, prices and policy"),
			"leave SCENARIO and the other flags out, or leave --live out")
	case f.since < 0:
		return "", nil, cli.Invalid(fmt.Errorf("--since: %v is negative", f.since), "run `spotter tui --help`")
	}
	if err := input.RefuseBucket("--live", f.live); err != nil {
		return "", nil, err
	}
	r, err := record.OpenPlain(f.live)
	if err != nil {
		return "", nil, input.RecordingError(fmt.Errorf("--live: %w", err))
	}
	l := follower{dir: f.live, clock: time.Now}
	if f.since > 0 {
		l.since = policy.TimeOf(l.clock().Add(-f.since))
	}
	if r, err = r.Since(l.since); err != nil {
		return "", nil, input.RecordingError(fmt.Errorf("--live: %w", err))
	}
	play := func(ctx context.Context, send func(any)) {
		if err := l.open(r, send); err != nil {
			send(screen.Failed{Err: input.RecordingError(fmt.Errorf("--live %s: %w", f.live, err))})
			return
		}
		ticker := time.NewTicker(liveEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.look(send)
			}
		}
	}
	return "live " + filepath.Base(filepath.Clean(f.live)), play, nil
}

// A follower reads a record again whenever it has grown.
type follower struct {
	dir   string
	clock func() time.Time

	// since is where reading starts; it does not change.
	since policy.Time

	// newest is the last segment that was read, rest the time before which the record is not read
	// again, and err the last error.
	newest int
	rest   time.Time
	err    error
}

// open sends the existing part of the record.
func (l *follower) open(r *record.Recording, send func(any)) error {
	run, err := l.load(r)
	if err != nil {
		return err
	}
	send(screen.Opened{Runs: []screen.Run{run}, Live: true})
	send(screen.Looked{At: policy.TimeOf(l.clock())})
	return nil
}

func (l *follower) load(r *record.Recording) (screen.Run, error) {
	begun := l.clock()
	t, err := timeline.Load(r)
	if err != nil {
		return screen.Run{}, err
	}
	l.newest = r.Newest()
	ended := l.clock()
	l.rest = ended.Add(liveRest * ended.Sub(begun))
	return screen.Run{Name: t.About().Policy, Timeline: t}, nil
}

// look sends what was added to the record since the last read, and any error.
func (l *follower) look(send func(any)) {
	now := l.clock()
	if !now.Before(l.rest) {
		var run screen.Run
		var grown bool
		if run, grown, l.err = l.more(); grown {
			send(screen.Grown{Run: run})
		}
	}
	send(screen.Looked{At: policy.TimeOf(now), Err: l.err}) // also without a change, since the age of the last decision grows
}

func (l *follower) more() (run screen.Run, grown bool, err error) {
	r, err := record.OpenPlain(l.dir)
	if err != nil || r.Newest() == l.newest {
		return run, false, err
	}
	if r, err = r.Since(l.since); err != nil {
		return run, false, err
	}
	run, err = l.load(r)
	return run, err == nil, err
}
