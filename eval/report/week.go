package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

const (
	// weeksBytes is the approximate maximum size of the runs that can be opened, in bytes.
	weeksBytes = 300_000

	// rowBytes is the approximate size of a row of the table of runs, in bytes.
	rowBytes = 420

	// weekIntervals is the maximum number of intervals in the chart of a run: two hours each for a
	// week.
	weekIntervals = 84
)

// A week is the course of one run, which the script of the page draws. Times are relative to the
// start of the window.
type week struct {
	Title   string `json:"title"`
	Facts   string `json:"facts"`
	Command string `json:"command"`

	// From is the start of the window in seconds since 1970, Step the distance between points in
	// seconds.
	From int64 `json:"from"`
	Step int64 `json:"step"`

	// Saved contains the savings in dollars up to each point, relative to on-demand or, if set, to
	// Against.
	Saved   []json.Number `json:"saved"`
	Against string        `json:"against,omitempty"`

	// Held contains point, market and number of nodes for each change of that number.
	Held [][3]int64 `json:"held"`

	// Taken contains minute, market and number of nodes of reclaims. Out contains first minute,
	// last minute and outage minutes of samples with an outage.
	Taken [][3]int64 `json:"taken"`
	Out   [][3]int64 `json:"out"`
}

// A weekList contains the runs of a page that can be opened.
type weekList struct {
	r *eval.Report

	All     []week   `json:"weeks"`
	Markets []string `json:"markets"`

	at      map[int]int // number of a run in All, from 1, by its index in r.Runs
	markets map[string]int
	bytes   int
}

// newWeeks selects the runs that can be opened, up to the size limit: first the worst run of each
// policy in each scenario, then all others by seed.
func newWeeks(r *eval.Report) (*weekList, error) {
	l := &weekList{r: r, at: map[int]int{}, markets: map[string]int{}}
	for i := range r.Groups {
		for p := range r.Groups[i].Policies {
			if err := l.add(r.Groups[i].Policies[p].Worst); err != nil {
				return nil, err
			}
		}
	}
	policies, seeds := len(r.Config.Policies), len(r.Config.Seeds)
	for s := range seeds {
		for k := range r.Config.Cases {
			for p := range policies {
				if err := l.add((k*seeds+s)*policies + p); err != nil {
					return nil, err
				}
			}
		}
	}
	return l, nil
}

// add adds run i, unless it was added before, has no samples, or the size limit is reached.
func (l *weekList) add(i int) error {
	if i < 0 || l.bytes > weeksBytes || l.r.Runs[i].Err != nil || l.of(i) > 0 {
		return nil //nolint:nilerr // a run that failed has no course
	}
	od := l.onDemand(i)
	if len(l.r.Runs[i].Result.Samples) == 0 || od == nil {
		return nil
	}
	w := l.week(i, od)
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	l.bytes += len(text) + rowBytes
	l.All = append(l.All, w)
	l.at[i] = len(l.All)
	return nil
}

// of returns the number of run i among the runs that can be opened, from 1, or 0 if it cannot be
// opened.
func (l *weekList) of(i int) int { return l.at[i] }

// onDemand returns the on-demand result in the weather of run i, nil if it is missing.
func (l *weekList) onDemand(i int) *sim.Result {
	n := len(l.r.Config.Policies)
	x := &l.r.Runs[i-i%n+slices.Index(l.r.Config.Policies, eval.OnDemand)]
	if x.Err != nil || len(x.Result.Samples) != len(l.r.Runs[i].Result.Samples) {
		return nil
	}
	return x.Result
}

func (l *weekList) week(i int, od *sim.Result) week {
	run := &l.r.Runs[i]
	samples, from := run.Result.Samples, run.Result.Window.From
	stride := max(1, (len(samples)-1+weekIntervals-1)/weekIntervals)
	w := week{
		Title: fmt.Sprintf("%s in %s, seed %d", run.Policy, run.Scenario, run.Seed), Facts: weekFacts(&l.r.Config,
			run), Command: l.r.Command(i),
		From: from.Std().Unix(), Held: [][3]int64{}, Taken: [][3]int64{}, Out: [][3]int64{},
	}
	if len(samples) > 1 {
		w.Step = int64(samples[1].At-samples[0].At) / 1000 * int64(stride)
	}
	for k := 0; k < len(samples); k += stride {
		s, o := &samples[k], &od.Samples[k]
		saved := (o.Bill + o.OutageCost - s.Bill - s.OutageCost).Float()
		if t := l.r.Config.Today; t != nil {
			w.Against = t.Name
			saved = t.Month/t.PerMonth(s.At.Sub(from)) - s.Bill.Float()
		}
		w.Saved = append(w.Saved, json.Number(strconv.FormatFloat(math.Round(saved*100)/100, 'f', -1, 64)))
	}
	w.Held = l.held(run, len(w.Saved), stride)
	for _, t := range run.Result.Taken {
		minute, m := int64(t.At-from)/60_000, l.market(run, t.Market)
		if n := len(w.Taken); n > 0 && w.Taken[n-1][0] == minute && w.Taken[n-1][1] == m {
			w.Taken[n-1][2]++
		} else {
			w.Taken = append(w.Taken, [3]int64{minute, m, 1})
		}
	}
	for k := 1; k < len(samples); k++ {
		if more := samples[k].OutageMinutes - samples[k-1].OutageMinutes; more > 0 {
			w.Out = append(w.Out, [3]int64{int64(samples[k-1].At-from) / 60_000, int64(samples[k].At-from) / 60_000, more})
		}
	}
	return w
}

