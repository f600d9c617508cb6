package report

import (
	"bytes"
	"fmt"
	"strings"
)

// A trusted is HTML from this package, which is written without escaping.
type trusted string

// A markup is a page under construction. It does not use html/template, because the linker keeps
// every exported method of a program that can execute templates, which doubles the size of the
// binary.
type markup struct{ bytes.Buffer }

// escaper escapes text for elements and quoted attributes.
var escaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<",
	"&lt;", ">", "&gt;")

// addf formats according to format. Strings among values are escaped, so only a trusted value can
// contain HTML.
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

// some adds value with format, unless value is empty.
func (m *markup) some(format, value string) {
	if value != "" {
		m.addf(format, value)
	}
}

// command adds a space and a command that can be copied.
func (m *markup) command(c string) { m.some(` <span class="command"><code>%s</code></span>`, c) }

// table adds t, unless it is nil. It omits the optional end tags of cells and rows.
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

// classes returns the CSS classes of t: whether it is sortable, and which columns contain words.
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
		m.some(` <small>%s</small>`, strings.ReplaceAll(c.Sub, "−", "−\u2060")) // prevents a line break before the number
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

// seriesAttribute returns the attribute with the policies of each series of a picture: series are
// separated by spaces, the indexes of a series by commas.
func seriesAttribute(policies [][]int) trusted {
	if policies == nil {
		return ""
	}
	text := strings.NewReplacer("] [", " ", " ", ",", "[[", "", "]]", "").Replace(fmt.Sprint(policies))
	return trusted(` data-series="` + text + `"`)
}

// section adds a section of the page.
func (m *markup) section(id, class, title string, badge trusted, body func()) {
	m.addf("<section id=\"%s\" aria-labelledby=\"%s-h\" class=\"%s\">\n<h2 id=\"%s-h\">%s%s</h2>\n", id, id, class, id,
		title, badge)
	body()
	m.addf("</section>\n")
}

// folded adds a table in a collapsed element with a title, unless the table is nil.
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

// list adds a definition list.
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
