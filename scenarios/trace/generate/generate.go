package generate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A Market is a market for which prices are drawn.
type Market struct {
	Provider, Region, Zone, Type, Product string

	// OnDemand is the on-demand price, to which price ratios refer.
	OnDemand policy.Money
}

// Name returns provider, region, zone and type of m, and the product unless it is Linux.
func (m *Market) Name() string {
	name := m.Provider + "/" + m.Region + "/" + m.Zone + "/" + m.Type
	if m.Product != "" && m.Product != trace.ProductLinux {
		name += "/" + m.Product
	}
	return name
}

// product returns the product of m, by default Linux.
func (m *Market) product() string { return cmp.Or(m.Product, trace.ProductLinux) }

// TypeName returns the name of the type of m in its region, which is the same in all zones.
func (m *Market) TypeName() string { return m.Provider + "/" + m.Region + "/" + m.Type }

// A Config specifies the synthetic prices to draw.
type Config struct {
	// Seed is the seed of all draws.
	Seed uint64

	// From is the start of the trace and To its end.
	From, To policy.Time

	// Markets are the markets to draw. Their order matters: the properties drawn for a market
	// depend on the markets before it.
	Markets []Market

	Law Law
}

// version is incremented whenever equal configurations result in different prices than before.
const version = "2"

const (
	day  = policy.Time(24 * time.Hour / time.Millisecond)
	hour = policy.Time(time.Hour / time.Millisecond)
)

// spanMax is the maximum length of a trace. It prevents a typing error from starting a run of days.
const spanMax = 3660 * day

func (c *Config) validate() error {
	switch {
	case c.From <= 0:
		return wrongValue("From", int64(c.From), "it must be after 1970")
	case c.To <= c.From || c.To-c.From > spanMax:
		return wrongValue("To", c.To, fmt.Sprintf("it must be after From, %v, and at most %d days later", c.From,
			spanMax/day))
	case len(c.Markets) == 0:
		return wrongValue("Markets", 0, "there must be one")
	}
	for i := range c.Markets {
		if m := &c.Markets[i]; m.OnDemand <= 0 {
			return wrongValue("Markets", m.Name(), "its on-demand price must be above 0")
		}
	}
	return c.Law.Validate()
}

// Generate draws a synthetic trace.
func Generate(c Config) (*trace.Trace, error) {
	series, err := Draw(&c)
	if err != nil {
		return nil, fmt.Errorf("generating: %w", err)
	}
	t, err := trace.New("generated", series)
	if err != nil {
		return nil, fmt.Errorf("generating: %w", err)
	}
	head, err := c.head()
	if err != nil {
		return nil, fmt.Errorf("generating: %w", err)
	}
	head.Series, head.Digest = t.Series, t.Digest
	return head, nil
}

// head returns the trace without its series.
func (c *Config) head() (*trace.Trace, error) {
	law, err := json.Marshal(&c.Law)
	if err != nil {
		return nil, err
	}
	onDemand := "on-demand prices of " + catalog.Date(c.Markets[0].Provider)
	if c.Markets[0].Provider == catalog.Rackspace {
		onDemand = "on-demand prices modelled"
	}
	return &trace.Trace{
		Name: "generated", From: c.From, To: c.To, WholeFrom: c.From, WholeTo: c.To, Synthetic: true,
		About: fmt.Sprintf("synthetic prices that imitate %s, seed %d; %s", c.Law.Imitates, c.Seed, onDemand),
		Meta: map[string]string{
			"generator": "spotter trace generate, version " + version,
			"preset":    c.Law.Name,
			"seed":      strconv.FormatUint(c.Seed, 10),
			"law":       string(law),
		},
	}, nil
}

// A path is the price of one market while it is being drawn.
type path struct {
	c      *Config
	market *Market
	keys   keys
	series trace.Series
	draw   drawer

	profile

	// x is the logarithm of the present price ratio.
	x           float64
	least, most float64

	// price is the present price in units of the law.
	price float64
}

// newPath returns the path of market i at its start.
func (c *Config) newPath(i int, drawn profile) *path {
	l, m := &c.Law, &c.Markets[i]
	p := &path{
		c: c, market: m, keys: newKeys(c.Seed, m.Name()), profile: drawn,
		series: trace.Series{Provider: m.Provider, Region: m.Region, Zone: m.Zone, Type: m.Type, Product: m.product()},
		least:  portable.Log(l.Least), most: portable.Log(l.Most),
	}
	p.level = max(p.least, min(p.level, p.most))
	p.x = p.level
	if !p.still {
		p.x += float64(float64(l.Scatter*p.size) * p.keys.begin.Normal())
		p.x = max(p.least, min(p.x, p.most))
	}
	return p
}

// note records the rounded price at a time, if it has changed.
func (p *path) note(at policy.Time) {
	p.price = max(1, min(math.Round(p.exact()), p.dearest()))
	p.push(at)
}

// dearest returns the maximum of a price in units. If the law keeps prices below on-demand,
// rounding must not raise them above it; the on-demand price need not be a multiple of the unit.
func (p *path) dearest() float64 {
	if p.c.Law.Most > 1 {
		return math.Inf(1)
	}
	return float64(p.market.OnDemand / p.c.Law.Unit)
}

// exact returns the unrounded price in units.
func (p *path) exact() float64 {
	return float64(p.market.OnDemand) * portable.Exp(p.x) / float64(p.c.Law.Unit)
}

// follow records the price at a time. It leaves the price unchanged until it is off by a whole
// unit, so that recorded prices of a few units keep their direction instead of flickering between
// two units, as rounded prices would.
func (p *path) follow(at policy.Time) {
	if off := math.Trunc(p.exact() - p.price); off != 0 {
		p.price = max(1, p.price+off)
		p.push(at)
	}
}

// bid records the price at a time, which always differs from the one before: a change of less than
// a unit becomes a change of one unit in its direction. In an auction, only changes are events.
func (p *path) bid(at policy.Time) {
	exact := p.exact()
	switch price := max(1, math.Round(exact)); {
	case price != p.price:
		p.price = price
	case exact < price && price > 1:
		p.price--
	default:
		p.price++
	}
	p.push(at)
}

func (p *path) push(at policy.Time) {
	price := policy.Money(p.price) * p.c.Law.Unit
	s := &p.series
	if n := len(s.At); n > 0 && (s.Spot[n-1] == price || s.At[n-1] == at) {
		return
	}
	s.At = append(s.At, at)
	s.Spot = append(s.Spot, price)
	s.OnDemand = append(s.OnDemand, p.market.OnDemand)
}

// inHours returns h hours, rounded to whole seconds, since providers use whole seconds. It returns
// at least one second.
func inHours(h float64) policy.Time {
	return max(1, policy.Time(math.Round(float64(h*3600)))) * 1000
}
