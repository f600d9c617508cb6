package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format/formattest"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A figure is a summary as JSON has it, in reports and in what-ifs.
type figure struct {
	Mean, Median, Max *float64
	MedianInterval    *[2]float64 `json:"median_interval"`
	Interval          *[2]float64
	Need              int
	WindowMin         *float64 `json:"window_min"`
	WindowMedian      *float64 `json:"window_median"`
	WindowMax         *float64 `json:"window_max"`
	WindowsPositive   *float64 `json:"windows_positive"`
}

// withInterval are the numbers of a cell that has the median with its interval, or with what one needs.
func (f figure) withInterval() []float64 {
	switch i := f.MedianInterval; {
	case f.Median == nil:
		return nil
	case i == nil && f.Interval != nil:
		return []float64{*f.Median, f.Interval[0], f.Interval[1]}
	case i != nil:
		return []float64{*f.Median, i[0], i[1]}
	case f.Need > 0:
		return []float64{*f.Median, float64(f.Need)}
	}
	return []float64{*f.Median}
}

// times are numbers as a unit of such a size has them, those that are known.
func times(unit float64, numbers ...*float64) (out []float64) {
	for _, x := range numbers {
		if x != nil {
			out = append(out, *x*unit)
		}
	}
	return out
}

// A jsonPolicyPart is what tables have of a policy in one scenario.
type jsonPolicyPart struct {
	Policy        string
	Metrics       map[string]figure
	Windows       []struct{ Medians map[string]any }
	ViolatingRuns int `json:"violating_runs"`
}

// A document is what tables have of a report in JSON.
type document struct {
	Config struct{ Baseline string }
	Groups []struct {
		Scenario string
		Policies []jsonPolicyPart
	}
	Across struct {
		Policies []struct {
			Policy         string
			First, Of      float64
			WorstShortfall *struct{ Points *float64 } `json:"worst_shortfall"`
			WorstOutage    struct {
				Minutes, Window, Seed float64
				SpotMinutes           float64 `json:"spot_minutes"`
			} `json:"worst_outage"`
		}
	}
	Comparison struct {
		Changes []struct {
			Scenario, Policy string
			Pairs, Changed   float64
			Savings          figure  `json:"net_savings_points"`
			Outage           figure  `json:"outage_cost_points"`
			SavingsWeek      float64 `json:"net_savings_usd_per_week"`
			OutageWeek       float64 `json:"outage_minutes_per_week"`
		}
	}
	Gates []struct{ Actual *float64 }
	Runs  []struct {
		Scenario, Policy string
		Metrics          map[string]any
	}
}

// policy returns that of a scenario; with one scenario its title is empty.
func (d *document) policy(scenario, name string) *jsonPolicyPart {
	for i := range d.Groups {
		for k := range d.Groups[i].Policies {
			if x := &d.Groups[i].Policies[k]; x.Policy == name && (len(d.Groups) == 1 || d.Groups[i].Scenario == scenario) {
				return x
			}
		}
	}
	return nil
}

// policyCells are the numbers of the tables with a row of each policy of a scenario.
var policyCells = map[string]func(p *jsonPolicyPart) []float64{
	"BILL $":                   func(p *jsonPolicyPart) []float64 { return times(1, p.Metrics["bill_usd"].Median) },
	"SAVED $":                  func(p *jsonPolicyPart) []float64 { return times(1, p.Metrics["net_savings_usd"].Median) },
	"SAVED %":                  func(p *jsonPolicyPart) []float64 { return times(1, p.Metrics["net_savings_pct"].Median) },
	"CHANGE ON * % [interval]": func(p *jsonPolicyPart) []float64 { return p.Metrics["net_savings_delta_pct"].withInterval() },
	"OUTAGE MIN med / max":     func(p *jsonPolicyPart) []float64 { return medMax(p.Metrics["outage_minutes"]) },
	"FROM SPOT med / max":      func(p *jsonPolicyPart) []float64 { return medMax(p.Metrics["outage_spot_minutes"]) },
	"INCIDENTS med / max":      func(p *jsonPolicyPart) []float64 { return medMax(p.Metrics["outage_incidents"]) },
	"LONGEST max": func(p *jsonPolicyPart) (out []float64) {
		longest := time.Duration(*p.Metrics["outage_longest_s"].Max * float64(time.Second))
		for _, n := range formattest.Numbers(figures.Duration(longest)) {
			out = append(out, n.Value)
		}
		return out
	},
	"VS * max":      func(p *jsonPolicyPart) []float64 { return times(1, p.Metrics["outage_delta"].Max) },
	"SPOT VS * max": func(p *jsonPolicyPart) []float64 { return times(1, p.Metrics["outage_spot_delta"].Max) },
	"MOVED /pod-day": func(p *jsonPolicyPart) []float64 {
		return times(1, p.Metrics["voluntary_evictions_per_pod_day"].Median)
	},
	"LOST /pod-day": func(p *jsonPolicyPart) []float64 { return times(1, p.Metrics["reclaim_evictions_per_pod_day"].Median) },
	"SPOT %":        func(p *jsonPolicyPart) []float64 { return times(100, p.Metrics["spot_share"].Median) },
	"REGRET %":      func(p *jsonPolicyPart) []float64 { return times(100, p.Metrics["regret"].Median) },
}

