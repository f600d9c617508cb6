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

	// Compared has the policies of the one world; with several it is nil, and
	// Across and Matrix say what there is to say over them.
	Compared, Across, Matrix *table
	Oracle                   string

	// Worlds has one for each scenario.
	Worlds []world

	// Worst and Outages are those of the one world; with several Worst has the
	// worst outages over them, and each world has its own.
	Worst, Outages *table

	Traces, Windows, Model table
	Settings               []setting
	Notes                  []string
	Definitions            []definition
	Version                string
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
	Worst, Outages       *table
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
	if len(r.Groups) > 1 {
		p.Across, p.Matrix, p.Worst = across(r), matrix(r), worstOutages(r)
	} else {
		only := &r.Groups[0]
		p.Compared, p.Oracle = comparison(r, only), r.OracleLine(only)
		p.Worst, p.Outages = worst(r, only), outages(r, only)
	}
	for i := range r.Groups {
		x, err := newWorld(r, &r.Groups[i], i, len(r.Groups) == 1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Groups[i].Scenario, err)
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
	if best := r.Best(g); best >= 0 && g.Policies[best].Policy != eval.OnDemand {
		x.Best = fmt.Sprintf("%s saves most, %s", g.Policies[best].Policy, percent(g.Policies[best].Summary("net_savings_pct").Median))
	}
	if !only {
		x.Compared, x.Oracle = comparison(r, g), r.OracleLine(g)
		x.Worst, x.Outages = worst(r, g), outages(r, g)
	}
	var err error
	x.Figures, err = pictures(r, g, x.ID)
	return x, err
}

// subject names the scenarios, or counts them where they are many.
func subject(r *eval.Report) string {
	if len(r.Groups) > 3 {
		return plural(len(r.Groups), "world")
	}
	var names []string
	for i := range r.Groups {
		names = append(names, r.Groups[i].Scenario)
	}
	return strings.Join(names, ", ")
}

// style is the page's, with the colours of both themes and those of pictures.
func style() template.CSS {
	light, dark := chart.Light.Properties(), chart.Dark.Properties()
	return template.CSS(strings.NewReplacer("/*light*/", light, "/*dark*/", dark).Replace(pageCSS)) //nolint:gosec // a file of ours
}
