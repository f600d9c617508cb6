package eval

import (
	"bytes"
	"io"
	"strings"
)

// WriteMarkdown writes the report as GitHub's Markdown. With several scenarios
// it begins with what compares them.
func (r *Report) WriteMarkdown(w io.Writer) error {
	b := new(bytes.Buffer)
	b.WriteString("# " + escape(r.title()) + "\n")
	if heading, rows := r.standingTable(); rows != nil {
		b.WriteString("\nNet savings in percent of the on-demand bill, after what outages cost: medians over runs, and in brackets the distance from the best of the row in points.\n")
		markdownTable(b, heading, rows)
		markdownList(b, "Where each is best", r.standingLines())
	}
	if heading, rows := r.worstTable(); rows != nil {
		b.WriteString("\n## Worst runs by scenario\n\nThe run with the most outage minutes above the baseline's, then with the least saved: net savings in percent of the on-demand bill, outage minutes, and the seed.\n")
		markdownTable(b, heading, rows)
	}
	markdownList(b, "Gates", r.gateLines())
	for i := range r.Groups {
		r.markdownGroup(b, &r.Groups[i])
	}
	markdownList(b, "Runs with outages", r.outageLines())
	markdownList(b, "Worst runs", r.worstLines())
	markdownList(b, "Missing runs", r.missingLines())
	markdownList(b, "Notes", r.Notes())
	markdownList(b, "Configuration", r.settings())
	_, err := w.Write(b.Bytes())
	return err
}

// markdownGroup writes the tables of g.
func (r *Report) markdownGroup(b *bytes.Buffer, g *Group) {
	if t := r.groupTitle(g); t != "" {
		b.WriteString("\n## " + escape(t) + "\n")
	}
	var heading []string
	for _, c := range columns {
		heading = append(heading, strings.TrimSpace(c.top+" "+c.under))
	}
	markdownTable(b, heading, r.rows(g, columns))
	for _, table := range []func(*Group) ([]string, [][]string){r.windowTable, r.weeksTable, r.frontierTable} {
		if heading, rows := table(g); rows != nil {
			markdownTable(b, heading, rows)
		}
	}
	if line := r.oracleLine(g); line != "" {
		b.WriteString("\n" + escape(line) + "\n")
	}
}

func markdownTable(b *bytes.Buffer, heading []string, rows [][]string) {
	line := func(cells []string) {
		b.WriteByte('|')
		for _, c := range cells {
			b.WriteString(" " + escape(c) + " |")
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	line(heading)
	b.WriteString("|:--|" + strings.Repeat("--:|", len(heading)-1) + "\n")
	for _, row := range rows {
		line(row)
	}
}

// markdownList writes items; a command after a line break becomes code.
func markdownList(b *bytes.Buffer, heading string, items []string) {
	if len(items) == 0 {
		return
	}
	b.WriteString("\n## " + heading + "\n\n")
	for _, item := range items {
		first, command, _ := strings.Cut(item, "\n")
		b.WriteString("- " + escape(first))
		if command = strings.TrimSpace(command); command != "" {
			b.WriteString(" `" + command + "`")
		}
		b.WriteByte('\n')
	}
}

// escape keeps s from being read as markup.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "\n", " ").Replace(s)
}
