package draw

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// monday is the start of the week of the fixtures, wednesday the instant at which they are shown.
var (
	monday    = policy.TimeOf(time.Date(2024, 3, 4, 0, 0, 0, 0, time.UTC))
	wednesday = monday.Add(62*time.Hour + 5*time.Minute)
	sunday    = monday.Add(7 * 24 * time.Hour)
)

// fixtureGrid returns a grid of n nodes over two pools and markets markets.
func fixtureGrid(n, markets int) Grid {
	r := rand.New(rand.NewPCG(1, 2))
	g := Grid{Pools: []string{"general", "batch"}, Now: wednesday}
	sizes := []string{"large", "xlarge", "2xlarge", "4xlarge"}
	for i := range markets {
		g.Markets = append(g.Markets, GridMarket{
			Type: []string{"m5", "m6i", "c6i", "r5", "c7g"}[i%5] + "." + sizes[i%4], Zone: "us-east-1" + string(rune('a'+i%6)),
			Spot: i%7 != 3, Price: policy.Dollars(0.02 + 0.013*float64(i%9)),
		})
	}
	for i := range n {
		m := int32(float64(markets) * math.Pow(r.Float64(), 2))
		node := timeline.Node{
			Name: fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", i%7, i/250, i%250), Market: m, Spot: g.Markets[m].Spot,
			Phase: policy.NodeInitialized, CPU: int16(r.IntN(1001)), Memory: int16(r.IntN(800)), GPU: -1, Pods: int16(r.IntN(20)),
			Since: wednesday.Add(-time.Duration(r.IntN(40*60)) * time.Minute),
		}
		if m%3 == 2 {
			node.Pool = 1
		}
		switch x := r.IntN(100); {
		case x < 2:
			node.Phase, node.CPU, node.Memory, node.Pods = policy.NodeLaunching, 0, 0, 0
		case x < 3:
			node.Phase, node.CPU, node.Memory, node.Pods = policy.NodeRegistered, 0, 0, 0
		case x < 6:
			node.Phase = policy.NodeDraining
		case x < 7:
			node.Phase = policy.NodeDeleting
		case x < 9 && node.Spot:
			node.Notice = wednesday.Add(time.Duration(r.IntN(120)) * time.Second)
		case x < 10 && node.Spot:
			node.Recommended = true
		}
		g.Nodes = append(g.Nodes, node)
	}
	return g
}

// fixturePrices returns a chart of the prices of n markets, one with a gap.
func fixturePrices(n, points int) Chart {
	r := rand.New(rand.NewPCG(3, 4))
	ch := Chart{
		From: monday, To: sunday, Now: wednesday, Until: monday.Add(100 * time.Hour), Unit: UnitPrice,
		Levels: []Level{{Name: "m5.large on-demand", Value: 0.096, Ink: OnDemand}},
		Marks:  []Mark{{At: monday.Add(20 * time.Hour), Glyph: '▼', Ink: Bad}, {At: monday.Add(47 * time.Hour), Glyph: '▼', Ink: Bad}},
	}
	for i := range n {
		s := Series{Name: fmt.Sprintf("m5.large us-east-1%c", 'a'+i), Key: rune('A' + i), Ink: SeriesInk(i)}
		v := 0.025 + 0.012*float64(i)
		for p := range points {
			v = max(v+(r.Float64()-0.5)*0.003, 0.012)
			shown := v
			if i == 1 && p > points/3 && p < points*2/5 {
				shown = math.NaN()
			}
			s.At = append(s.At, monday.Add(time.Duration(p)*7*24*time.Hour/time.Duration(points)))
			s.Value = append(s.Value, shown)
		}
		ch.Series = append(ch.Series, s)
	}
	return ch
}

// fixtureHazard returns a small chart of chances.
func fixtureHazard() Chart {
	ch := fixturePrices(3, 168)
	ch.Unit, ch.Levels, ch.Marks, ch.Zero = UnitPercent, nil, nil, true
	for i := range ch.Series {
		for p := range ch.Series[i].Value {
			ch.Series[i].Value[p] *= 3
		}
	}
	return ch
}