func medMax(f figure) []float64 { return times(1, f.Median, f.Max) }

// windowCells are the numbers of the table over many windows, medians and worst ones.
var windowCells = map[string]func(p *jsonPolicyPart) []float64{
	"SAVED %":     func(p *jsonPolicyPart) []float64 { return least(p, "net_savings_pct", 1) },
	"CHANGE ON *": func(p *jsonPolicyPart) []float64 { return least(p, "net_savings_delta_pct", 1) },
	"ABOVE 0 IN %": func(p *jsonPolicyPart) []float64 {
		return times(100, p.Metrics["net_savings_delta_pct"].WindowsPositive)
	},
	"ATTAINABLE %": func(p *jsonPolicyPart) []float64 { return least(p, "attainable_share", 100) },
	"REGRET %": func(p *jsonPolicyPart) []float64 {
		return times(100, p.Metrics["regret"].WindowMedian, p.Metrics["regret"].WindowMax)
	},
	"AVAILABLE %": func(p *jsonPolicyPart) []float64 { return least(p, "availability", 100) },
}

func least(p *jsonPolicyPart, metric string, unit float64) []float64 {
	return times(unit, p.Metrics[metric].WindowMedian, p.Metrics[metric].WindowMin)
}

// wants returns what the tables of a report must have, by their first headings.
func (d *document) wants(windows int) map[string]formattest.Want {
	by := func(cells map[string]func(p *jsonPolicyPart) []float64) formattest.Want {
		return func(title, row, heading string) ([]float64, bool) {
			p, cell := d.policy(title, row), cells[heading]
			if p == nil || cell == nil {
				return nil, false
			}
			if row == d.Config.Baseline && (strings.HasPrefix(heading, "CHANGE ON *") || heading == "ABOVE 0 IN %") {
				return nil, true
			}
			return cell(p), true
		}
	}
	policies := by(policyCells)
	return map[string]formattest.Want{
		"POLICY": func(title, row, heading string) ([]float64, bool) {
			if numbers, known := d.across(row, heading, windows); known {
				return numbers, true
			}
			return policies(title, row, heading)
		},
		"SCENARIO":                            d.scenario,
		"SAVED % (BEHIND), OUTAGE MIN (SPOT)": d.saved,
		"CHANGE ON *, %":                      d.window,
		"CHANGE":                              d.change,
		"MEDIAN / WORST OF " + strconv.Itoa(windows) + " WINDOWS": by(windowCells),
	}
}

// across are the numbers of the table over several scenarios.
func (d *document) across(row, heading string, windows int) ([]float64, bool) {
	for _, x := range d.Across.Policies {
		if x.Policy != row {
			continue
		}
		switch heading {
		case "FIRST IN":
			return []float64{x.First, x.Of}, true
		case "WORST SHORTFALL points":
			return times(1, x.WorstShortfall.Points), true
		case "WORST OUTAGE min":
			switch o := x.WorstOutage; {
			case o.Minutes == 0:
				return []float64{0}, true
			case windows > 1:
				return []float64{o.Minutes, o.Window + 1, o.Seed}, true
			default:
				return []float64{o.Minutes, o.Seed}, true
			}
		case "FROM SPOT min":
			return []float64{x.WorstOutage.SpotMinutes}, true
		}
	}
	return nil, false
}

