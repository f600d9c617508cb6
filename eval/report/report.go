package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// A page is what the template shows.
type page struct {
	Title, Subject string
	Style          template.CSS
	Script         template.JS

	// Policy says what the page may load: its own style and script, and nothing
	// from anywhere.
	Policy string

	Verdict  verdict
	Warnings []warning
	Gates    *table
	Builds   *table

	// Compared is the table of all runs, Matrix that of worlds, nil with one.
	Compared table
	Matrix   *table
	Oracle   string
	Figures  []figure

	// Worlds has one for each scenario.
	Worlds []world

	Worst, Outages, Traces, Windows, Model table
	Settings                               []setting
	Notes                                  []string
	Definitions                            []definition
	Version                                string
}

// A world is the part of the page about one scenario.
type world struct {
	ID, Name, Span, Best string
	Open                 bool
	Compared             *table
	Oracle               string
	Windows              *table
	Figures              []figure
	Workloads            *table
	Worst                *table
}

// Write writes r to w as one HTML file. Nothing is written when it cannot be
// made. Charts over time need runs with sim.Config.Sample set, best to
// [SampleEvery]; without it they are left out.
func Write(w io.Writer, r *eval.Report) error {
	p, err := newPage(r)
	if err != nil {
		return fmt.Errorf("making the HTML report: %w", err)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("making the HTML report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func newPage(r *eval.Report) (*page, error) {
	hash := sha256.Sum256([]byte(pageJS))
	p := &page{
		Title: "Policies compared: " + subject(r), Subject: r.Title(),
		Style: style(), Script: template.JS(pageJS), //nolint:gosec // both are files of ours
		Policy:  "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'",
		Verdict: newVerdict(r), Warnings: warnings(r), Gates: gates(r), Builds: builds(r),
		Traces: traces(r), Windows: worlds(r), Model: model(),
		Settings: settings(r), Notes: r.Notes(), Definitions: definitions(), Version: r.Config.Version,
	}
	all := &r.Groups[0]
	groups := r.Scenarios()
	name := "all runs"
	if len(groups) > 1 {
		name = fmt.Sprintf("all %d worlds", len(groups))
		m := matrix(r)
		p.Matrix = &m
		var err error
		if p.Figures, err = pictures(r, all, "all", false); err != nil {
			return nil, err
		}
	} else {
		p.Oracle = r.OracleLine(all)
	}
	p.Compared, p.Worst, p.Outages = comparison(r, all, name), worst(r, all, name), outages(r, all)
	for i := range groups {
		x, err := newWorld(r, &groups[i], i, len(groups) == 1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", groups[i].Scenario, err)
		}
		p.Worlds = append(p.Worlds, x)
	}
	return p, nil
}

// newWorld makes the part about g. What stands above it where there is but one
// world is not repeated.
func newWorld(r *eval.Report, g *eval.Group, i int, only bool) (world, error) {
	first := &r.Config.Cases[g.Cases[0]]
	last := &r.Config.Cases[g.Cases[len(g.Cases)-1]]
	x := world{
		ID: fmt.Sprintf("world-%d", i+1), Name: first.Scenario, Open: only,
		Span:    fmt.Sprintf("%s of %s, %s to %s", plural(len(g.Cases), "window"), length(first.World.Duration), instant(first.World.Start), instant(last.World.Start.Add(last.World.Duration))),
		Windows: windows(r, g), Workloads: workloads(g),
	}
	if best := bestSaved(g); best >= 0 && g.Policies[best].Policy != eval.OnDemand {
		x.Best = fmt.Sprintf("%s saves most, %s", g.Policies[best].Policy, percent(g.Policies[best].Summary("net_savings_pct").Median))
	}
	if !only {
		compared, bad := comparison(r, g, first.Scenario), worst(r, g, first.Scenario)
		x.Compared, x.Worst, x.Oracle = &compared, &bad, r.OracleLine(g)
	}
	var err error
	x.Figures, err = pictures(r, g, x.ID, true)
	return x, err
}

// subject names the scenarios, or counts them where they are many.
func subject(r *eval.Report) string {
	groups := r.Scenarios()
	if len(groups) > 3 {
		return plural(len(groups), "world")
	}
	var names []string
	for i := range groups {
		names = append(names, r.Config.Cases[groups[i].Cases[0]].Scenario)
	}
	return strings.Join(names, ", ")
}

// style is the page's, with the colours of both themes and those of pictures.
func style() template.CSS {
	light, dark := chart.Light.Properties(), chart.Dark.Properties()
	return template.CSS(strings.NewReplacer("/*light*/", light, "/*dark*/", dark).Replace(pageCSS)) //nolint:gosec // a file of ours
}