// fixtureSavings returns cumulative savings of three policies, one of them below
// 0.
func fixtureSavings() Chart {
	ch := Chart{
		From: monday, To: sunday, Now: wednesday, Until: monday.Add(100 * time.Hour), Unit: UnitDollars, Zero: true,
		Levels: []Level{{Name: "on-demand", Value: 0, Ink: OnDemand}, {Name: "oracle at the end", Value: 1840, Ink: Good, End: true}},
		Marks:  []Mark{{At: monday.Add(31 * time.Hour), Glyph: 'x', Ink: Bad}},
	}
	for i, name := range []string{"portfolio", "spotvortex", "spot"} {
		s := Series{Name: name, Key: rune('A' + i), Ink: SeriesInk(i), Straight: true}
		for h := range 169 {
			v := float64(h) * []float64{10, 7.5, 9}[i]
			if i == 2 && h > 30 {
				v -= 700
			}
			s.At, s.Value = append(s.At, monday.Add(time.Duration(h)*time.Hour)), append(s.Value, v)
		}
		ch.Series = append(ch.Series, s)
	}
	return ch
}

func fixtureWorkloads() Table {
	t := Table{Selected: 1, Columns: []Column{
		{Title: "Workload", Middle: true, Min: 10, Max: 44}, {Title: "Kind", Rank: 4}, {Title: "Ready of desired"},
		{Title: "Required", Right: true, Rank: 3}, {Title: "On Spot", Right: true, Rank: 1}, {Title: "State", Rank: 2},
	}}
	row := func(name, kind string, ready, required, desired int, spot, state string) {
		t.Rows = append(t.Rows, []Field{{Text: name}, {Text: kind, Ink: Muted}, {Text: fmt.Sprintf("%d/%d", ready, desired),
			Bar: &Meter{float64(ready), float64(required), float64(desired), Warn}}, {Text: fmt.Sprint(required)}, {Text: spot},
			{Text: state, Bold: true}})
	}
	row("shop/checkout", "Deployment", 12, 9, 12, "67%", "ok")
	row("shop/search-indexer-with-a-long-name", "Deployment", 5, 6, 8, "100%", "OUTAGE")
	row("data/kafka", "StatefulSet", 3, 2, 3, "0%", "ok")
	row("web/frontend", "Deployment", 117, 90, 120, "94%", "short 3")
	row("night/report", "Job", 0, 0, 0, figures.Unknown, "idle")
	return t
}

func fixtureMarkets(selected int) Table {
	t := Table{Selected: selected, Columns: []Column{
		{Title: ""}, {Title: "Market", Middle: true, Min: 12, Max: 24}, {Title: "Zone", Middle: true, Min: 5, Max: 18},
		{Title: "$/h", Right: true}, {Title: "of on-demand", Right: true, Rank: 2}, {Title: "Nodes", Right: true, Rank: 1},
	}}
	for i := range 14 {
		t.Rows = append(t.Rows, []Field{{Text: string(rune('A' + i)), Ink: SeriesInk(i), Bold: true},
			{Text: fmt.Sprintf("m5.%dxlarge", 1<<(i%4))}, {Text: "us-east-1" + string(rune('a'+i%5))},
			{Text: Price(policy.Dollars(0.031 * float64(i+1)))}, {Text: "32%"}, {Text: fmt.Sprint((20 - i) % 13)}})
	}
	return t
}

// fixtureLog returns decisions of a few steps around wednesday.
func fixtureLog() Log {
	var at []policy.Time
	var entries []timeline.Entry
	add := func(t policy.Time, e timeline.Entry) { at, entries = append(at, t), append(entries, e) }
	for h := -3; h < 3; h++ {
		t := wednesday.Add(time.Duration(h)*time.Hour - 5*time.Minute)
		add(t, timeline.Entry{Verb: timeline.Steer, Subject: "general", Pool: "general", Detail: "share 0.80 of 12 markets", Why: policy.Why{
			Reason: "cheaper", Text: "expected cost falls by more than a move costs", Before: policy.Dollars(14.2), After: policy.Dollars(13.05), RunnerUp: "share 0.70",
		}})
		for i := range 3 + h {
			add(t, timeline.Entry{Verb: timeline.Drain, Subject: fmt.Sprintf("ip-10-0-3-%d.ec2.internal", 17+i), Pool: "general", Why: policy.Why{
				Reason: "cheaper", Text: "m6i.large us-east-1b costs a third of it", Before: policy.Dollars(0.096), After: policy.Dollars(0.031), RunnerUp: "m5.large us-east-1a $0.0330/h",
			}})
		}
		if h == 0 {
			add(t, timeline.Entry{Verb: timeline.Launch, Market: "aws/us-east-1/us-east-1a/c6i.2xlarge/spot", Pool: "batch", Why: policy.Why{
				Reason: "shortage", Text: "4 pods have no room", After: policy.Dollars(0.124),
			}})
			add(t, timeline.Entry{Verb: timeline.Hold, Subject: "ip-10-0-9-4.ec2.internal", Pool: "general",
				Why: policy.Why{Reason: "pdb", Text: "the PDB of shop/checkout allows no disruption now",
					Before: policy.Dollars(0.096), After: policy.Dollars(0.031)}})
		}
	}
	return Log{Entries: Group(at, entries), Now: wednesday, Selected: 5, Empty: "no decisions yet"}
}