// best is what the first policy of a scenario saves.
func (d *document) best(scenario string) *float64 {
	var best *float64
	for i := range d.Groups {
		for _, p := range d.Groups[i].Policies {
			saved := p.Metrics["net_savings_pct"].Median
			if d.Groups[i].Scenario == scenario && p.ViolatingRuns == 0 && saved != nil && (best == nil || *saved > *best) {
				best = saved
			}
		}
	}
	return best
}

func (d *document) scenario(_, row, heading string) ([]float64, bool) {
	switch heading {
	case "FIRST":
		return nil, true
	case "SAVED %":
		return times(1, d.best(row)), true
	case "AT MOST %":
		var most []float64
		for _, run := range d.Runs {
			if bill, known := run.Metrics["on_demand_bill_usd"].(float64); known && run.Scenario == row && run.Policy == eval.OnDemand {
				saved := bill + run.Metrics["on_demand_outage_cost_usd"].(float64) - run.Metrics["oracle_usd"].(float64)
				most = append(most, saved/bill*100)
			}
		}
		return []float64{stats.Median(most)}, true
	}
	return nil, false
}

func (d *document) saved(_, row, heading string) ([]float64, bool) {
	p := d.policy(row, heading)
	if p == nil {
		return nil, false
	}
	saved := *p.Metrics["net_savings_pct"].Median
	numbers := []float64{saved}
	if behind := saved - *d.best(row); behind != 0 || p.ViolatingRuns > 0 {
		numbers = append(numbers, behind)
	}
	if most := *p.Metrics["outage_minutes"].Max; most > 0 {
		numbers = append(numbers, most, *p.Metrics["outage_spot_minutes"].Max)
	}
	return numbers, true
}

// window is of the only scenario, in the windows from 5 January 2026 on.
func (d *document) window(title, row, heading string) ([]float64, bool) {
	day, err := time.Parse(time.DateOnly, heading)
	p := d.policy(title, row)
	if err != nil || p == nil {
		return nil, false
	}
	return []float64{p.Windows[day.Day()-5].Medians["net_savings_delta_pct"].(float64)}, true
}

func (d *document) change(_, row, heading string) ([]float64, bool) {
	const weeks = 730.0 / 168
	for _, x := range d.Comparison.Changes {
		if row != x.Policy && row != x.Policy+" in "+x.Scenario {
			continue
		}
		switch heading {
		case "NET SAVINGS, POINTS":
			return x.Savings.withInterval(), true
		case "A MONTH":
			return []float64{x.SavingsWeek * weeks}, true
		case "OUTAGE COST, POINTS":
			return x.Outage.withInterval(), true
		case "MIN/MONTH":
			return []float64{x.OutageWeek * weeks}, true
		case "RUNS CHANGED":
			return []float64{x.Changed, x.Pairs}, true
		case "VERDICT":
			return nil, true
		}
	}
	return nil, false
}

