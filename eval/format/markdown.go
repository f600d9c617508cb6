package format

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// MarkdownMax is the greatest size of a report in Markdown, in bytes. GitHub
// takes 65,536 characters for a comment; what is left is for who posts it.
const MarkdownMax = 64<<10 - 1<<10

// A block is a part of the report in Markdown that can lose rows. What is left
// out first has the greatest rank.
type block struct {
	head string
	rows []string
	rank int

	// what the rows are, in the plural, for the line that says how many of them
	// were left out.
	what string
}

// The ranks of blocks. The result stands above all of them and is never cut.
const (
	rankWhy    = iota // what failed, what was compared, how to repeat the worst
	rankNote          // what a reader should know
	rankFound         // the tables of one scenario alone, or across several
	rankDetail        // the tables of each of several scenarios
)

// failedFirst is how many gates that failed go before all tables. With many
// scenarios one gate fails many times.
const failedFirst = 50

// writeMarkdown writes the report as GitHub's Markdown. It begins with the
// result; with several scenarios what compares them follows. It is at most
// [MarkdownMax] long: what does not fit is left out, least important first, and
// a line says so.
func writeMarkdown(w io.Writer, r *eval.Report) error {
	head := "# " + escape(Title(r)) + "\n\n**" + escape(resultLine(r)) + "**\n"
	if c := r.Comparison; c != nil {
		head += "\n" + escape(Headline(c)) + "\n"
	}
	_, err := io.WriteString(w, cutToFit(head, blocks(r), MarkdownMax))
	return err
}

// blocks are the parts of the report below its result, in the order of reading.
func blocks(r *eval.Report) []block {
	var out []block
	failed, passed := gatesByResult(r)
	first := failed[:min(len(failed), failedFirst)]
	out = append(out, listBlock("Gates", first, rankWhy), listBlock("More gates that failed", failed[len(first):], rankDetail))
	if len(failed) == 0 {
		out = append(out, listBlock("Gates", passed, rankNote))
	} else {
		out = append(out, listBlock("Gates that passed", passed, rankNote))
	}
	if r.Comparison != nil {
		c := comparison{r.Comparison}
		heading, rows := c.table()
		out = append(out, listBlock(c.title(), c.lines(), rankWhy))
		if rows != nil {
			out = append(out, tableBlock("", heading, rows, rankWhy, "changes"))
		}
	}
	out = append(out, listBlock("Warnings", Warnings(r), rankWhy))
	out = append(out, acrossBlocks(r)...)
	out = append(out, listBlock("Manifests not kept", Violations(r), rankNote))
	notes := Notes(r)
	if len(r.Groups) == 1 {
		g := &r.Groups[0]
		out = append(out, groupBlocks(r, g)...)
		out = append(out, listBlock("Runs with outages", outageLines(r, g), rankFound), listBlock("Worst runs", worstLines(r, g), rankWhy))
	} else {
		for i := range r.Groups {
			out = append(out, shortBlocks(r, &r.Groups[i])...)
		}
		notes = slices.DeleteFunc(notes, func(note string) bool { return note == movedNote || note == commitmentNote(&r.Config) })
	}
	return append(out,
		listBlock("Missing runs", missingLines(r), rankWhy), listBlock("Notes", notes, rankNote), listBlock("Configuration", Settings(r), rankNote))
}

// acrossBlocks are what is said over several scenarios, none with one.
func acrossBlocks(r *eval.Report) []block {
	heading, rows := acrossTable(r)
	if rows == nil {
		return nil
	}
	heading[0] = "POLICY"
	out := []block{tableBlock("\n## "+AcrossTitle(r)+"\n", heading, rows, rankFound, "policies")}
	heading, rows = scenarioTable(r)
	about := "\nSaved is the median of net savings in percent of the on-demand bill, after what outages cost; at most is what the " + eval.OracleName + " saves.\n"
	return append(out, tableBlock(about, heading, rows, rankFound, "scenarios"), listBlock("Worst outages", worstOutageCommands(r), rankWhy))
}

// gatesByResult splits the lines of the gates.
func gatesByResult(r *eval.Report) (failed, passed []string) {
	for i := range r.Gates {
		if line := gateLine(r, &r.Gates[i]); r.Gates[i].Pass {
			passed = append(passed, line)
		} else {
			failed = append(failed, line)
		}
	}
	return failed, passed
}

// groupBlocks are the tables of g where it is the only scenario.
func groupBlocks(r *eval.Report, g *eval.Group) []block {
	var heading []string
	for _, c := range columns {
		heading = append(heading, strings.TrimSpace(c.top+" "+c.under))
	}
	out := append([]block{tableBlock("", heading, cells(r, g, columns), rankFound, "policies")}, otherTables(r, g, rankFound)...)
	if line := OracleLine(r, g); line != "" {
		out = append(out, block{rows: []string{"\n" + escape(line) + "\n"}, rank: rankFound, what: "sentences"})
	}
	return out
}

