package trace

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A GeneratorConfig says what synthetic prices to draw.
//
// The price of a market is its on-demand price times a ratio whose logarithm
// walks in small steps. Steps keep their direction more often than not, and
// the direction and the size of steps have a part that all zones of an
// instance type share.
type GeneratorConfig struct {
	// Seed chooses the draws.
	Seed uint64

	// From is where the trace begins and Days how long it is.
	From policy.Time
	Days int

	// A market is drawn for each zone and type.
	Provider, Region string
	Zones, Types     []string

	Walk WalkParams
}

// WalkParams are the figures of the walk. The defaults give what recordings of
// AWS between 2021 and 2024 show; see [DefaultWalk].
type WalkParams struct {
	// GapLeast and GapMedian, in hours, are the shortest and the usual time
	// between two changes, and GapSpread is the standard deviation of the
	// logarithm of what exceeds the shortest.
	GapLeast, GapMedian, GapSpread float64

	// Quiet is the share of gaps that are prolonged by up to QuietMost hours.
	// Raising it makes changes rarer.
	Quiet, QuietMost float64

	// StepMedian is the usual size of a step of the logarithm, StepSpread the
	// standard deviation of the logarithm of the size, of which StepMarket
	// belongs to the market and StepShared to the type at the time. StepMost
	// is the largest step.
	StepMedian, StepSpread, StepMarket, StepShared, StepMost float64

	// Turn is the chance that a step draws its direction anew; raising it
	// takes momentum away. Follow is the chance that the new direction is that
	// of the type; raising it makes zones move together. TypeTurn is the chance
	// that the direction of a type is drawn anew within six hours.
	Turn, Follow, TypeTurn float64

	// Pull is the strength with which steps turn back to the market's own
	// level, for each unit of the logarithm that it is away.
	Pull float64

	// LevelMedian is the usual ratio of the price to on-demand; LevelBelow and
	// LevelAbove are the standard deviations of its logarithm to either side,
	// and LevelShared is the share of the variance that the zones of a type
	// have in common. The ratio stays between Least and Most.
	LevelMedian, LevelBelow, LevelAbove, LevelShared float64
	Least, Most                                      float64

	// Pinned is the share of markets whose ratio is PinnedAt and never moves.
	Pinned, PinnedAt float64
}

// DefaultWalk returns the figures fitted to recordings of AWS in us-east-1
// (March to April 2021) and us-east-2 (November 2023 to February 2024).
func DefaultWalk() WalkParams {
	return WalkParams{
		GapLeast: 4.4, GapMedian: 6.0, GapSpread: 0.95, Quiet: 0.012, QuietMost: 72,
		StepMedian: 0.0018, StepSpread: 1.1, StepMarket: 0.6, StepShared: 0.8, StepMost: 0.07,
		Turn: 0.58, Follow: 0.52, TypeTurn: 0.15, Pull: 1.5,
		LevelMedian: 0.325, LevelBelow: 0.22, LevelAbove: 0.28, LevelShared: 0.5, Least: 0.10, Most: 1.00,
		Pinned: 0.12, PinnedAt: 0.30,
	}
}

// DefaultGenerator returns the configuration of the embedded trace.
func DefaultGenerator() GeneratorConfig {
	var types []string
	for _, family := range []string{
		"c5", "c6i", "c7i", "m5", "m6i", "m7i", "r5", "r6i", "r7i", "m5a", "c6g", "m6g", "r6g",
	} {
		types = append(types, family+".xlarge", family+".2xlarge", family+".4xlarge")
	}
	types = append(types, "c5.large", "m5.large", "r5.large",
		"g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge", "g4dn.12xlarge",
		"g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.12xlarge", "p3.2xlarge")
	return GeneratorConfig{
		Seed: 1, From: policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Days: 22,
		Provider: catalog.AWS, Region: "us-east-1",
		Zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"},
		Types: types, Walk: DefaultWalk(),
	}
}

