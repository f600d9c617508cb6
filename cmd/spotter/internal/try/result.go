package try

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/sim"
)

// monthHours is how many hours a month has, as bills of clouds count them.
const monthHours = 730

// A result is what a trial found, as programs read it. Amounts are in $ a month.
type result struct {
	Context string `json:"context,omitempty"`
	Server  string `json:"server"`
	At      string `json:"at"`

	// Prices are recorded or synthetic, and WhySynthetic says why they are the latter.
	Prices       string `json:"prices"`
	WhySynthetic string `json:"why_synthetic,omitempty"`

	Now cost `json:"now"`

	// From and To are the window that is simulated, under Seeds seeds of the weather.
	From  string `json:"from"`
	To    string `json:"to"`
	Seeds int    `json:"seeds"`

	Policies []row `json:"policies"`

	// Assumed and LeftOut are sentences, the most important first.
	Assumed []string `json:"assumed"`
	LeftOut []string `json:"left_out"`

	Next  step     `json:"next"`
	Files []string `json:"files"`

	scenario string
}

// A cost is what the nodes of the cluster cost a month, at the mean prices of the window.
type cost struct {
	Nodes    int     `json:"nodes"`
	Spot     int     `json:"spot_nodes"`
	Month    float64 `json:"usd_month"`
	OnSpot   float64 `json:"spot_usd_month"`
	OnDemand float64 `json:"on_demand_usd_month"`
}

// A row is what one policy comes to: the median over the seeds, with its interval where
// there are enough of them.
type row struct {
	Policy string   `json:"policy"`
	Month  float64  `json:"usd_month"`
	Low    *float64 `json:"usd_month_low,omitempty"`
	High   *float64 `json:"usd_month_high,omitempty"`
	Change float64  `json:"change_pct"` // against as-is
	Share  float64  `json:"spot_share"`
	Worst  worst    `json:"worst_run"`
}

// A worst is the run of a policy with the most outage.
type worst struct {
	Minutes   int64   `json:"outage_minutes"`
	Incidents int64   `json:"incidents"`
	Longest   float64 `json:"longest_s,omitempty"`
	Workload  string  `json:"workload,omitempty"`
	Cause     string  `json:"cause,omitempty"`

	cause sim.OutageCause
}

// costNow adds up the nodes that the scenario begins with.
func costNow(w *scenarios.BoundScenario) (out cost) {
	for _, s := range w.Seeds {
		month := meanPrice(&w.Prices[s.Market], w.Start, w.Start.Add(w.Duration)) * float64(s.Count) * monthHours
		out.Nodes += s.Count
		if w.Markets[s.Market].Capacity == policy.Spot {
			out.Spot += s.Count
			out.OnSpot += month
		} else {
			out.OnDemand += month
		}
	}
	out.Month = out.OnSpot + out.OnDemand
	return out
}

// meanPrice returns the mean over time of a price per hour, where there is one.
func meanPrice(c *scenarios.PriceCurve, from, to policy.Time) float64 {
	sum, priced := 0.0, time.Duration(0)
	for i, at := range c.At {
		end := to
		if i+1 < len(c.At) {
			end = min(end, c.At[i+1])
		}
		if span := end.Sub(max(at, from)); span > 0 && c.Price[i] != policy.NoPrice {
			sum += float64(c.Price[i].Float() * span.Hours())
			priced += span
		}
	}
	if priced == 0 {
		return 0
	}
	return sum / priced.Hours()
}

// sentence says what the nodes cost.
func (c *cost) sentence(prices string) string {
	text := fmt.Sprintf("you pay about %s a month for %s", dollars(c.Month), counted(c.Nodes, "node"))
	switch c.Spot {
	case 0:
		text += ", all on demand"
	case c.Nodes:
		text += ", all Spot"
	default:
		text += fmt.Sprintf(": %s for %d on demand, %s for %d on Spot", dollars(c.OnDemand), c.Nodes-c.Spot, dollars(c.OnSpot), c.Spot)
	}
	if c.Spot > 0 && prices != "recorded" {
		text += " (Spot at " + prices + " prices)"
	}
	return text
}

// newResult sums up what was found, but for what to do next.
func newResult(seen *sight, s *staged, now cost, r *eval.Report, p *poolPlan) *result {
	w := s.bound
	out := &result{
		Context: seen.context, Server: seen.server, At: seen.Snapshot.Now.Std().Format(time.RFC3339), Prices: s.prices(), WhySynthetic: s.why, Now: now,
		From: w.Start.Std().Format(time.RFC3339), To: w.Start.Add(w.Duration).Std().Format(time.RFC3339),
		scenario: s.file,
	}
	perMonth := float64(s.times) * monthHours / w.Duration.Hours()
	g := r.Group(s.file)
	out.Seeds = g.Policies[0].Summary("bill_usd").N
	for i := range g.Policies {
		out.Policies = append(out.Policies, rowOf(r, g, i, perMonth))
	}
	base := out.row(asIs).Month
	for i := range out.Policies {
		if base > 0 {
			out.Policies[i].Change = 100 * (out.Policies[i].Month/base - 1)
		}
	}
	out.Assumed, out.LeftOut = out.assumptions(s), append(append([]string{}, seen.Missing...), s.taken.Left...)
	out.LeftOut = append(out.LeftOut, p.notes...)
	return out
}