// shortBlocks are the tables of g where it is one of several scenarios.
func shortBlocks(r *eval.Report, g *eval.Group) []block {
	heading, rows := rankedTable(r, g)
	return append([]block{tableBlock("\n## "+escape(g.Scenario)+"\n", heading, rows, rankDetail, "policies")}, otherTables(r, g, rankDetail)...)
}

// otherTables are those of [groupTables] that have something to say of g.
func otherTables(r *eval.Report, g *eval.Group, rank int) (out []block) {
	for _, table := range groupTables {
		if heading, rows := table(r, g); rows != nil {
			out = append(out, tableBlock("", heading, rows, rank, "rows"))
		}
	}
	return out
}

// cutToFit joins head and blocks to at most size bytes. Of the blocks with the
// greatest rank the last loses its last rows first. What failed and how to
// repeat the worst run is cut only where that alone is too long, and then each
// list keeps its part of the room.
func cutToFit(head string, blocks []block, size int) string {
	total := len(head)
	texts := make([]string, len(blocks))
	for i := range blocks {
		texts[i] = blocks[i].text(len(blocks[i].rows))
		total += len(texts[i])
	}
	if total <= size {
		return head + strings.Join(texts, "")
	}
	const note = "\n*%d tables of single scenarios left out to fit; the other formats have all.*\n"
	gone := 0
	total += len(note) + len(strconv.Itoa(len(blocks)))
	for rank := rankDetail; rank > rankWhy; rank-- {
		for i := len(blocks) - 1; i >= 0 && total > size; i-- {
			if blocks[i].rank != rank || len(blocks[i].rows) == 0 {
				continue
			}
			total -= len(texts[i])
			if texts[i] = blocks[i].shortened(size - total); len(texts[i]) > size-total && rank == rankDetail {
				texts[i] = ""
				gone++
			}
			total += len(texts[i])
		}
	}
	if total <= size {
		out := head + strings.Join(texts, "")
		if gone > 0 {
			out += fmt.Sprintf(note, gone)
		}
		return out
	}
	head += "\nAll tables and notes were left out to fit; the other formats have them.\n"
	why := 0
	for i := range blocks {
		if blocks[i].rank == rankWhy && len(blocks[i].rows) > 0 {
			why++
		}
	}
	out := head
	for i := range blocks {
		if blocks[i].rank == rankWhy && len(blocks[i].rows) > 0 {
			out += blocks[i].shortened((size - len(head)) / why)
		}
	}
	return out
}

// text returns the block with its first n rows, and with how many were left
// out.
func (k *block) text(n int) string {
	if len(k.rows) == 0 {
		return ""
	}
	left := ""
	if gone := len(k.rows) - n; gone > 0 {
		left = fmt.Sprintf("\n*%d of %d %s left out to fit; the other formats have all.*\n", gone, len(k.rows), k.what)
	}
	if n == 0 {
		return firstHeading(k.head) + left
	}
	return k.head + strings.Join(k.rows[:n], "") + left
}

// shortened returns as much of the block as fits into size bytes. It may be
// longer where not even the line that says what is missing fits.
func (k *block) shortened(size int) string {
	n := len(k.rows)
	for n > 0 && len(k.text(n)) > size {
		n--
	}
	return k.text(n)
}

// firstHeading returns the heading of a block without what belongs to its rows.
func firstHeading(head string) string {
	for _, line := range strings.Split(head, "\n") {
		if strings.HasPrefix(line, "#") {
			return "\n" + line + "\n"
		}
	}
	return ""
}

// tableBlock makes a table a block.
func tableBlock(about string, heading []string, rows [][]string, rank int, what string) block {
	var b bytes.Buffer
	markdownTable(&b, heading, rows)
	lines := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	const above = 3 // a blank line, the heading and the rule
	out := block{head: about + strings.Join(lines[:above], ""), rank: rank, what: what}
	for _, l := range lines[above:] {
		out.rows = append(out.rows, strings.TrimSuffix(l, "\n")+"\n")
	}
	return out
}

// listBlock makes a list a block.
func listBlock(heading string, items []string, rank int) block {
	out := block{head: "\n## " + escape(heading) + "\n\n", rank: rank, what: "lines"}
	for _, item := range items {
		var b bytes.Buffer
		markdownItem(&b, item)
		out.rows = append(out.rows, b.String())
	}
	return out
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

// markdownItem writes one item of a list; a command after a line break becomes
// code.
func markdownItem(b *bytes.Buffer, item string) {
	first, command, _ := strings.Cut(item, "\n")
	b.WriteString("- " + escape(first))
	if command = strings.TrimSpace(command); command != "" {
		b.WriteString(" `" + command + "`")
	}
	b.WriteByte('\n')
}

// escape keeps s from being read as markup.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "\n", " ").Replace(s)
}
