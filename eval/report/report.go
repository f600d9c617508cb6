package report

import (
	"crypto/sha256"
	_ "embed" // the style and the script
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

//go:embed page.css
var pageCSS string

//go:embed page.js
var tablesJS string

//go:embed hover.js
var hoverJS string

//go:embed legend.js
var legendJS string

//go:embed week.js
var weekJS string

// pageJS is the script of the page.
var pageJS = tablesJS + hoverJS + legendJS + weekJS

// A page is the content of the page, in words.
type page struct {
	Title, Subject string

	Summary  summary
	Warnings []warning
	Gates    *table
	Builds   *table

	// Compared is the table of policies if there is one scenario. If there are several, Compared is
	// nil, and Across and Matrix are the tables over all scenarios.
	Compared, Across, Matrix *table
	Oracle                   string

	// Scenarios contains a section for each scenario.
	Scenarios []scenario

	// Worst and Outages are the tables of the only scenario. If there are several, Worst is the
	// table of the worst outages over all of them, and each scenario has its own tables.
	Worst, Outages *table

	Traces, Windows, Model *table

	// Settings is the configuration, Definitions the definitions of all metrics.
	Settings, Definitions []setting
	Notes                 []string
	Version               string

	// Weeks are the runs that can be opened, and Legend the policies that can be hidden in
	// pictures.
	Weeks  *weekList
	Legend []legendEntry
}

// A scenario is the section of the page on one scenario.
type scenario struct {
	ID, Name, Span, Best string
	Compared             *table
	Oracle               string
	Windows              *table
	Figures              []figure
	Workloads, Runs      *table
	Namespaces           *table
	Worst, Outages       *table
}

// Options contains information for a page that is not in the report.
type Options struct {
	// Running reports whether the comparison is still running, so that unfinished runs will follow.
	Running bool
}

// Write writes r to w as one HTML file. If it fails to create the page, it writes nothing. Charts
// over time require runs with sim.Config.Sample, preferably set to [SampleEvery]; they are omitted
// otherwise.
func Write(w io.Writer, r *eval.Report, o Options) error {
	p, err := newPage(r, &o)
	if err != nil {
		return fmt.Errorf("making the HTML report: %w", err)
	}
	_, err = p.render().WriteTo(w)
	return err
}

func newPage(r *eval.Report, o *Options) (*page, error) {
	weeks, err := newWeeks(r)
	if err != nil {
		return nil, err
	}
	a := format.AnswerOf(r)
	p := &page{
		Title: "Policies compared: " + subject(r), Subject: format.Title(r),
		Weeks: weeks, Legend: legend(r),
		Summary: newSummary(r, a, o.Running), Warnings: warnings(r,
			o.Running), Gates: gates(r), Builds: changes(r.Comparison),
		Traces: traces(r), Windows: casesTable(r), Model: model(),
		Settings: settings(r), Notes: format.Notes(r), Version: r.Config.Version,
	}
	for _, m := range eval.Metrics() {
		p.Definitions = append(p.Definitions, setting{Name: m.Name, Unit: m.Unit, Value: m.About})
	}
	if len(r.Groups) > 1 {
		p.Across, p.Matrix, p.Worst = across(r, a), matrix(r), worstOutages(r, weeks)
	} else {
		only := &r.Groups[0]
		p.Compared, p.Oracle = comparison(r, only), format.OracleLine(r, only)
		p.Worst, p.Outages = worst(r, only, weeks), outages(r, only)
	}
	for i := range r.Groups {
		x, err := newScenario(r, &r.Groups[i], i, weeks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Groups[i].Scenario, err)
		}
		p.Scenarios = append(p.Scenarios, x)
	}
	return p, nil
}

// newScenario returns the section on g. If there is only one scenario, it does not repeat the
// tables above.
func newScenario(r *eval.Report, g *eval.Group, i int, weeks *weekList) (scenario, error) {
	first := &r.Config.Cases[g.Cases[0]]
	last := &r.Config.Cases[g.Cases[len(g.Cases)-1]]
	x := scenario{
		ID: fmt.Sprintf("scenario-%d", i+1), Name: first.Scenario,
		Span: fmt.Sprintf("%s of %s, %s to %s", figures.Count(len(g.Cases), "window"),
			figures.Duration(first.Bound.Duration), format.Instant(first.Bound.Start), format.Instant(last.Bound.Start.Add(last.Bound.Duration))),
		Windows: windows(r, g), Namespaces: namespaces(r, g), Workloads: workloads(g), Runs: runTable(r, g, weeks),
	}
	if best := r.Best(g); best >= 0 && g.Policies[best].Policy != eval.OnDemand {
		metric, of := r.Config.Savings()
		x.Best = fmt.Sprintf("%s saves most, %s", g.Policies[best].Policy, percent(g.Policies[best].Summary(metric).Median))
		if r.Config.Today != nil {
			x.Best += " of " + of
		}
	}
	if len(r.Groups) > 1 {
		x.Compared, x.Oracle = comparison(r, g), format.OracleLine(r, g)
		x.Worst, x.Outages = worst(r, g, weeks), outages(r, g)
	}
	var err error
	x.Figures, err = pictures(r, g, x.ID, weeks)
	return x, err
}

// contentPolicy returns a Content-Security-Policy that only permits the page's own style and
// script.
func contentPolicy() string {
	hash := sha256.Sum256([]byte(pageJS))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
}

// subject returns the names of the scenarios, or their number if there are many.
func subject(r *eval.Report) string {
	if len(r.Groups) > 3 {
		return figures.Count(len(r.Groups), "scenario")
	}
	var names []string
	for i := range r.Groups {
		names = append(names, r.Groups[i].Scenario)
	}
	return strings.Join(names, ", ")
}

// style returns the page's CSS, with the colours of both themes and of pictures.
func style() trusted {
	light, dark := chart.Light.Properties(), chart.Dark.Properties()
	return trusted(strings.NewReplacer("/*light*/", light, "/*dark*/", dark, "/*text*/", chart.PageText).Replace(pageCSS))
}
