package aws

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/spotter-dev/spotter/live/flock"
	"github.com/spotter-dev/spotter/policy/figures"
)

// ListRegions returns the regions that the account may use, ascending.
func ListRegions(ctx context.Context, c Config) ([]string, error) {
	c.Regions = []string{pricingRegion}
	s, err := newSession(ctx, &c, &stats{})
	if err != nil {
		return nil, err
	}
	answer, err := s.optional[pricingRegion].DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
	if err != nil {
		return nil, fault(ctx, actionRegions, pricingRegion, err)
	}
	var all []string
	for _, r := range answer.Regions {
		all = append(all, sdk.ToString(r.RegionName))
	}
	slices.Sort(all)
	return all, nil
}

// A RegionsError contains the regions that could not be recorded while others were.
type RegionsError struct {
	Regions []string
	Errs    []error // parallel to Regions
}

// Error lists the error of each region.
func (e *RegionsError) Error() string {
	var said []string
	for i, region := range e.Regions {
		said = append(said, fmt.Sprintf("%s: %v", region, e.Errs[i]))
	}
	return fmt.Sprintf("not recorded: %s: %s", figures.Count(len(e.Regions), "region"), strings.Join(said, "; "))
}

// Unwrap returns the errors of the regions.
func (e *RegionsError) Unwrap() []error { return e.Errs }

// An Apart records several regions into one folder, some of them at the same time. Each region has
// its own journal, continues where it stopped, and fails without affecting the others.
type Apart struct {
	config  Config
	workers int
}

// NewApart returns a recorder that records at most workers regions at the same time. Each region
// has its own request limit, as in AWS. The regions share the quota of placement scores equally.
func NewApart(c Config, workers int) (*Apart, error) {
	if workers < 1 || workers > parallelMax {
		return nil, fmt.Errorf("%w: regions at once %d: it must be between 1 and %d", ErrConfig, workers, parallelMax)
	}
	if c.Dir == "" {
		return nil, fmt.Errorf("%w: folder %q: it must be set", ErrConfig, c.Dir)
	}
	return &Apart{c, workers}, c.validate()
}

// parallelMax is the maximum number of regions recorded at the same time. Each sends up to five
// requests per second and keeps the prices of its span in memory.
const parallelMax = 64

// Record records all regions. If some regions fail, it returns a [RegionsError] and the summary of
// the others. If all fail, it returns the first error.
func (a *Apart) Record(ctx context.Context) (*Summary, error) {
	if err := checkFolder(a.config.Dir); err != nil {
		return nil, err
	}
	state := filepath.Join(a.config.Dir, stateFolder)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	lock := filepath.Join(state, "lock")
	held, err := flock.Lock(lock)
	if err != nil {
		return nil, err
	}
	defer func() {
		if _, err := os.Stat(filepath.Join(a.config.Dir, "provider=aws")); err != nil {
			os.Remove(lock) // Remove keeps folders that are not empty
			os.Remove(state)
			os.Remove(a.config.Dir)
		}
		held.Close()
	}()
	regions := sorted(a.config.Regions)
	all := &gathered{config: a.config, done: make([][2]int, len(regions))}
	sums, errs := make([]*Summary, len(regions)), make([]error, len(regions))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(a.workers, len(regions)) {
		group.Go(func() {
			for i := range next {
				sums[i], errs[i] = all.region(ctx, i, regions[i], len(regions))
			}
		})
	}
	for i := range regions {
		next <- i
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return nil, errors.Join(errs...)
	}
	return sum(regions, sums, errs)
}

// Follow is like [Recorder.Follow], for all regions. A region that fails is reported in a warning
// and retried at the next interval.
func (a *Apart) Follow(ctx context.Context, done func(*Summary)) error {
	for first := true; ; first = false {
		began := a.config.Now()
		s, err := a.Record(ctx)
		var some *RegionsError
		passing := !first && passes(err)
		switch {
		case errors.As(err, &some), passing && ctx.Err() == nil:
			a.config.warn("%v; the next attempt follows", err)
		case err != nil:
			return ended(ctx, err)
		}
		if s != nil {
			done(s)
		}
		if err := sleep(ctx, a.config.Every-a.config.Now().Sub(began)); err != nil {
			return ended(ctx, err)
		}
	}
}

// gathered is the state shared by the recordings of all regions.
type gathered struct {
	config Config
	mu     sync.Mutex
	done   [][2]int // windows done and in total, by region
}

// region records region i of a total of of regions.
func (g *gathered) region(ctx context.Context, i int, region string, of int) (*Summary, error) {
	c := g.config
	c.Regions, c.ScoresMax = []string{region}, c.ScoresMax/of
	c.Warn = func(text string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.config.warn("%s: %s", region, text)
	}
	if g.config.Progress != nil {
		c.Progress = func(done, total int) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.done[i] = [2]int{done, total}
			all := [2]int{}
			for _, d := range g.done {
				all[0], all[1] = all[0]+d[0], all[1]+d[1]
			}
			g.config.Progress(all[0], all[1])
		}
	}
	r, err := New(c)
	if err != nil {
		return nil, err
	}
	r.state = filepath.Join(c.Dir, stateFolder, "region="+region)
	return r.Record(ctx)
}

// sum adds the summaries of the regions that succeeded.
func sum(regions []string, sums []*Summary, errs []error) (*Summary, error) {
	var all *Summary
	failed := &RegionsError{}
	for i, s := range sums {
		if errs[i] != nil {
			failed.Regions, failed.Errs = append(failed.Regions, regions[i]), append(failed.Errs, errs[i])
			continue
		}
		if all == nil {
			all = &Summary{From: s.From, Until: s.Until}
		}
		all.From, all.Until, all.Resumed = min(all.From, s.From), max(all.Until, s.Until), all.Resumed || s.Resumed
		for _, add := range [][2]*int{
			{&all.Markets, &s.Markets}, {&all.Changes, &s.Changes}, {&all.Repeats, &s.Repeats}, {&all.Files, &s.Files},
			{&all.OnDemand, &s.OnDemand}, {&all.Bands, &s.Bands}, {&all.Scores, &s.Scores},
			{&all.Requests, &s.Requests}, {&all.Throttled, &s.Throttled}, {&all.Retries, &s.Retries},
		} {
			*add[0] += *add[1]
		}
	}
	switch {
	case all == nil:
		return nil, failed.Errs[0]
	case len(failed.Errs) > 0:
		return all, failed
	}
	return all, nil
}