func fixturePanel() Panel {
	return Panel{Sections: []Section{
		{"Node", []Item{
			{Key: "name", Value: "ip-10-0-3-17.ec2.internal"}, {Key: "market", Value: "m5.large us-east-1a, spot", Ink: Spot},
			{Key: "price", Value: "$0.0312/h, 33% of on-demand"}, {Key: "cpu", Value: "83%", Bar: &Meter{Value: 83, Whole: 100, Ink: Good}},
			{Key: "memory", Value: "41%", Bar: &Meter{Value: 41, Whole: 100, Ink: Good}},
		}},
		{"Why it is there", []Item{
			{Value: "Launched Tue 09:10 because 4 pods had no room: the cheapest of 12 open markets after the cost of a reclaim ($0.0061/h) and of concentration ($0.0009/h) were added."},
			{Key: "runner-up", Value: "m6i.large us-east-1b $0.0330/h"},
		}},
		{"History", []Item{
			{Key: "Tue 09:10", Value: "launched"}, {Key: "Tue 09:12", Value: "joined"}, {Key: "Wed 14:03", Value: "notice: taken in 2m", Ink: Bad},
		}},
	}}
}

func fixtureScrub() Scrub {
	return Scrub{
		WarmUp: monday.Add(-24 * time.Hour), From: monday, To: sunday, Now: wednesday, Until: monday.Add(100 * time.Hour),
		Marks: []Mark{
			{At: monday.Add(20 * time.Hour), Glyph: '▼', Ink: Bad}, {At: monday.Add(47 * time.Hour), Glyph: '▼', Ink: Bad},
			{At: monday.Add(63 * time.Hour), Glyph: '·', Ink: Accent}, {At: monday.Add(150 * time.Hour), Glyph: '▼', Ink: Bad},
		},
		Outages: [][2]policy.Time{{monday.Add(47 * time.Hour), monday.Add(50 * time.Hour)}},
	}
}

// A screenful draws all widgets as a whole screen would.
type screenful struct{ nodes int }

func (s screenful) Draw(c Canvas) {
	header, rest := c.Cut(1)
	Bar{
		Left:  []Part{Strong("spotter", Accent), Say("  web-week  ", Title), Strong("portfolio", Series0)},
		More:  []Part{Strong("  Wed 6 14:05", Title), Say("  ▸ 1 h/s", Muted)},
		Right: []Part{Strong("synthetic trace", Warn), Say("  saves ", Muted), Strong("$612.40 (43%)", Good)},
	}.Draw(header)
	rest, scrub := rest.Cut(rest.Height() - 3)
	fixtureScrub().Draw(scrub.Sub(1, 0, scrub.Width()-2, 3))
	upper, lower := rest.Cut(rest.Height() * 3 / 5)
	left, right := upper.Split(upper.Width() * 3 / 5)
	g := fixtureGrid(s.nodes, 40)
	g.Selected = g.Nodes[min(7, len(g.Nodes)-1)].Name
	g.Draw(Box{Key: '1', Title: "Nodes", Right: figures.Integer(s.nodes), Focused: true}.Frame(left))
	prices, savings := right.Cut(right.Height() / 2)
	fixturePrices(4, 500).Draw(Box{Key: '2', Title: "Prices $/h"}.Frame(prices))
	fixtureSavings().Draw(Box{Key: '3', Title: "Net savings $", Right: "against on-demand"}.Frame(savings))
	left, right = lower.Split(lower.Width() / 2)
	fixtureLog().Draw(Box{Key: '5', Title: "Decisions"}.Frame(left))
	workloads, markets := right.Cut(right.Height() / 2)
	fixtureWorkloads().Draw(Box{Key: '4', Title: "Workloads"}.Frame(workloads))
	fixtureMarkets(0).Draw(Box{Key: '6', Title: "Markets"}.Frame(markets))
}