// held returns the changes of the number of nodes in each market. Each of the points represents
// stride samples.
func (l *weekList) held(run *eval.RunRow, points, stride int) [][3]int64 {
	out, all := [][3]int64{}, run.Result.Held
	now, before := make([]int64, len(run.Bound.Markets)), make([]int64, len(run.Bound.Markets))
	for k := range points {
		at := run.Result.Samples[k*stride].At
		for ; len(all) > 0 && all[0].At <= at; all = all[1:] {
			now[all[0].Market] = all[0].Nodes
		}
		for m, n := range now {
			if n != before[m] {
				out = append(out, [3]int64{int64(k), l.market(run, policy.MarketID(m)), n})
				before[m] = n
			}
		}
	}
	return out
}

// market returns the number of the name of a market.
func (l *weekList) market(run *eval.RunRow, id policy.MarketID) int64 {
	name := marketName(run.Bound, id)
	if int(id) < len(run.Bound.Markets) && run.Bound.Markets[id].Capacity == policy.OnDemand {
		name += " on demand"
	}
	at, ok := l.markets[name]
	if !ok {
		at = len(l.Markets)
		l.markets[name] = at
		l.Markets = append(l.Markets, name)
	}
	return int64(at)
}

// weekFacts describes the result of a run.
func weekFacts(c *eval.Config, run *eval.RunRow) string {
	text := "From " + format.Instant(run.Bound.Start)
	if usd, v := c.Saved(run); v.Known && usd.Known {
		_, of := c.Savings()
		text += fmt.Sprintf(": saves %s, %s of %s", figures.Dollars(usd.V), percent(v.V), of)
	}
	return fmt.Sprintf("%s; %s; %s.", text, figures.Count(int(run.Result.OutageMinutes), "outage minute")+spotWords(run),
		figures.Count(int(run.Result.Reclaims), "reclaim"))
}

// spotWords returns spotPart in parentheses.
func spotWords(run *eval.RunRow) string {
	if spot := spotPart(run); spot != "" {
		return " (" + spot + ")"
	}
	return ""
}

// runTable returns the table of the runs of g that can be opened, nil if there are no such runs.
func runTable(r *eval.Report, g *eval.Group, l *weekList) *table {
	t := &table{
		Caption: "Runs of " +
			g.Scenario, Sortable: true, Note: "Open one to see its events, its nodes by market and its savings over time.",
		Head: headings("'Policy", "Seed", "'Window from", "Saved|$", "Saved|%", "Outage minutes", "Reclaims", "Moved|pods"),
	}
	of := 0
	for p := range g.Policies {
		for _, i := range runsOf(r, g, p) {
			if of++; l.of(i) > 0 {
				t.Rows = append(t.Rows, runRow(&r.Config, &r.Runs[i], l.of(i)))
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	if n := len(t.Rows); n < of {
		t.Note += fmt.Sprintf(" Here are %d of %d: the worst of each policy and the first seeds.", n, of)
	}
	return t
}

func runRow(c *eval.Config, run *eval.RunRow, week int) []cell {
	usd, pct := figures.Unknown, figures.Unknown
	if saved, share := c.Saved(run); saved.Known && share.Known {
		usd, pct = figures.Dollars(saved.V), oneDecimal(share.V)
	}
	res := run.Result
	row := texts(run.Policy, strconv.FormatUint(run.Seed, 10), format.Instant(run.Bound.Start), usd, pct,
		figures.Integer(res.OutageMinutes),
		figures.Integer(res.Reclaims), figures.Integer(res.VoluntaryEvictions))
	row[0].Week, row[5] = week, badIf(res.OutageMinutes > 0, row[5].Text)
	row[5].Sub = spotPart(run)
	return row
}
