package format

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/spotter-dev/spotter/policy/figures"
)

// MarkdownMax is the maximum size of a report in Markdown, in bytes. GitHub accepts 65,536
// characters in a comment; the rest is reserved for the program that posts it.
const MarkdownMax = 64<<10 - 1<<10

// CommentQuiet is the first line of a comment without news. Such a comment may replace an older
// one, but does not justify a new one.
const CommentQuiet = "<!-- spotter: nothing new -->"

// Markdown writes a as GitHub Markdown, including the details. The output has at most [MarkdownMax]
// bytes: the least important parts are omitted if necessary, and a line reports the omission.
func (a *Answer) Markdown(w io.Writer) error {
	head := "# " + escape(a.About) + "\n"
	for _, v := range a.Verdicts {
		head += "\n**" + escape(v.String()) + "**\n"
	}
	_, err := io.WriteString(w, fitted(head, a.sections(), "## ", MarkdownMax))
	return err
}

// Comment writes a for reviewers of a change: the title, what they should check, and all other
// parts collapsed below. The output has at most [MarkdownMax] bytes.
func (a *Answer) Comment(w io.Writer) error {
	head := "### " + escape(a.Review.Title.String()) + "\n"
	if a.Review.Quiet {
		head = CommentQuiet + "\n" + head
	}
	for _, b := range blocks(a.Review.Sections, "**", true) {
		head += b.text(len(b.rows))
	}
	const foot = "\n</details>\n"
	head += "\n<details><summary>" + escape(a.Review.Fold) + "</summary>\n\n" + escape(a.About) + "\n"
	_, err := io.WriteString(w, fitted(head, a.sections(), "**", MarkdownMax-len(foot))+foot)
	return err
}

// failedFirst is the number of failed gates that are listed before the tables. With many scenarios,
// one gate may fail many times.
const failedFirst = 50

// sections returns all parts of a below its verdict, in reading order.
func (a *Answer) sections() []Section {
	first := a.Failed[:min(len(a.Failed), failedFirst)]
	out := []Section{
		{Heading: "Gates", Items: first}, {Heading: "More gates that failed", Items: a.Failed[len(first):], rank: rankDetail},
		{Heading: "Warnings", Items: a.Warnings},
	}
	for _, t := range a.Tables {
		out = append(out, Section{Table: t, What: "rows", rank: rankFound})
	}
	return append(out, a.Details...)
}

// A block is a section in Markdown whose rows can be omitted. Blocks with the highest rank are
// omitted first.
type block struct {
	title, head string
	rows        []string
	rank        int

	// what is the plural noun for the rows, for the line that reports how many were omitted.
	what string
}

// blocks converts sections to blocks. level is the prefix of headings: a heading level, or ** for
// bold text. Tables of one of several scenarios only have all their columns if wide is true.
func blocks(all []Section, level string, wide bool) (out []block) {
	for i := range all {
		s := &all[i]
		b := block{rank: s.rank, what: s.What}
		if s.Heading != "" {
			b.title = "\n" + level + escape(s.Heading) + strings.TrimRight(strings.TrimLeft(level, "#"), " ") + "\n"
		}
		if s.About != "" {
			b.head = "\n" + escape(s.About) + "\n"
		}
		switch {
		case len(s.Items) > 0:
			b.head, b.what = b.head+"\n", "lines"
			for k, item := range s.Items {
				b.rows = append(b.rows, markdownItem(k, item, s.Numbered))
			}
		case len(s.Table.Rows) > 0 && s.rank >= rankDetail && !wide:
			narrow, _ := s.Table.fitting(math.MaxInt, false)
			b.table(&narrow)
		case len(s.Table.Rows) > 0:
			b.table(&s.Table)
		case s.Picture != "":
			b.rows = []string{"\n```\n" + strings.ReplaceAll(s.Picture, "```", "'''") + "```\n"}
		case s.About != "":
			b.rows, b.head = []string{b.head}, ""
		}
		out = append(out, b)
	}
	return out
}

// table sets the rows of k to those of t.
func (k *block) table(t *Grid) {
	line := func(cells []string) string {
		for i := range cells {
			cells[i] = escape(cells[i])
		}
		return "| " + strings.Join(cells, " | ") + " |\n"
	}
	var heading []string
	for _, h := range t.Headings {
		heading = append(heading, h.String())
	}
	rule := "|:--|" + strings.Repeat("--:|", max(len(heading)-1, 0))
	if len(heading) == 0 {
		heading = make([]string, len(t.Rows[0].Cells))
		rule = "|" + strings.Repeat(":--|", len(heading))
	}
	k.head += "\n" + line(heading) + rule + "\n"
	for _, row := range t.Rows {
		k.rows = append(k.rows, line(row.line()))
	}
}

