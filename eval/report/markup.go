package report

import (
	"bytes"
	"fmt"
	"strings"
)

// A trusted is HTML from this package that is written to a page unescaped.
type trusted string

// A markup is a page as it is written. It is made by calls and not from a template of
// html/template, since a program that can run templates keeps every exported method
// of everything it links, and is twice as large for it.
type markup struct{ bytes.Buffer }

// escaper makes text safe in an element and in a quoted attribute.
var escaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<",
	"&lt;", ">", "&gt;")

// addf adds format with values in place of its verbs. Every string among them is
// escaped, so that only what is trusted can hold HTML.
func (m *markup) addf(format string, values ...any) {
	escaped := make([]any, len(values))
	for i, v := range values {
		if s, ok := v.(string); ok {
			v = escaper.Replace(s)
		}
		escaped[i] = v
	}
	fmt.Fprintf(&m.Buffer, format, escaped...)
}

// some adds format with value, and nothing where value is empty.
func (m *markup) some(format, value string) {
	if value != "" {
		m.addf(format, value)
	}
}

// command adds a command that can be copied, with a space before it.
func (m *markup) command(c string) { m.some(` <span class="command"><code>%s</code></span>`, c) }

// table adds t, and nothing where it is nil. The ends of cells and rows are left out, which HTML
// does not need.
func (m *markup) table(t *table) {
	if t == nil {
		return
	}
	m.addf("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">\n<table", t.Caption)
	m.some(` class="%s"`, t.classes())
	m.addf(">\n<caption>%s", t.Caption)
	m.some(` <span class="note">%s</span>`, t.Note)
	m.addf("</caption>\n<thead><tr>")
	for _, h := range t.Head {
		m.addf(`<th scope="col"`)
		if h.Words {
			m.addf(` class="words"`)
		}
		m.addf(">%s", h.Text)
		m.some(` <small>%s</small>`, h.Unit)
	}
	m.addf("</thead>\n<tbody>\n")
	for _, row := range t.Rows {
		m.row(row)
	}
	m.addf("</tbody>\n</table>\n</div>\n")
}

// classes returns those of t: whether it can be sorted, and which columns are words.
func (t *table) classes() string {
	var all []string
	if t.Sortable {
		all = append(all, "sortable")
	}
	for i, h := range t.Head {
		if h.Words && i > 0 {
			all = append(all, fmt.Sprintf("w%d", i+1))
		}
	}
	return strings.Join(all, " ")
}

func (m *markup) row(cells []cell) {
	m.addf("<tr")
	m.some(` class="%s"`, cells[0].Class)
	if w := cells[0].Week; w > 0 {
		m.addf(` data-week="%d"`, w)
	}
	m.addf(`><th scope="row">%s`, cells[0].Text)
	m.some(` <small>%s</small>`, cells[0].Sub)
	for _, c := range cells[1:] {
		m.addf("<td")
		m.some(` class="%s"`, c.Class)
		m.addf(">%s", c.Text)
		m.some(` <small>%s</small>`, strings.ReplaceAll(c.Sub, "−", "−\u2060")) // no line ends before the number
		m.command(c.Command)
	}
	m.addf("\n")
}

func (m *markup) figures(all []figure) {
	if len(all) == 0 {
		return
	}
	m.addf("<div class=\"figures\">\n")
	for _, f := range all {
		m.addf(`<figure>
<figcaption><strong>%s</strong> <span class="note">%s</span></figcaption>
<div class="picture" data-picture="%s"%s>%s</div>
</figure>
`, f.Title, f.Note, f.ID, seriesAttribute(f.Policies), f.SVG)
	}
	m.addf("</div>\n")
}

// seriesAttribute says of which policies the series of a picture are: the places of those of one
// series with commas between them.
func seriesAttribute(policies [][]int) trusted {
	if policies == nil {
		return ""
	}
	text := strings.NewReplacer("] [", " ", " ", ",", "[[", "", "]]", "").Replace(fmt.Sprint(policies))
	return trusted(` data-series="` + text + `"`)
}

// section adds a part of the page.
func (m *markup) section(id, class, title string, badge trusted, body func()) {
	m.addf("<section id=\"%s\" aria-labelledby=\"%s-h\" class=\"%s\">\n<h2 id=\"%s-h\">%s%s</h2>\n", id, id, class, id,
		title, badge)
	body()
	m.addf("</section>\n")
}

// folded adds a table under a summary that opens it, and nothing where it is nil.
func (m *markup) folded(title, note string, t *table) {
	if t != nil {
		m.fold("", title, note, func() { m.table(t) })
	}
}

func (m *markup) fold(attributes trusted, title, note string, body func()) {
	m.addf("<details%s>\n<summary><h3>%s</h3> <span class=\"note\">%s</span></summary>\n<div class=\"inside\">\n",
		attributes, title, note)
	body()
	m.addf("</div>\n</details>\n")
}

// list adds a list of terms with their meanings.
func (m *markup) list(all []setting) {
	m.addf("<dl class=\"settings\">\n")
	for _, s := range all {
		m.addf("<div><dt>%s", s.Name)
		m.some(" <small>%s</small>", s.Unit)
		m.addf("</dt><dd>%s", s.Value)
		m.command(s.Command)
		m.addf("</dd></div>\n")
	}
	m.addf("</dl>\n")
}