// textBy returns what write writes.
func textBy(t *testing.T, write func(w *bytes.Buffer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// parsed reads JSON.
func parsed[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// textOptions are the ways in which a terminal may request text.
var textOptions = map[string]Options{
	"text of 80 columns": {Width: 80}, "text": {}, "text with details": {Details: true}, "narrow text with details": {Width: 60, Details: true},
	"wide text": {Wide: true, Width: 250}, "coloured text": {Details: true, Width: 200, Color: true},
}

// colors are those of a terminal.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// agree compares the tables of an answer in every form that people read with what they must have, by
// their first headings. It returns how many cells it compared in Markdown.
func agree(t *testing.T, name string, a *Answer, wants map[string]formattest.Want) (cells int) {
	t.Helper()
	compare := func(output string, tables []formattest.Table) (n int) {
		for first, want := range wants {
			of := slices.DeleteFunc(slices.Clone(tables), func(x formattest.Table) bool { return x.Headings[0] != first })
			n += formattest.Compare(t, name+", "+output, of, want)
		}
		return n
	}
	least := 0
	for form, o := range textOptions {
		text := colors.ReplaceAllString(textBy(t, func(w *bytes.Buffer) error { return a.Write(w, o) }), "")
		n := compare(form, formattest.Text(text, slices.Collect(maps.Keys(wants))...))
		if least = max(least, n); n == 0 {
			t.Errorf("%s: %s has no table:\n%s", name, form, text)
		}
	}
	cells = compare("Markdown", formattest.Markdown(textBy(t, func(w *bytes.Buffer) error { return a.Markdown(w) })))
	if cells < least {
		t.Errorf("%s: Markdown has %d cells, and text %d", name, cells, least)
	}
	comment := textBy(t, func(w *bytes.Buffer) error { return a.Comment(w) })
	if n := compare("the comment", formattest.Markdown(comment)); n < cells {
		t.Errorf("%s: the comment has %d cells, and Markdown %d", name, n, cells)
	}
	return cells
}

// TestRenderersAgreeOnReports: every number of every output of a comparison is that of its JSON.
func TestRenderersAgreeOnReports(t *testing.T) {
	several := acrossReport(t)
	changed := reportOf(t, 1, []eval.Gate{mustGate(t, "spot:net_savings_pct.median >= 2"),
		mustGate(t, "outage_minutes.max <= 5")}, "rough", "calm")
	setAgainst(t, changed, func(x *eval.OtherRun) float64 { return map[string]float64{"rough": 3}[x.Scenario] })
	for name, x := range map[string]struct {
		r              *eval.Report
		windows, least int
	}{
		"one scenario": {reportOf(t, 1, nil, "web-week"), 1, 48}, "two windows": {reportOf(t, 2, nil, "web-week"), 2, 54},
		"many windows": {reportOf(t, 9, nil, "web-week"), 9, 72}, "several scenarios": {several, 2, 150}, "a comparison": {changed, 1, 110},
	} {
		text := textBy(t, func(w *bytes.Buffer) error { return writeJSON(w, x.r) })
		d := parsed[document](t, text)
		if cells := agree(t, name, AnswerOf(x.r), d.wants(x.windows)); cells < x.least {
			t.Errorf("%s: %d cells were compared, want %d", name, cells, x.least)
		}
		agreeRuns(t, name, x.r, d)
		agreeGates(t, name, x.r, d)
		agreeMonths(t, name, x.r, d)
	}
}

// agreeRuns compares the lines of CSV and the rows of Parquet with the runs of JSON.
func agreeRuns(t *testing.T, name string, r *eval.Report, d *document) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(textBy(t, func(w *bytes.Buffer) error { return Write(w, r, CSV, Options{}) }))).ReadAll()
	if err != nil || len(lines) != 1+len(d.Runs) {
		t.Fatalf("%s: %d lines of CSV for %d runs: %v", name, len(lines), len(d.Runs), err)
	}
	for i, run := range d.Runs {
		for _, m := range eval.Metrics() {
			text := ""
			switch x := run.Metrics[m.Name].(type) {
			case float64:
				text = strconv.FormatFloat(x, 'f', -1, 64)
			case bool:
				text = strconv.FormatBool(x)
			}
			if got := lines[1+i][slices.Index(lines[0], m.Name)]; got != text {
				t.Errorf("%s: line %d of CSV has %s for %s, want %s", name, i+1, got, m.Name, text)
			}
		}
	}
	var reports []*eval.Recorded
	for _, f := range []Format{JSON, Parquet} {
		got, err := ReadReport(strings.NewReader(textBy(t, func(w *bytes.Buffer) error { return Write(w, r, f, Options{}) })))
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, got)
	}
	if len(reports[0].Runs) != len(d.Runs) || !reflect.DeepEqual(reports[0].Runs, reports[1].Runs) {
		t.Errorf("%s: Parquet has other runs than JSON", name)
	}
}

// agreeGates compares what JUnit says of gates with JSON.
func agreeGates(t *testing.T, name string, r *eval.Report, d *document) {
	t.Helper()
	var suites junitSuites
	if err := xml.Unmarshal([]byte(textBy(t, func(w *bytes.Buffer) error { return Write(w, r, JUnit, Options{}) })), &suites); err != nil {
		t.Fatal(err)
	}
	if len(d.Gates) == 0 {
		return
	}
	if len(suites.Suites[0].Cases) != len(d.Gates) {
		t.Fatalf("%s: JUnit has %d gates, and JSON %d", name, len(suites.Suites[0].Cases), len(d.Gates))
	}
	for i, g := range d.Gates {
		c := &suites.Suites[0].Cases[i]
		line := c.Out
		if c.Failure != nil {
			line = c.Failure.Message
		}
		_, is, _ := strings.Cut(line, ", is ")
		if got := formattest.Numbers(is); len(got) == 0 || !got[0].Is(*g.Actual) {
			t.Errorf("%s: JUnit says %q of a gate, want %v", name, line, *g.Actual)
		}
	}
}

