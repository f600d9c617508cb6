package format

import (
	"bytes"
	"fmt"
	"io"
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
	head := "# " + escape(Title(r)) + "\n\n**" + escape(verdictOf(r).String()) + "**\n"
	_, err := io.WriteString(w, cutToFit(head, blocks(r), MarkdownMax))
	return err
}

// blocks are the parts of the report below its result, in the order of reading.
func blocks(r *eval.Report) []block {
	failed, _ := gatesByResult(r)
	first := failed[:min(len(failed), failedFirst)]
	parts := []Section{{Heading: "Gates", Items: first, rank: rankWhy}, {Heading: "More gates that failed", Items: failed[len(first):], rank: rankDetail},
		{Heading: "Warnings", Items: Warnings(r), rank: rankWhy}}
	return sectionBlocks(append(append(parts, acrossSections(r)...), sections(r, 0, false)...))
}

// acrossSections are what is said over several scenarios, none with one.
func acrossSections(r *eval.Report) []Section {
	heading, rows := acrossTable(r)
	if rows == nil {
		return nil
	}
	heading[0] = "POLICY"
	out := Section{Heading: AcrossTitle(r), Table: plainTable(heading, rows), What: "policies", rank: rankFound}
	heading, rows = scenarioTable(r)
	return []Section{out, {
		About: "Saved is the median of net savings in percent of the on-demand bill, after what outages cost; at most is what the " + eval.OracleName + " saves.",
		Table: plainTable(heading, rows), What: "scenarios", rank: rankFound,
	}, {Heading: "Worst outages", Items: worstOutageCommands(r), rank: rankWhy}}
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

// sectionBlocks makes sections blocks: a list or a table under a heading, or a sentence.
func sectionBlocks(all []Section) (out []block) {
	for i := range all {
		s := &all[i]
		switch {
		case len(s.Table.Rows) > 0:
			about := ""
			if s.Heading != "" {
				about = "\n## " + escape(s.Heading) + "\n"
			}
			if s.About != "" {
				about += "\n" + escape(s.About) + "\n"
			}
			out = append(out, tableBlock(about, &s.Table, s.rank, s.What))
		case s.About != "":
			out = append(out, block{rows: []string{"\n" + escape(s.About) + "\n"}, rank: s.rank, what: s.What})
		default:
			out = append(out, listBlock(s.Heading, s.Items, s.rank))
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

// tableBlock makes a table a block. Its headings become one line.
func tableBlock(about string, t *Grid, rank int, what string) block {
	var heading []string
	for i := range t.Headings[0] {
		text := ""
		for _, line := range t.Headings {
			text += " " + line[i]
		}
		heading = append(heading, strings.TrimSpace(text))
	}
	var rows [][]string
	for _, row := range t.Rows {
		cells := row.Cells
		if row.First {
			cells = append([]string{firstMark + cells[0]}, cells[1:]...)
		}
		rows = append(rows, cells)
	}
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
