package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/pictures"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

const (
	// plotPoints is the number of instants of a run that are read for a picture.
	plotPoints = 600

	// marketsDrawn is the maximum number of markets in a picture of prices.
	marketsDrawn = 5

	// leastWidth is the minimum width of an event in a picture, as a share of the picture's width.
	leastWidth = 1.0 / 260
)

// plotPictures are the pictures by name. Those with each are drawn for each run.
var plotPictures = []struct {
	name string
	all  func(*plotted) (chart.Picture, error)
	each func(*plotted, *seen) chart.Picture
}{
	{name: "prices", all: (*plotted).prices},
	{name: "fleet", each: (*plotted).fleet},
	{name: "savings", all: (*plotted).savings},
	{name: "reclaims", each: (*plotted).reclaims},
	{name: "workloads", each: (*plotted).workloads},
}

func plotNames() []string {
	names := make([]string, len(plotPictures))
	for i := range names {
		names[i] = plotPictures[i].name
	}
	return names
}

// A seen is the state of one run at evenly spaced instants.
type seen struct {
	run *timeline.Timeline
	at  []policy.Time

	// By instant: the numbers of Spot and on-demand nodes, the on-demand price of all nodes per
	// hour, and costs.
	spot, onDemand []float64
	hourly         []policy.Money
	costs          []timeline.Costs

	// markets is the number of nodes by market and instant. missing reports, by workload and
	// instant, whether fewer pods were ready than desired.
	markets [][]int32
	missing [][]bool

	// where maps the name of a node to the index of its market.
	where map[string]int32
}

// look reads the states of a run, once.
func (d *plotted) look(t *timeline.Timeline) *seen {
	if s := d.views[t]; s != nil {
		return s
	}
	s := &seen{run: t, where: map[string]int32{}, markets: make([][]int32, len(t.Markets())),
		missing: make([][]bool, len(t.Workloads()))}
	for m := range s.markets {
		s.markets[m] = make([]int32, plotPoints)
	}
	var f timeline.Frame
	for i := range plotPoints {
		at := d.from + (d.to-d.from)*policy.Time(i)/(plotPoints-1)
		t.At(at, &f)
		spot, onDemand, hourly := 0.0, 0.0, policy.Money(0)
		for k := range f.Nodes {
			n := &f.Nodes[k]
			if n.Market >= 0 {
				s.markets[n.Market][i]++
				s.where[n.Name] = n.Market
				hourly += t.Markets()[n.Market].OnDemand
			}
			switch {
			case n.Phase < policy.NodeInitialized:
			case n.Spot:
				spot++
			default:
				onDemand++
			}
		}
		for w := range f.Workloads {
			s.missing[w] = append(s.missing[w], f.Workloads[w].Ready < f.Workloads[w].Desired)
		}
		s.at, s.costs, s.hourly = append(s.at, at), append(s.costs, f.Costs), append(s.hourly, hourly)
		s.spot, s.onDemand = append(s.spot, spot), append(s.onDemand, onDemand)
	}
	d.views[t] = s
	return s
}

// pictures draws the requested pictures.
func (d *plotted) pictures(what []string) ([]pictures.Named, error) {
	var all []pictures.Named
	for _, k := range plotPictures {
		if !slices.Contains(what, k.name) {
			continue
		}
		if k.all != nil {
			picture, err := k.all(d)
			if err != nil {
				return nil, err
			}
			all = append(all, pictures.Named{Name: k.name, Picture: picture})
			continue
		}
		for i := range d.runs {
			name := k.name
			if len(d.runs) > 1 {
				name += "-" + fileName(d.runs[i].About().Policy)
			}
			all = append(all, pictures.Named{Name: name, Picture: k.each(d, d.look(d.runs[i]))})
		}
	}
	return all, nil
}

// fileName converts a policy with parameters to a valid file name.
func fileName(spec string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.=", r) {
			return r
		}
		return '-'
	}, spec)
}

// framed returns the frame of a picture of the run t, or of all runs if t is nil.
func (d *plotted) framed(title string, t *timeline.Timeline) chart.Frame {
	f := d.frame
	f.Title, f.Note = title, d.source
	f.X = chart.Axis{Time: true, From: pictures.Seconds(d.from), To: pictures.Seconds(d.to)}
	if t != nil && !t.About().Recorded {
		f.Title += " — " + t.About().Policy
	}
	return f
}

// used returns the Spot markets in which runs had nodes, in descending order of node-time. If there
// are no such markets, it returns the Spot markets of the types that the runs had on demand, and
// none is true.
func (d *plotted) used() (markets []int, none bool) {
	held := make([]int64, len(d.runs[0].Markets()))
	for _, t := range d.runs {
		s := d.look(t)
		for m := range s.markets {
			for _, n := range s.markets[m] {
				held[m] += int64(n)
			}
		}
	}
	info := d.runs[0].Markets()
	for m := range held {
		if info[m].Spot && held[m] > 0 {
			markets = append(markets, m)
		}
	}
	if none = len(markets) == 0; none {
		for m := range held {
			if c := info[m].Counterpart; info[m].Spot && c >= 0 && held[c] > 0 {
				markets = append(markets, m)
			}
		}
	}
	slices.SortStableFunc(markets, func(a, b int) int { return cmp.Compare(held[b], held[a]) })
	return markets, none
}

