package try

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/sim"
)

// A result is the result of a trial in machine-readable form. Amounts are in dollars per month.
type result struct {
	Context string `json:"context,omitempty"`
	Server  string `json:"server,omitempty"`

	// Manifests describes what was tried instead of a cluster.
	Manifests string `json:"manifests,omitempty"`

	At string `json:"at"`

	// Prices is recorded or synthetic, and WhySynthetic is the reason for the latter.
	Prices       string `json:"prices"`
	WhySynthetic string `json:"why_synthetic,omitempty"`

	// Now is the first row: today's cost, which does not depend on a policy.
	Now cost `json:"now"`

	// From and To are the simulated window, and Seeds is the number of weather seeds.
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

// A cost is the monthly cost of the cluster's nodes: the sum of their current prices.
type cost struct {
	// Of names the first row: today's bill, or its substitute if no nodes are known.
	Of string `json:"of"`

	Nodes    int     `json:"nodes"`
	Spot     int     `json:"spot_nodes"`
	Share    float64 `json:"spot_share"` // share of vCPUs, in [0, 1]
	Month    float64 `json:"usd_month"`
	OnSpot   float64 `json:"spot_usd_month"`
	OnDemand float64 `json:"on_demand_usd_month"`
}

// Answers are the types of the JSON of the command: for one cluster, and for several.
func Answers() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[result](), reflect.TypeFor[fleet]()}
}

// The names of the first row.
const (
	paidToday = "today's bill"
	packed    = "the on-demand packing"
)

// today returns c in the form of the report, for a cluster times times as large as the simulated
// part.
func (c *cost) today(times int) *eval.Today {
	return &eval.Today{Name: c.Of, Nodes: c.Nodes, SpotShare: c.Share, Month: c.Month, Times: times}
}