// agreeMonths compares the table of a comment without a comparison with the runs of JSON, whose windows
// are a day long.
func agreeMonths(t *testing.T, name string, r *eval.Report, d *document) {
	t.Helper()
	if r.Comparison != nil {
		return
	}
	mean := func(row, metric string) float64 {
		sum, n := 0.0, 0.0
		for _, run := range d.Runs {
			if x, known := run.Metrics[metric].(float64); known && run.Scenario+", "+run.Policy == row {
				sum, n = sum+x, n+1
			}
		}
		return sum / n * 730 / 24
	}
	tables := formattest.Markdown(textBy(t, func(w *bytes.Buffer) error { return Write(w, r, Comment, Options{}) }))
	if tables[0].Headings[0] != "A month" {
		t.Fatalf("%s: the first table of the comment is %v", name, tables[0].Headings)
	}
	formattest.Compare(t, name+", the month of the comment", tables[:1], func(_, row, heading string) ([]float64, bool) {
		bill, onDemand := mean(row, "bill_usd"), mean(row, "on_demand_bill_usd")
		switch heading {
		case "All on demand":
			return []float64{onDemand}, true
		case "Bill":
			return []float64{bill}, true
		case "Saved":
			return []float64{mean(row, "net_savings_usd") / onDemand * 100}, true
		case "Outage minutes":
			return []float64{mean(row, "outage_minutes")}, true
		}
		return nil, false
	})
}

// TestRenderersAgreeOnComparisons: the difference of two results is that of JSON.
func TestRenderersAgreeOnComparisons(t *testing.T) {
	r := reportOf(t, 1, nil, "web-week")
	setAgainst(t, r, func(*eval.OtherRun) float64 { return 5 })
	d := parsed[document](t, textBy(t, func(w *bytes.Buffer) error { return writeJSON(w, r) }))
	if cells := agree(t, "a comparison alone", AnswerOfComparison(r.Comparison),
		map[string]formattest.Want{"CHANGE": d.change}); cells != 6*len(d.Comparison.Changes) {
		t.Errorf("%d cells were compared", cells)
	}
}

// TestRenderersAgreeOnStress: every number of a stress is that of JSON.
func TestRenderersAgreeOnStress(t *testing.T) {
	f := stressFake{"spot": flat(70, 0, map[string][2]float64{"hazard-10": {11, 300}}), "static": flat(20, 5, nil),
		"spotvortex": flat(30, 2, nil),
		"portfolio":  flat(60, 0, map[string][2]float64{"slots-0.2": {47, 1}}), "static:share=0.2": flat(10, 1, nil)}
	s, err := eval.RunStress(t.Context(), stressConfig(), f.run)
	if err != nil {
		t.Fatal(err)
	}
	type cell struct {
		Truth  string
		Saved  *float64 `json:"net_savings_pct"`
		Outage *float64 `json:"outage_minutes"`
	}
	type run struct{ Value *float64 }
	d := parsed[struct {
		Scenarios []struct {
			Policies []struct {
				Policy string
				Truths []cell
				Worst  struct {
					Saved  run `json:"net_savings_pct"`
					Outage run `json:"outage_minutes"`
				}
			}
		}
	}](t, textBy(t, func(w *bytes.Buffer) error { return WriteStress(w, s, JSON, Options{}) }))
	want := func(_, row, heading string) ([]float64, bool) {
		for _, p := range d.Scenarios[0].Policies {
			if p.Policy != row {
				continue
			}
			if heading == "WORST" {
				return times(1, p.Worst.Saved.Value, p.Worst.Outage.Value), true
			}
			for _, c := range p.Truths {
				if c.Truth == heading {
					return times(1, c.Saved, c.Outage), true
				}
			}
		}
		return nil, false
	}
	if cells := agree(t, "a stress", stress{s}.answer(), map[string]formattest.Want{"POLICY": want}); cells != 6*13 {
		t.Errorf("%d cells were compared", cells)
	}
	write := func(f Format) string {
		return textBy(t, func(w *bytes.Buffer) error { return WriteStress(w, s, f, Options{}) })
	}
	runs, err := ReadResults(strings.NewReader(write(Parquet)))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(write(CSV))).ReadAll()
	if err != nil || len(lines) != 1+len(runs.Runs) {
		t.Fatalf("%d lines of CSV for %d runs of Parquet: %v", len(lines), len(runs.Runs), err)
	}
	type place struct{ policy, truth string }
	saved, outage := map[place][]float64{}, map[place][]float64{}
	for i := range runs.Runs {
		run := &runs.Runs[i]
		at := place{run.Policy, run.Case.Truth}
		for metric, of := range map[string]map[place][]float64{"net_savings_pct": saved, "outage_minutes": outage} {
			x := run.Metrics.Of(metric)
			if text := lines[1+i][slices.Index(lines[0], metric)]; text != strconv.FormatFloat(x.V, 'f', -1, 64) {
				t.Errorf("%v: %s is %v in Parquet and %s in CSV", at, metric, x, text)
			}
			of[at] = append(of[at], x.V)
		}
	}
	for at := range saved {
		slices.Sort(saved[at])
		got := []float64{saved[at][len(saved[at])/2], slices.Max(outage[at])}
		if numbers, _ := want("", at.policy, at.truth); !slices.Equal(got, numbers) {
			t.Errorf("%v: the runs come to %v, and JSON has %v", at, got, numbers)
		}
	}
}