// prices draws the prices of the most used markets as shares of the on-demand price, which are
// comparable between instance sizes.
func (d *plotted) prices() (chart.Picture, error) {
	markets, none := d.used()
	if len(markets) == 0 {
		return nil, cli.Invalid(fmt.Errorf("--what: no Spot market has a price to draw"), "leave prices out of --what")
	}
	t := d.runs[0]
	shown := markets[:min(marketsDrawn, len(markets))]
	title := fmt.Sprintf("Prices of the %d Spot markets most used, of %d", len(shown), len(markets))
	switch {
	case none:
		title = fmt.Sprintf("No spot was used; prices of %d of %d markets with the types held", len(shown), len(markets))
	case len(shown) == len(markets):
		title = "Prices of the Spot markets used"
	}
	pic := &chart.Lines{Frame: d.framed(title, nil)}
	pic.Y = chart.Axis{Label: "share of the on-demand price", Percent: true}
	top := 1.05
	for _, m := range shown {
		info := &t.Markets()[m]
		line := chart.Line{Name: info.Zone + " " + info.Type, Step: true}
		at, prices := t.Prices(m, d.from, d.to, 2000)
		for i := range at {
			y := math.NaN()
			if prices[i] != policy.NoPrice && info.OnDemand > 0 {
				y = prices[i].Float() / info.OnDemand.Float()
				top = max(top, 1.05*y)
			}
			line.X, line.Y = append(line.X, pictures.Seconds(at[i])), append(line.Y, y)
		}
		if len(at) > 0 {
			line.X, line.Y = append(line.X, pictures.Seconds(d.to)), append(line.Y, line.Y[len(line.Y)-1])
		}
		pic.Series = append(pic.Series, line)
	}
	pic.Y.From, pic.Y.To = 0, top
	pic.Series = append(pic.Series, chart.Line{Name: "on demand", Dashed: true,
		X: []float64{pictures.Seconds(d.from), pictures.Seconds(d.to)}, Y: []float64{1, 1}})
	return pic, nil
}

// fleet draws the number of nodes.
func (d *plotted) fleet(s *seen) chart.Picture {
	pic := &chart.Lines{Frame: d.framed("Nodes", s.run)}
	pic.Y = chart.Axis{Label: "initialized nodes"}
	x, all, most := make([]float64, len(s.at)), make([]float64, len(s.at)), 1.0
	for i := range s.at {
		x[i], all[i] = pictures.Seconds(s.at[i]), s.spot[i]+s.onDemand[i]
		most = max(most, all[i])
	}
	pic.Y.From, pic.Y.To = 0, 1.05*most
	pic.Series = []chart.Line{
		{Name: "spot", X: x, Y: s.spot, Step: true}, {Name: "on demand", X: x, Y: s.onDemand, Step: true},
		{Name: "all", X: x, Y: all, Step: true, Dashed: true},
	}
	return pic
}

// savings draws the cumulative savings.
func (d *plotted) savings() (chart.Picture, error) {
	pic := &chart.Lines{Frame: d.framed("Saved so far against on-demand, outages deducted", nil)}
	pic.Y = chart.Axis{Label: "$"}
	if d.onDemand == nil {
		pic.Title = "Saved so far against the same nodes at on-demand prices"
	}
	for _, t := range d.runs {
		s := d.look(t)
		line := chart.Line{Name: t.About().Policy}
		base, bill := d.baseline(s)
		for i := range s.at {
			line.X = append(line.X, pictures.Seconds(s.at[i]))
			line.Y = append(line.Y, (base[i] - s.costs[i].Bill - s.costs[i].OutageCost).Float())
		}
		if bill > 0 {
			saved := line.Y[len(line.Y)-1]
			line.Name += fmt.Sprintf(": %s, %s", figures.Dollars(saved), figures.Share(saved/bill.Float(), 1))
		}
		pic.Series = append(pic.Series, line)
	}
	if len(pic.Series) == 1 {
		pic.Title += " — " + pic.Series[0].Name // a single line has no legend
	}
	return pic, nil
}

// baseline returns the cost that s is compared with, by instant, and its bill at the last instant,
// relative to which savings are shown.
func (d *plotted) baseline(s *seen) (base []policy.Money, bill policy.Money) {
	base = make([]policy.Money, len(s.at))
	if d.onDemand != nil {
		o := d.look(d.onDemand)
		for i := range base {
			base[i] = o.costs[i].Bill + o.costs[i].OutageCost
		}
		return base, o.costs[len(o.costs)-1].Bill
	}
	// A recording contains only its own nodes. The baseline is their on-demand price per hour for
	// the time in which they were observed. Costs before the drawn interval are excluded on both
	// sides.
	base[0] = s.costs[0].Bill
	for i := 1; i < len(base); i++ {
		base[i] = base[i-1] + (s.hourly[i-1]+s.hourly[i])/2*policy.Money(s.at[i]-s.at[i-1])/3_600_000
	}
	return base, base[len(base)-1]
}