// A row is the result of one policy: the median over the seeds, with its interval if there are
// enough of them.
type row struct {
	Policy string   `json:"policy"`
	Title  string   `json:"title"`
	Month  float64  `json:"usd_month"`
	Low    *float64 `json:"usd_month_low,omitempty"`
	High   *float64 `json:"usd_month_high,omitempty"`
	Change float64  `json:"change_pct"` // relative to now
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

// costNow adds up the cost of the nodes with which the scenario starts, at the last prices of the
// window.
func costNow(w *scenarios.BoundScenario) cost {
	out := cost{Of: paidToday}
	var vcpus, spot int64
	for _, s := range w.Seeds {
		m := &w.Markets[s.Market]
		fees := w.Pools[s.Pool].Fees.Total().Float() // bills include them
		month := (lastPrice(&w.Prices[s.Market]) + fees) * float64(s.Count) * eval.MonthHours
		size := int64(s.Count) * w.Types[m.Type].VCPU
		out.Nodes, vcpus = out.Nodes+s.Count, vcpus+size
		if m.Capacity == policy.Spot {
			out.Spot, spot = out.Spot+s.Count, spot+size
			out.OnSpot += month
		} else {
			out.OnDemand += month
		}
	}
	out.Month, out.Share = out.OnSpot+out.OnDemand, float64(spot)/float64(max(vcpus, 1))
	return out
}

// lastPrice returns the last known price of a market in dollars per hour, or 0 if there is no
// price.
func lastPrice(c *scenarios.PriceCurve) float64 {
	for _, price := range slices.Backward(c.Price) {
		if price != policy.NoPrice {
			return price.Float()
		}
	}
	return 0
}

// sentence describes the cost of the nodes.
func (c *cost) sentence(prices string) string {
	if c.Of != paidToday {
		return fmt.Sprintf("%s costs about %s a month", c.Of, figures.Dollars(c.Month))
	}
	text := fmt.Sprintf("you pay about %s a month for %s", figures.Dollars(c.Month), figures.Count(c.Nodes, "node"))
	switch c.Spot {
	case 0:
		text += ", all on demand"
	case c.Nodes:
		text += ", all Spot"
	default:
		text += fmt.Sprintf(": %s for %d on demand, %s for %d on Spot", figures.Dollars(c.OnDemand), c.Nodes-c.Spot,
			figures.Dollars(c.OnSpot), c.Spot)
	}
	if c.Spot > 0 && prices != "recorded" {
		text += " (Spot at " + prices + " prices)"
	}
	return text
}

// newResult returns the result of a trial, without the next step and the files.
func newResult(seen *sight, s *staged, now cost, r *eval.Report, p *poolPlan) *result {
	w := s.bound
	out := &result{
		Context: seen.context, Server: seen.server, Manifests: seen.manifests, At: seen.Snapshot.Now.Std().Format(time.RFC3339), Prices: s.prices(), WhySynthetic: s.why, Now: now,
		From: w.Start.Std().Format(time.RFC3339), To: w.Start.Add(w.Duration).Std().Format(time.RFC3339),
		scenario: s.file,
	}
	perMonth := r.Config.Today.PerMonth(w.Duration)
	g := r.Group(s.file)
	out.Seeds = g.Policies[0].Summary("bill_usd").N
	for i := range g.Policies {
		x := rowOf(r, g, i, perMonth)
		x.Title, x.Change = seen.title(x.Policy), -r.Config.Today.Saved(x.Month)
		out.Policies = append(out.Policies, x)
	}
	out.Assumed, out.LeftOut = out.assumptions(s), append(append([]string{}, seen.Missing...), s.taken.Left...)
	out.LeftOut = append(append(out.LeftOut, unschedulable(r)...), p.notes...)
	return out
}

// unschedulable lists the pods that fit no node that can be bought, which is the same in every run.
func unschedulable(r *eval.Report) []string {
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Err == nil {
			return x.Result.Unschedulable
		}
	}
	return nil
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
		if first || cmp.Or(cmp.Compare(o.OutageMinutes, out.Worst.Minutes),
			cmp.Compare(o.Incidents, out.Worst.Incidents)) > 0 {
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

// row returns the row of a policy. It panics if the policy was not run.
func (r *result) row(name string) *row {
	for i := range r.Policies {
		if r.Policies[i].Policy == name {
			return &r.Policies[i]
		}
	}
	panic("try: the policy " + name + " was not run")
}

// differs is the change in percent above which the cost of the cluster's own pools in the
// simulation is considered different from today's cost.
const differs = 5

// assumptions returns the assumptions of a result, the most important first.
func (r *result) assumptions(s *staged) []string {
	said := s.assumed()
	if own := r.row(asIs); r.Now.Of == paidToday && (own.Change > differs || own.Change < -differs) {
		text := fmt.Sprintf("consolidation by the pools themselves changes the bill by %s: pods are placed by what they request, and nodes that these do not need are removed", figures.PercentChange(own.Change, 1))
		said = slices.Insert(said, min(2, len(said)), text)
	}
	if plain, ours := r.row(karpenter), r.row(portfolio); plain.Share > 0 && plain.Change-ours.Change >= gain {
		said = append(said,
			"Karpenter replaces no Spot node by a cheaper Spot node, which is its default (SpotToSpotConsolidation is off); Spotter does")
	}
	return append(said, s.taken.Assumed...)
}

// assumed returns the assumptions of a trial in addition to those of a capture, the most important
// first.
func (s *staged) assumed() (out []string) {
	if s.times > 1 {
		out = append(out,
			fmt.Sprintf("the cluster is large: one node in %d is simulated, with its pods, and amounts are times %[1]d; outages are those of this part", s.times))
	}
	if s.why != "" {
		out = append(out, "Spot prices are synthetic, drawn as Spot prices are: "+s.why)
	}
	out = append(out,
		"only nodes are counted, with the volumes of their EC2NodeClasses, at list prices: no reserved instances, savings plans, claimed volumes or traffic between zones")
	if forbid := s.seen.forbidSpot(); len(forbid) > 0 {
		out = append(out,
			fmt.Sprintf("NodePool %s allows no Spot: as-is buys none there; \"Spot allowed\" and Spotter buy it, within its other requirements, limits and budgets", strings.Join(forbid, ", ")))
	}
	if s.length < week-day {
		out = append(out, fmt.Sprintf("what is simulated is %s and not a week: there are no more prices",
			figures.Duration(s.length)))
	}
	if s.seen.taken.Spot > 0 {
		out = append(out, "every policy starts with your nodes; on demand only has all of them on demand")
	}
	for _, cloud := range []struct{ provider, name string }{{catalog.GCP, "Google Cloud"}, {catalog.Azure, "Azure"}} {
		if len(s.taken.Regions(cloud.provider)) > 0 {
			out = append(out,
				fmt.Sprintf("nodes of %s are bought and emptied as Karpenter would: its own autoscaler is not simulated",
					cloud.name))
		}
	}
	if groups, others := groupsOf(s.seen.Snapshot, s.seen.options.Apart); len(s.taken.Regions(catalog.AWS)) > 0 &&
		(others > 0 || slices.ContainsFunc(groups, func(g *group) bool { return g.made.tag != "" })) {
		out = append(out,
			"the Cluster Autoscaler serves Auto Scaling groups: with Spot allowed it grows those of Spot first, and replaces no node that runs")
	}
	return append(out, "the number of replicas stays as it is now, and pods need what they request: no metrics are read")
}