func rowOf(r *eval.Report, g *eval.Group, i int, perMonth float64) row {
	p := &g.Policies[i]
	bill := p.Summary("bill_usd")
	out := row{Policy: p.Policy, Month: bill.Median * perMonth, Share: p.Summary("spot_share").Median}
	if iv := bill.MedianInterval; iv != nil {
		low, high := iv.Low*perMonth, iv.High*perMonth
		out.Low, out.High = &low, &high
	}
	first := true
	for _, k := range r.RunsOf(g, i) {
		x := &r.Runs[k]
		if x.Err != nil {
			continue
		}
		o := &x.Result.Outages
		if first || cmp.Or(cmp.Compare(o.OutageMinutes, out.Worst.Minutes), cmp.Compare(o.Incidents, out.Worst.Incidents)) > 0 {
			out.Worst = worst{Minutes: o.OutageMinutes, Incidents: o.Incidents}
			if o.Incidents > 0 {
				l := &o.Longest
				out.Worst.Longest, out.Worst.Workload, out.Worst.Cause, out.Worst.cause = l.Outage.Seconds(), l.Workload, l.Cause.String(), l.Cause
			}
		}
		first = false
	}
	return out
}

// row returns that of a policy.
func (r *result) row(name string) *row {
	for i := range r.Policies {
		if r.Policies[i].Policy == name {
			return &r.Policies[i]
		}
	}
	panic("try: the policy " + name + " was not run")
}

// differs is the change, in percent, from which what a week of as-is costs is not what the
// nodes cost now.
const differs = 5

// assumptions returns what was assumed, what counts most first.
func (r *result) assumptions(s *staged) []string {
	own := s.assumed()
	if change := 100 * (r.row(asIs).Month/r.Now.Month - 1); r.Now.Month > 0 && (change > differs || change < -differs) {
		own = slices.Insert(own, min(2, len(own)), fmt.Sprintf("going on as it is costs %s a month and not %s: pods are placed by what they request, and nodes that these do not need are removed", dollars(r.row(asIs).Month), dollars(r.Now.Month)))
	}
	return append(own, s.taken.Assumed...)
}

// assumed returns what a trial assumes besides a capture, what counts most first.
func (s *staged) assumed() (out []string) {
	if s.times > 1 {
		out = append(out, fmt.Sprintf("the cluster is large: one node in %d is simulated, with its pods, and amounts are times %[1]d; outages are those of this part", s.times))
	}
	if s.why != "" {
		out = append(out, "Spot prices are synthetic, drawn as Spot prices are: "+s.why)
	}
	out = append(out, "only nodes are counted, with the volumes of their EC2NodeClasses, at list prices: no reserved instances, savings plans, claimed volumes or traffic between zones")
	if forbid := s.seen.forbidSpot(); len(forbid) > 0 {
		out = append(out, fmt.Sprintf("NodePool %s allows no Spot: \"as it is\" buys none there; \"Spot allowed\" and Spotter buy it, within its other requirements, limits and budgets", strings.Join(forbid, ", ")))
	}
	if s.length < week-day {
		out = append(out, fmt.Sprintf("what is simulated is %s and not a week: there are no more prices", hours(s.length)))
	}
	if s.seen.taken.Spot > 0 {
		out = append(out, "every policy begins with your Spot nodes, on-demand too, and keeps them until they are taken")
	}
	for _, cloud := range []struct{ provider, name string }{{catalog.GCP, "Google Cloud"}, {catalog.Azure, "Azure"}} {
		if len(s.taken.Regions(cloud.provider)) > 0 {
			out = append(out, fmt.Sprintf("nodes of %s are bought and emptied as Karpenter would: its own autoscaler is not simulated", cloud.name))
		}
	}
	if groups, others := groupsOf(s.seen.Snapshot, s.seen.options.Apart); len(s.taken.Regions(catalog.AWS)) > 0 && (others > 0 || slices.ContainsFunc(groups, func(g *group) bool { return g.made.tag != "" })) {
		out = append(out, "the Cluster Autoscaler serves Auto Scaling groups: with Spot allowed it grows those of Spot first, and replaces no node that runs")
	}
	return append(out, "the number of replicas stays as it is now, and pods need what they request: no metrics are read")
}

// hours writes a length of time in hours or days.
func hours(d time.Duration) string {
	if d < 2*day {
		return counted(int(d.Hours()), "hour")
	}
	return counted(int(d/day), "day")
}