// fitted joins head and sections to at most size bytes. If they are longer, it first removes the
// wide columns of tables of one of several scenarios.
func fitted(head string, sections []Section, level string, size int) string {
	all, length := blocks(sections, level, true), len(head)
	for i := range all {
		length += len(all[i].text(len(all[i].rows)))
	}
	if length > size {
		all = blocks(sections, level, false)
	}
	return cutToFit(head, all, size)
}

// cutToFit joins head and blocks to at most size bytes. It removes rows from the end, first of the
// last block with the highest rank. Failures and the commands that repeat the worst runs are only
// cut if nothing else remains; the lists then share the remaining space.
func cutToFit(head string, blocks []block, size int) string {
	const note = "\n*%d parts about single scenarios left out to fit; the other formats have all.*\n"
	total, gone, texts, of := len(head), 0, make([]string, len(blocks)), [rankMore + 1]int{}
	for i := range blocks {
		texts[i] = blocks[i].text(len(blocks[i].rows))
		total += len(texts[i])
		if len(blocks[i].rows) > 0 {
			of[blocks[i].rank]++
		}
	}
	if total <= size {
		return head + strings.Join(texts, "")
	}
	size -= len(note) + len(fmt.Sprint(len(blocks)))
	for rank := rankMore; rank >= rankWhy; rank-- {
		room := size - total // for what remains, shared by the blocks of a rank
		for i := range blocks {
			if blocks[i].rank == rank {
				room += len(texts[i])
			}
		}
		for i := len(blocks) - 1; i >= 0 && total > size; i-- {
			if blocks[i].rank != rank || len(blocks[i].rows) == 0 {
				continue
			}
			limit := size - total + len(texts[i])
			if rank == rankWhy {
				limit = max(limit, room/of[rank])
			}
			total -= len(texts[i])
			if texts[i] = blocks[i].shortened(limit); len(texts[i]) > limit && rank >= rankDetail {
				texts[i] = ""
				gone++
			}
			total += len(texts[i])
		}
	}
	out := head + strings.Join(texts, "")
	if gone > 0 {
		out += fmt.Sprintf(note, gone)
	}
	return out
}

// text returns the block with its first n rows, and the number of omitted rows.
func (k *block) text(n int) string {
	if len(k.rows) == 0 {
		return ""
	}
	left := ""
	if gone := len(k.rows) - n; gone > 0 {
		left = fmt.Sprintf("\n*%d of %d %s left out to fit; the other formats have all.*\n", gone, len(k.rows), k.what)
	}
	if n == 0 {
		return k.title + left
	}
	return k.title + k.head + strings.Join(k.rows[:n], "") + left
}

// shortened returns as many rows of the block as fit into size bytes. The result may be longer if
// even the line about omitted rows does not fit.
func (k *block) shortened(size int) string {
	n := len(k.rows)
	for n > 0 && len(k.text(n)) > size {
		n--
	}
	return k.text(n)
}

// markdownItem formats item k of a list. A command after a line break is formatted as code.
func markdownItem(k int, item string, numbered bool) string {
	mark := "- "
	if numbered {
		mark = fmt.Sprintf("%d. ", k+1)
	}
	first, command, _ := strings.Cut(item, "\n")
	if command = strings.TrimSpace(command); command != "" {
		return mark + escape(first) + " " + code(command) + "\n"
	}
	return mark + escape(first) + "\n"
}

// code formats s as code, with a fence of more backticks than s contains in a row.
func code(s string) string {
	s = figures.Plain(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// markup escapes characters that format text. backtick and cut match text that escape changes:
// backticks, and the sequences that GitHub and GitLab turn into links to people, issues and pages.
// An invisible comment within such a sequence keeps it as text.
var (
	markup = strings.NewReplacer("\n", " ", `\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "~", `\~`, "](", `\](`,
		"<", "&lt;", "&", "&amp;")
	backtick = regexp.MustCompile("`[▁-█]+`|`") // bar characters are intentional code
	cut      = regexp.MustCompile(`(^|\W)@\w|#\d|://|(?i)\bwww\.|\bGH-\d`)
)

// escape escapes s, so that it is not interpreted as markup.
func escape(s string) string {
	s = markup.Replace(figures.Plain(strings.ReplaceAll(s, "\n", " ")))
	s = backtick.ReplaceAllStringFunc(s, func(code string) string {
		if code == "`" {
			return "\\`"
		}
		return code
	})
	return cut.ReplaceAllStringFunc(s, func(link string) string {
		last := len(link) - 1
		if link == "://" {
			last = 1
		}
		return link[:last] + "<!-- -->" + link[last:]
	})
}