func (c *GeneratorConfig) validate() error {
	positive := []struct {
		name  string
		value float64
	}{
		{"From", float64(c.From)}, {"Days", float64(c.Days)},
		{"Zones", float64(len(c.Zones))}, {"Types", float64(len(c.Types))},
		{"Walk.GapLeast", c.Walk.GapLeast}, {"Walk.StepMedian", c.Walk.StepMedian}, {"Walk.Least", c.Walk.Least},
		{"Walk.GapMedian - GapLeast", c.Walk.GapMedian - c.Walk.GapLeast},
		{"Walk.Most - Least", c.Walk.Most - c.Walk.Least},
	}
	for _, p := range positive {
		if !(p.value > 0) {
			return fmt.Errorf("%w: %s is %v, it must be above 0", ErrValue, p.name, p.value)
		}
	}
	shares := []struct {
		name  string
		value float64
	}{
		{"Walk.Quiet", c.Walk.Quiet}, {"Walk.Turn", c.Walk.Turn}, {"Walk.Follow", c.Walk.Follow},
		{"Walk.TypeTurn", c.Walk.TypeTurn}, {"Walk.LevelShared", c.Walk.LevelShared}, {"Walk.Pinned", c.Walk.Pinned},
	}
	for _, s := range shares {
		if !(s.value >= 0 && s.value <= 1) {
			return fmt.Errorf("%w: %s is %v, it must be from 0 to 1", ErrValue, s.name, s.value)
		}
	}
	return nil
}

// Generate draws a synthetic trace. Equal configurations give equal traces on
// every machine, and a longer one begins as a shorter one does.
func Generate(c GeneratorConfig) (*Trace, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("generating: %w", err)
	}
	var series []Series
	for _, kind := range c.Types {
		onDemand, ok := catalog.OnDemand(c.Provider, c.Region, kind)
		if !ok {
			return nil, fmt.Errorf("generating: %w: the catalog has no on-demand price of %s in %s/%s",
				ErrValue, kind, c.Provider, c.Region)
		}
		shared := c.newTypeWalk(kind)
		for _, zone := range c.Zones {
			w := c.newWalk(kind, zone, onDemand)
			series = append(series, w.run(&c, shared))
		}
	}
	t, err := New("generated", series)
	if err != nil {
		return nil, fmt.Errorf("generating: %w", err)
	}
	t.From, t.To = c.From, c.end()
	t.WholeFrom, t.WholeTo = t.From, t.To
	t.Synthetic = true
	t.About = fmt.Sprintf("synthetic prices of %s/%s, a momentum walk on spot/on-demand, seed %d; on-demand prices of %s",
		c.Provider, c.Region, c.Seed, catalog.Date())
	t.Meta = map[string]string{
		"generator": "momentum-walk 1", "seed": strconv.FormatUint(c.Seed, 10), "walk": fmt.Sprintf("%+v", c.Walk),
	}
	return t, nil
}

func (c *GeneratorConfig) end() policy.Time { return c.From + policy.Time(c.Days)*day }

// typeStep is the grid on which the shared part of a type moves.
const typeStep = policy.Time(6 * time.Hour / time.Millisecond)

// A typeWalk is what all zones of a type share: a direction and a temper, for
// each interval of the grid.
type typeWalk struct {
	from      policy.Time
	direction []float64 // −1 or +1
	temper    []float64 // standard normal
}

// typeMemory is how much of a type's temper is left after one interval.
const typeMemory = 0.9

func (c *GeneratorConfig) newTypeWalk(kind string) *typeWalk {
	n := int((c.end()-c.From)/typeStep) + 1
	w := &typeWalk{from: c.From, direction: make([]float64, n), temper: make([]float64, n)}
	turns := chance.New(c.Seed, "trace type turn", kind)
	ways := chance.New(c.Seed, "trace type direction", kind)
	tempers := chance.New(c.Seed, "trace type temper", kind)
	fresh := math.Sqrt(1 - typeMemory*typeMemory)
	for i := range n {
		z := tempers.At1(uint64(i)).Normal()
		switch {
		case i == 0:
			w.direction[i], w.temper[i] = sign(ways.At1(0)), z
			continue
		case turns.At1(uint64(i)).Float() < c.Walk.TypeTurn:
			w.direction[i] = sign(ways.At1(uint64(i)))
		default:
			w.direction[i] = w.direction[i-1]
		}
		w.temper[i] = float64(typeMemory*w.temper[i-1]) + float64(fresh*z)
	}
	return w
}

func sign(k chance.Key) float64 {
	if k.Float() < 0.5 {
		return -1
	}
	return 1
}

func (w *typeWalk) at(t policy.Time) (direction, temper float64) {
	i := min(int((t-w.from)/typeStep), len(w.direction)-1)
	return w.direction[i], w.temper[i]
}

// A walk is the state of one market.
type walk struct {
	series   Series
	onDemand policy.Money
	pinned   bool

	level     float64 // to which the logarithm of the ratio is pulled
	x         float64 // that logarithm
	direction float64
	size      float64 // of the market's steps, relative to the median

	gaps, quiets, turns, ways, follows, sizes chance.Key
}

