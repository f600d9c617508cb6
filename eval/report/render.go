package report

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy/figures"
)

// whole returns the page p. body adds the content between head and foot.
func (p *page) whole(body func(*markup)) *markup {
	m := &markup{}
	m.addf(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="%s"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>%s</title>
<style>%s</style>
</head>
<body>
<a class="skip" href="#verdict">To the verdict</a>
<header>
<div class="brand"><span>Spotter</span><span id="tools"></span></div>
<h1>%s</h1>
<p class="subject">%s</p>
</header>
`, contentPolicy(), p.Title, style(), p.Title, p.Subject)
	body(m)
	m.addf("</main>\n<footer><p>Made by Spotter")
	m.some(" %s", p.Version)
	m.addf(". Equal inputs give an equal page, to the byte.</p></footer>\n")
	p.data(m)
	m.addf("<script>%s</script>\n</body>\n</html>\n", trusted(pageJS))
	return m
}

// render returns p as HTML.
func (p *page) render() *markup {
	scenario, worst := "The scenario", "Worst runs"
	if len(p.Scenarios) > 1 {
		scenario, worst = "Scenarios", "Worst outages"
	}
	return p.whole(func(m *markup) {
		m.addf("<nav aria-label=\"Parts of the report\">\n<ul>\n")
		for _, part := range []struct {
			id, title string
			there     bool
		}{{"verdict", "Verdict", true}, {"policies", "Who wins where", true}, {"warnings", "Warnings", len(p.Warnings) > 0},
			{"gates", "Gates", p.Gates != nil},
			{"builds", "The other build", p.Builds != nil}, {"scenarios", scenario, true}, {"worst", worst, true},
			{"assumptions", "Assumptions", true},
			{"definitions", "Definitions", true}} {
			if part.there {
				m.addf("<li><a href=\"#%s\">%s</a></li>\n", part.id, part.title)
			}
		}
		m.addf("</ul>\n</nav>\n<div id=\"legend\"></div>\n<main>\n")
		p.outcome(m)
		m.section("policies", "", "Who wins where", "", func() {
			m.table(p.Matrix)
			m.table(p.Compared)
			m.some("<p class=\"note\">%s</p>\n", p.Oracle)
			m.table(p.Across)
		})
		p.warnings(m)
		p.one(m, "gates", "Gates", p.Gates)
		p.one(m, "builds", "The other build", p.Builds)
		p.scenarios(m, scenario)
		m.section("worst", "", worst, "", func() {
			m.table(p.Worst)
			m.table(p.Outages)
		})
		m.section("assumptions", "", "Assumptions", "", func() { p.assumptions(m) })
		m.section("definitions", "", "Definitions", "", func() {
			m.fold("", "Figures", fmt.Sprintf("%d of them, as they are called in every output and in gates", len(p.Definitions)),
				func() { m.list(p.Definitions) })
		})
	})
}

// one adds a section that consists of one table, unless the table is nil.
func (p *page) one(m *markup, id, title string, t *table) {
	if t != nil {
		m.section(id, "", title, "", func() { m.table(t) })
	}
}

func (p *page) outcome(m *markup) {
	sign := map[string]string{"passed": "✓ ", "none": "○ "}[p.Summary.State]
	if sign == "" {
		sign = "✗ "
	}
	var badge markup
	badge.addf(` <span class="badge">%s%s</span>`, sign, p.Summary.Badge)
	m.section("verdict", "verdict "+p.Summary.State, "Verdict", trusted(badge.String()), func() {
		for i, s := range p.Summary.Sentences {
			m.addf("<p%s>%s</p>\n", map[bool]trusted{true: ` class="lead"`}[i == 0], s)
		}
		if n := len(p.Warnings); n > 0 {
			m.addf("<p><a href=\"#warnings\">%s before you rely on this</a></p>\n", figures.Count(n, "warning"))
		}
		if len(p.Summary.Cards) == 0 {
			return
		}
		m.addf("<dl class=\"cards\">\n")
		for _, c := range p.Summary.Cards {
			m.addf("<div><dt>%s</dt><dd><strong>%s</strong>", c.Label, c.Value)
			m.some(` <small>%s</small>`, c.Sub)
			m.addf("</dd></div>\n")
		}
		m.addf("</dl>\n")
	})
}

func (p *page) warnings(m *markup) {
	if len(p.Warnings) == 0 {
		return
	}
	m.section("warnings", "warnings", "Before you rely on this", "", func() {
		m.addf("<ul>\n")
		for _, w := range p.Warnings {
			m.addf("<li>%s", w.Text)
			m.command(w.Command)
			m.addf("</li>\n")
		}
		m.addf("</ul>\n")
	})
}

func (p *page) scenarios(m *markup, title string) {
	m.section("scenarios", "", title, "", func() {
		for i := range p.Scenarios {
			x := &p.Scenarios[i]
			about := x.Span
			if x.Best != "" {
				about += " · " + x.Best
			}
			m.fold(trusted(` id="`+x.ID+`" open=""`), x.Name, about, func() { x.render(m) })
		}
	})
}

func (x *scenario) render(m *markup) {
	m.table(x.Compared)
	m.some("<p class=\"note\">%s</p>\n", x.Oracle)
	m.figures(x.Figures)
	m.table(x.Namespaces)
	m.folded("Runs", "click one to see its week", x.Runs)
	m.table(x.Windows)
	m.folded("Workloads", "what became of each under each policy", x.Workloads)
	m.table(x.Worst)
	m.table(x.Outages)
}

func (p *page) assumptions(m *markup) {
	m.table(p.Traces)
	m.table(p.Windows)
	m.addf("<h3>Configuration</h3>\n")
	m.list(p.Settings)
	m.addf("<h3>Notes</h3>\n<ul class=\"notes\">\n")
	for _, n := range p.Notes {
		m.addf("<li>%s</li>\n", n)
	}
	m.addf("</ul>\n")
	m.folded("The market model", fmt.Sprintf("%d constants and what each rests on", len(p.Model.Rows)), p.Model)
}
