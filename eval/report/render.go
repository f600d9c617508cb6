package report

import "github.com/spotter-dev/spotter/policy/figures"

// render writes p as HTML. Its parts stand in the order of the page.
func (p *page) render() *markup {
	return p.whole(func(m *markup) {
		p.contents(m)
		p.parts(m)
	})
}

// whole writes p with what body adds between its head and its foot.
func (p *page) whole(body func(*markup)) *markup {
	m := &markup{}
	p.head(m)
	body(m)
	p.foot(m)
	return m
}

func (p *page) parts(m *markup) {
	m.addf("<main>\n")
	p.outcome(m)
	p.policies(m)
	p.warnings(m)
	m.addf("\n")
	section(m, "gates", "Gates", p.Gates)
	section(m, "builds", "The other build", p.Builds)
	p.scenarios(m)
	p.worst(m)
	p.assumptions(m)
	p.definitions(m)
}

// foot ends the page.
func (p *page) foot(m *markup) {
	m.addf("</main>\n<footer><p>Made by Spotter")
	m.some(" %s", p.Version)
	m.addf(". Equal inputs give an equal page, to the byte.</p></footer>\n")
	p.data(m)
	m.addf("<script>%s</script>\n</body>\n</html>\n", p.Script)
}

func (p *page) head(m *markup) {
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
`, p.Policy, p.Title, p.Style, p.Title, p.Subject)
}

// contents leads to the parts of the page that are there.
func (p *page) contents(m *markup) {
	m.addf(`<nav aria-label="Parts of the report">
<ul>
<li><a href="#verdict">Verdict</a></li>
<li><a href="#policies">Who wins where</a></li>
`)
	if len(p.Warnings) > 0 {
		m.addf(`<li><a href="#warnings">Warnings</a></li>`)
	}
	m.addf("\n")
	if p.Gates != nil {
		m.addf(`<li><a href="#gates">Gates</a></li>`)
	}
	m.addf("\n")
	if p.Builds != nil {
		m.addf(`<li><a href="#builds">The other build</a></li>`)
	}
	m.addf(`
<li><a href="#scenarios">%s</a></li>
<li><a href="#worst">Worst runs</a></li>
<li><a href="#assumptions">Assumptions</a></li>
<li><a href="#definitions">Definitions</a></li>
</ul>
</nav>
<div id="legend"></div>
`, p.oneOrSeveral("The scenario", "Scenarios"))
}

// oneOrSeveral returns the words for a page about one scenario or about several.
func (p *page) oneOrSeveral(one, several string) string {
	if len(p.Scenarios) < 2 {
		return one
	}
	return several
}

func (p *page) outcome(m *markup) {
	sign := "✗ "
	switch p.Summary.State {
	case "passed":
		sign = "✓ "
	case "none":
		sign = "○ "
	}
	m.addf(`<section id="verdict" aria-labelledby="verdict-h" class="verdict %s">
<h2 id="verdict-h">Verdict <span class="badge">%s%s</span></h2>
`, p.Summary.State, sign, p.Summary.Badge)
	for i, s := range p.Summary.Sentences {
		m.addf("<p")
		if i == 0 {
			m.addf(` class="lead"`)
		}
		m.addf(">%s</p>\n", s)
	}
	if n := len(p.Warnings); n > 0 {
		m.addf("<p><a href=\"#warnings\">%s before you rely on this</a></p>\n", figures.Count(n, "warning"))
	}
	if len(p.Summary.Cards) > 0 {
		m.addf("<dl class=\"cards\">\n")
		for _, c := range p.Summary.Cards {
			m.addf("<div><dt>%s</dt><dd><strong>%s</strong>", c.Label, c.Value)
			m.some(` <small>%s</small>`, c.Sub)
			m.addf("</dd></div>\n")
		}
		m.addf("</dl>")
	}
	m.addf("\n</section>\n")
}

func (p *page) warnings(m *markup) {
	if len(p.Warnings) == 0 {
		return
	}
	m.addf(`<section id="warnings" aria-labelledby="warnings-h" class="warnings">
<h2 id="warnings-h">Before you rely on this</h2>
<ul>
`)
	for _, w := range p.Warnings {
		m.addf("<li>%s", w.Text)
		m.command(w.Command)
		m.addf("</li>\n")
	}
	m.addf("</ul>\n</section>")
}

// section adds a part that has nothing but one table; without it only its line.
func section(m *markup, id, title string, t *table) {
	if t != nil {
		m.addf("<section id=\"%s\" aria-labelledby=\"%s-h\">\n<h2 id=\"%s-h\">%s</h2>\n", id, id, id, title)
		m.table(t)
		m.addf("\n</section>")
	}
	m.addf("\n")
}

func (p *page) policies(m *markup) {
	m.addf("<section id=\"policies\" aria-labelledby=\"policies-h\">\n<h2 id=\"policies-h\">Who wins where</h2>\n")
	m.table(p.Matrix)
	m.table(p.Compared)
	m.addf("\n")
	m.some(`<p class="note">%s</p>`, p.Oracle)
	m.addf("\n")
	m.table(p.Across)
	m.addf("\n</section>\n")
}

func (p *page) scenarios(m *markup) {
	m.addf("<section id=\"scenarios\" aria-labelledby=\"scenarios-h\">\n<h2 id=\"scenarios-h\">%s</h2>\n", p.oneOrSeveral("The scenario", "Scenario by scenario"))
	for i := range p.Scenarios {
		p.Scenarios[i].render(m)
	}
	m.addf("</section>\n")
}

func (w *scenario) render(m *markup) {
	m.addf("<details id=\"%s\" open=\"\">\n<summary><h3>%s</h3> <span class=\"note\">%s", w.ID, w.Name, w.Span)
	m.some(" · %s", w.Best)
	m.addf("</span></summary>\n<div class=\"inside\">\n")
	m.table(w.Compared)
	m.addf("\n")
	m.some(`<p class="note">%s</p>`, w.Oracle)
	m.addf("\n")
	m.figures(w.Figures)
	m.addf("\n")
	m.table(w.Namespaces)
	m.addf("\n")
	m.folded("Runs", "click one to see its week", w.Runs)
	m.table(w.Windows)
	m.addf("\n")
	m.folded("Workloads", "what became of each under each policy", w.Workloads)
	m.table(w.Worst)
	m.addf("\n")
	m.table(w.Outages)
	m.addf("\n</div>\n</details>\n")
}

func (p *page) worst(m *markup) {
	what := "runs"
	if p.Across != nil {
		what = "outages"
	}
	m.addf("<section id=\"worst\" aria-labelledby=\"worst-h\">\n<h2 id=\"worst-h\">Worst %s</h2>\n", what)
	m.table(p.Worst)
	m.addf("\n")
	m.table(p.Outages)
	m.addf("\n</section>\n")
}

func (p *page) assumptions(m *markup) {
	m.addf("<section id=\"assumptions\" aria-labelledby=\"assumptions-h\">\n<h2 id=\"assumptions-h\">Assumptions</h2>\n")
	m.table(&p.Traces)
	m.addf("\n")
	m.table(&p.Windows)
	m.addf("\n<h3>Configuration</h3>\n<dl class=\"settings\">\n")
	for _, s := range p.Settings {
		m.addf("<div><dt>%s</dt><dd>%s", s.Name, s.Value)
		m.command(s.Command)
		m.addf("</dd></div>\n")
	}
	m.addf("</dl>\n<h3>Notes</h3>\n<ul class=\"notes\">\n")
	for _, n := range p.Notes {
		m.addf("<li>%s</li>\n", n)
	}
	m.addf(`</ul>
<details>
<summary><h3>The market model</h3> <span class="note">%d constants and what each rests on</span></summary>
<div class="inside">`, len(p.Model.Rows))
	m.table(&p.Model)
	m.addf("</div>\n</details>\n</section>\n")
}

func (p *page) definitions(m *markup) {
	m.addf(`<section id="definitions" aria-labelledby="definitions-h">
<h2 id="definitions-h">Definitions</h2>
<details>
<summary><h3>Figures</h3> <span class="note">%d of them, as they are called in every output and in gates</span></summary>
<div class="inside"><dl class="settings">
`, len(p.Definitions))
	for _, d := range p.Definitions {
		m.addf("<div><dt><code>%s</code> <small>%s</small></dt><dd>%s</dd></div>\n", d.Name, d.Unit, d.About)
	}
	m.addf("</dl></div>\n</details>\n</section>\n")
}