func (c *GeneratorConfig) newWalk(kind, zone string, onDemand policy.Money) *walk {
	name := c.Provider + "/" + c.Region + "/" + zone + "/" + kind
	key := func(stream string) chance.Key { return chance.New(c.Seed, "trace "+stream, name) }
	p := &c.Walk
	w := &walk{
		series:   Series{Provider: c.Provider, Region: c.Region, Zone: zone, Type: kind, Product: ProductLinux},
		onDemand: onDemand,
		pinned:   key("pinned").Float() < p.Pinned,
		gaps:     key("gap"), quiets: key("quiet"), turns: key("turn"),
		ways: key("direction"), follows: key("follow"), sizes: key("size"),
	}
	own, shared := key("level").Normal(), chance.New(c.Seed, "trace type level", kind).Normal()
	z := float64(math.Sqrt(p.LevelShared)*shared) + float64(math.Sqrt(1-p.LevelShared)*own)
	spread := p.LevelBelow
	if z > 0 {
		spread = p.LevelAbove
	}
	w.level = portable.Log(p.LevelMedian) + float64(spread*z)
	w.level = max(portable.Log(p.Least), min(w.level, portable.Log(p.Most)))
	if w.pinned {
		w.level = portable.Log(p.PinnedAt)
	}
	w.x = w.level
	w.direction = sign(w.ways.At1(0))
	w.size = portable.Exp(float64(p.StepMarket * key("market size").Normal()))
	return w
}

// run walks from begin to end and returns the prices met.
func (w *walk) run(c *GeneratorConfig, shared *typeWalk) Series {
	w.note(c.From)
	if w.pinned {
		return w.series
	}
	// The walk is met in the middle of a gap.
	at := c.From + hours(float64(w.gap(&c.Walk, 0)*w.gaps.At2(0, 1).Float()))
	for n := uint64(1); at < c.end(); n++ {
		w.step(&c.Walk, n, at, shared)
		w.note(at)
		at += hours(w.gap(&c.Walk, n))
	}
	return w.series
}

// hours returns h as a whole number of seconds, as providers give times.
func hours(h float64) policy.Time { return policy.Time(math.Round(h*3600)) * 1000 }

// gap draws the hours until the change after the n-th.
func (w *walk) gap(p *WalkParams, n uint64) float64 {
	over := float64((p.GapMedian - p.GapLeast) * w.gaps.At1(n).LogNormal(p.GapSpread))
	h := p.GapLeast + over
	if quiet := w.quiets.At1(n); quiet.Float() < p.Quiet {
		h += float64(p.QuietMost * quiet.At1(1).Float())
	}
	return h
}

// step moves the walk by its n-th step, at time at.
func (w *walk) step(p *WalkParams, n uint64, at policy.Time, shared *typeWalk) {
	direction, temper := shared.at(at)
	if w.turns.At1(n).Float() < p.Turn {
		w.direction = sign(w.ways.At1(n))
		if w.follows.At1(n).Float() < p.Follow {
			w.direction = direction
		}
	}
	// Away from its level a walk turns back the sooner the farther it is.
	if away := float64((w.x - w.level) * w.direction); float64(p.Pull*away) > w.turns.At2(n, 1).Float() {
		w.direction = -w.direction
	}
	own := float64(p.StepSpread*p.StepSpread) - float64(p.StepMarket*p.StepMarket) - float64(p.StepShared*p.StepShared)
	z := float64(p.StepShared*temper) + float64(math.Sqrt(max(0, own))*w.sizes.At1(n).Normal())
	step := min(p.StepMost, float64(float64(p.StepMedian*w.size)*portable.Exp(z)))
	next := w.x + float64(w.direction*step)
	if next < portable.Log(p.Least) || next > portable.Log(p.Most) {
		w.direction = -w.direction
		next = w.x + float64(w.direction*step)
	}
	w.x = next
}

// priceStep is the unit of published prices: a hundredth of a cent.
const priceStep = policy.Dollar / 10_000

// note records the price at time at, if it is another.
func (w *walk) note(at policy.Time) {
	price := w.onDemand.Times(portable.Exp(w.x))
	price = max(priceStep, (price+priceStep/2)/priceStep*priceStep)
	s := &w.series
	if n := len(s.At); n > 0 && (s.Spot[n-1] == price || s.At[n-1] == at) {
		return
	}
	s.At = append(s.At, at)
	s.Spot = append(s.Spot, price)
	s.OnDemand = append(s.OnDemand, w.onDemand)
}
