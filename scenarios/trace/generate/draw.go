package generate

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A drawer draws the prices of a market up to but not including a time, starting where the previous
// call ended.
type drawer func(until policy.Time)

// A drawing draws the prices of some markets, one time span after another.
type drawing struct {
	paths []*path
	types [][]*path // the paths by type
	begun []*shared // shared state of each type
	at    policy.Time
}

// begin returns a drawing of the markets with the given indices.
func (c *Config) begin(markets []int, profiles []profile) *drawing {
	d := &drawing{at: c.From}
	numbers := map[string]int{}
	for _, i := range markets {
		key := c.Markets[i].TypeName()
		k, ok := numbers[key]
		if !ok {
			k = len(d.types)
			numbers[key] = k
			d.types, d.begun = append(d.types, nil), append(d.begun, newShared(c, key))
		}
		p := c.newPath(i, profiles[i])
		d.paths, d.types[k] = append(d.paths, p), append(d.types[k], p)
	}
	return d
}

// draw extends the paths up to until. It draws types in parallel, since the prices of a type do not
// depend on those of another.
func (d *drawing) draw(until policy.Time) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(d.types)) {
		workers.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(d.types); k = int(next.Add(1)) - 1 {
				d.begun[k].extend(d.at, until)
				for _, p := range d.types[k] {
					p.advance(d.begun[k], d.at, until)
				}
			}
		})
	}
	workers.Wait()
	d.at = until
}

// advance draws the prices in [from, until).
func (p *path) advance(s *shared, from, until policy.Time) {
	// The expected number of changes, so that slices seldom grow.
	n := int(min(1.1*p.perDay()*float64(until-from)/float64(day)+1, 1<<20))
	if n > 1 {
		n += 15
	}
	p.series.At = slices.Grow(p.series.At, n)
	p.series.Spot, p.series.OnDemand = slices.Grow(p.series.Spot, n), slices.Grow(p.series.OnDemand, n)
	if p.draw == nil {
		p.draw = p.begin(s)
	}
	p.draw(until)
}

// begin records the first price and returns the drawer of the others.
func (p *path) begin(s *shared) drawer {
	switch {
	case p.still:
		p.note(p.c.From)
		return func(policy.Time) {}
	case p.c.Law.Kind == Walk:
		return p.walk(s)
	case p.c.Law.Kind == Auction:
		return p.auction(s)
	case p.c.Law.Kind == Jumps:
		return p.jumps()
	}
	return p.list(s)
}

// perDay returns the approximate number of price changes per day.
func (p *path) perDay() float64 {
	switch {
	case p.still:
		return 0
	case p.c.Law.Kind == Jumps:
		return 2 * 24 * p.activity / yearHours
	case p.c.Law.Kind == List:
		return 12 * 24 * p.activity * p.c.Law.List.Dates / yearHours
	}
	return p.activity
}

// forget drops all prices except the current one.
func (p *path) forget() {
	s, last := &p.series, len(p.series.At)-1
	if last < 1 {
		return
	}
	s.At = append(s.At[:0], s.At[last])
	s.Spot, s.OnDemand = append(s.Spot[:0], s.Spot[last]), append(s.OnDemand[:0], s.OnDemand[last])
}

// Draw returns the series of all markets; see [Generate], which makes a trace of them.
func Draw(c *Config) ([]trace.Series, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	all := make([]int, len(c.Markets))
	for i := range all {
		all[i] = i
	}
	d := c.begin(all, c.profiles())
	d.draw(c.To)
	series := make([]trace.Series, len(all))
	for i, p := range d.paths {
		series[i] = p.series
	}
	return series, nil
}

// partRows is the approximate number of price changes in a part, unless a single day has more.
const partRows = 1 << 20

// Parts draws the same trace as [Generate], as the head and the parts that [trace.WriteParts]
// accepts. Each part is drawn when it is requested, until ctx is done.
func Parts(ctx context.Context, c Config) (head *trace.Trace, parts iter.Seq2[*trace.Part, error], err error) {
	return c.draws(ctx, func(perDay float64) policy.Time { return policy.Time(max(1, partRows/(1+perDay))) * day })
}

// draws implements [Parts]. Length returns the length of the parts of a region, given its number of
// price changes per day.
func (c *Config) draws(
	ctx context.Context, length func(perDay float64) policy.Time,
) (head *trace.Trace, parts iter.Seq2[*trace.Part, error], err error) {
	if err := c.validate(); err != nil {
		return nil, nil, fmt.Errorf("generating: %w", err)
	}
	if head, err = c.head(); err != nil {
		return nil, nil, fmt.Errorf("generating: %w", err)
	}
	profiles := c.profiles()
	return head, func(yield func(*trace.Part, error) bool) {
		for _, markets := range c.regions() {
			d := c.begin(markets, profiles)
			step := length(d.perDay())
			for end := c.From - c.From%day + step; d.at < c.To; end += step {
				part := d.part(min(end, c.To))
				if err := ctx.Err(); !yield(part, err) || err != nil {
					return
				}
			}
		}
	}, nil
}

// regions returns the indices of the markets of each region, in the order of a trace.
func (c *Config) regions() [][]int {
	all := make([]int, len(c.Markets))
	for i := range all {
		all[i] = i
	}
	slices.SortFunc(all, func(i, k int) int {
		a, b := &c.Markets[i], &c.Markets[k]
		return cmp.Or(
			cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Zone, b.Zone),
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.product(), b.product()))
	})
	var regions [][]int
	for n, i := range all {
		if m := &c.Markets[i]; n == 0 || m.Provider != c.Markets[all[n-1]].Provider ||
			m.Region != c.Markets[all[n-1]].Region {
			regions = append(regions, nil)
		}
		last := &regions[len(regions)-1]
		*last = append(*last, i)
	}
	return regions
}

// perDay returns the approximate number of price changes per day of all markets.
func (d *drawing) perDay() float64 {
	sum := 0.0
	for _, p := range d.paths {
		sum += p.perDay()
	}
	return sum
}

// part draws up to until and returns the prices drawn. The next call invalidates them.
func (d *drawing) part(until policy.Time) *trace.Part {
	part := &trace.Part{From: d.at, To: until, Series: make([]trace.Series, len(d.paths))}
	for _, p := range d.paths {
		p.forget()
	}
	d.draw(until)
	for i, p := range d.paths {
		part.Series[i] = p.series
	}
	return part
}