// TestRenderersAgreeOnWhatIf: every number of a what-if is that of JSON.
func TestRenderersAgreeOnWhatIf(t *testing.T) {
	sweep := whatIf(t, 10, saves(0, -1), saves(0.1, 0), saves(0.8, 2), saves(0.85, 8), saves(0.9, 20))
	sweep.Sweep = "pool/a x"
	for name, w := range map[string]*eval.WhatIf{"a what-if": whatIf(t, 10, saves(1, 8), saves(-0.5, -1), noise, same),
		"few seeds": whatIf(t, 3, saves(1, 8)), "a sweep": sweep} {
		text, err := json.Marshal(WhatIf(w))
		if err != nil {
			t.Fatal(err)
		}
		type variant struct {
			Name      string
			Cost      figure `json:"cost_usd_per_month"`
			Change    figure `json:"change_usd_per_month"`
			ChangePct figure `json:"change_pct"`
			Outage    figure `json:"outage_cost_usd_per_month"`
			Incidents figure `json:"outage_incidents"`
			Minutes   figure `json:"outage_minutes"`
			Spot      figure `json:"outage_spot_minutes"`
			Evictions figure `json:"evictions_per_pod_day"`
			Nodes     figure
			SpotShare figure `json:"spot_share"`
		}
		d := parsed[struct {
			AsIs     variant `json:"as_is"`
			Variants []variant
		}](t, string(text))
		cells := map[string]func(x *variant) []float64{
			"$/MONTH median":                    func(x *variant) []float64 { return times(1, x.Cost.Median) },
			"CHANGE, $/MONTH median [interval]": func(x *variant) []float64 { return x.Change.withInterval() },
			"CHANGE %":                          func(x *variant) []float64 { return times(1, x.ChangePct.Median) },
			"OUTAGE INCIDENTS med / max":        func(x *variant) []float64 { return medMax(x.Incidents) },
			"OUTAGE MIN med / max":              func(x *variant) []float64 { return medMax(x.Minutes) },
			"FROM SPOT, MIN med / max":          func(x *variant) []float64 { return medMax(x.Spot) },
			"OUTAGES, $/MONTH median":           func(x *variant) []float64 { return times(1, x.Outage.Median) },
			"EVICTIONS /pod-day":                func(x *variant) []float64 { return times(1, x.Evictions.Median) },
			"NODES mean":                        func(x *variant) []float64 { return times(1, x.Nodes.Median) },
			"SPOT %":                            func(x *variant) []float64 { return times(100, x.SpotShare.Median) },
		}
		want := func(_, row, heading string) ([]float64, bool) {
			for i, x := range append([]variant{d.AsIs}, d.Variants...) {
				short, swept := strings.CutPrefix(x.Name, w.Sweep+"=")
				if row == x.Name || row == Mark(i-1)+"  "+x.Name || swept && strings.HasPrefix(row, Mark(i-1)+"  "+short) {
					cell := cells[heading]
					if cell == nil {
						return nil, false
					}
					return cell(&x), true
				}
			}
			return nil, false
		}
		if n := agree(t, name, answerOfWhatIf(w), map[string]formattest.Want{"VARIANT": want}); n != 10*(1+len(d.Variants)) {
			t.Errorf("%s: %d cells were compared", name, n)
		}
	}
}
