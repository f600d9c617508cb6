package top

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spotter-dev/spotter/policy/figures"
)

// none replaces unknown values.
const none = figures.Unknown

// nameMin is the minimum width to which names of nodes and pools are shortened.
const nameMin = 12

// columns are the columns of the table. Wide ones are shown only in a wide table.
var columns = []struct {
	heading string
	wide    bool
	right   bool
	cell    func(region string, n *Node, wide bool) string
}{
	{"NODE", false, false, func(_ string, n *Node, wide bool) string { return nameOf(n, wide) }},
	{"POOL", false, false, func(_ string, n *Node, _ bool) string { return cmp.Or(n.Pool, none) }},
	{"TYPE", false, false, func(_ string, n *Node, _ bool) string { return cmp.Or(n.Type, none) }},
	{"ZONE", false, false, func(region string, n *Node, wide bool) string { return zoneOf(n, region, wide) }},
	{"BUY", false, false, func(_ string, n *Node, _ bool) string { return n.Capacity }},
	{"vCPU", true, true, func(_ string, n *Node, _ bool) string { return fmt.Sprintf("%.4g", n.VCPU) }},
	{"GiB", true, true, func(_ string, n *Node, _ bool) string { return fmt.Sprintf("%.4g", n.Memory) }},
	{"$/H", false, true, func(_ string, n *Node, _ bool) string { return priceOf(n) }},
	{"AGE", false, true,
		func(_ string, n *Node, _ bool) string { return span(time.Duration(n.Age * float64(time.Second))) }},
	{"CPU", false, true, func(_ string, n *Node, _ bool) string { return percent(n.CPUUse) }},
	{"MEM", false, true, func(_ string, n *Node, _ bool) string { return percent(n.MemoryUse) }},
	{"PODS", false, true, func(_ string, n *Node, _ bool) string {
		if n.Pods == nil {
			return none
		}
		return fmt.Sprint(*n.Pods)
	}},
	{"PROVIDER", true, false, func(_ string, n *Node, _ bool) string { return cmp.Or(n.Provider, none) }},
	{"PRICE OF", true, false, func(_ string, n *Node, _ bool) string { return cmp.Or(n.PriceOf, none) }},
}

// Lines returns the table as text. Names are shortened so that lines have at most width runes; a
// width of 0 means no limit. At most rows nodes are listed; a negative number means all.
func (t *Table) Lines(width, rows int, wide bool) []string {
	shown := t.Nodes
	if rows >= 0 && rows < len(shown) {
		shown = shown[:rows]
	}
	lines := t.summary()
	if len(t.Nodes) > 0 {
		lines = append(lines, "")
		lines = append(lines, t.grid(shown, width, wide)...)
		if left := len(t.Nodes) - len(shown); left > 0 {
			lines = append(lines, "… "+figures.Count(left, "more node"))
		}
	}
	if len(t.Sources)+len(t.Notes) > 0 {
		lines = append(lines, "")
	}
	return append(append(lines, t.Sources...), t.Notes...)
}

// write writes the table as text.
func (t *Table) write(w io.Writer, width int, wide bool) error {
	_, err := io.WriteString(w, strings.Join(t.Lines(width, -1, wide), "\n")+"\n")
	return err
}

// summary returns the lines with totals: nodes, and dollars if any price is known.
func (t *Table) summary() []string {
	x := &t.Totals
	nodes := figures.Count(x.Nodes, "node")
	if region := t.region(); region != "" {
		nodes += " in " + region
	}
	nodes += fmt.Sprintf(", %d on Spot", x.Spot)
	if x.Nodes > 0 {
		nodes += fmt.Sprintf(" (%s)", figures.Share(float64(x.Spot)/float64(x.Nodes), 0))
	}
	if x.VCPU > 0 {
		nodes += fmt.Sprintf("; Spot has %s of %.4g vCPU", figures.Share(x.SpotVCPU/x.VCPU, 0), x.VCPU)
	}
	unpriced := figures.Count(x.Nodes-x.Priced, "node") + " without a known price"
	switch {
	case x.Nodes == 0:
		return []string{nodes}
	case x.Priced == 0:
		return []string{nodes, unpriced}
	}
	dollars := fmt.Sprintf("%s an hour, %s a month", figures.Dollars(x.PerHour), figures.Dollars(x.PerMonth))
	if x.Priced < x.Nodes {
		dollars += ", not counting " + unpriced
	}
	return []string{nodes, dollars}
}

// grid returns the heading and a line for each node, followed by its notices.
func (t *Table) grid(nodes []Node, width int, wide bool) []string {
	var shown []int
	for i := range columns {
		if wide || !columns[i].wide {
			shown = append(shown, i)
		}
	}
	region := t.region()
	cells, size := make([][]string, len(nodes)+1), make([]int, len(shown))
	for row := range cells {
		for k, i := range shown {
			text := columns[i].heading
			if row > 0 {
				text = columns[i].cell(region, &nodes[row-1], wide)
			}
			cells[row] = append(cells[row], text)
			size[k] = max(size[k], utf8.RuneCountInString(text))
		}
	}
	numberGap := textGap
	if width > 0 && !wide && total(size, numberGap) > width {
		numberGap = 1
		shrink(size, width)
	}
	var lines []string
	for row := range cells {
		var b strings.Builder
		for k, i := range shown {
			pad(&b, cut(cells[row][k], size[k]), size[k], columns[i].right)
			b.WriteString(strings.Repeat(" ", gap(k, numberGap)))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
		if row > 0 && len(nodes[row-1].Notices) > 0 {
			lines = append(lines, "  ! "+strings.Join(nodes[row-1].Notices, "; "))
		}
	}
	return lines
}

// textGap is the number of spaces after a text column.
const textGap = 2

// gap returns the number of spaces after a column. The gaps after number columns are smaller if
// lines are short.
func gap(column, numberGap int) int {
	if column < 4 {
		return textGap
	}
	return numberGap
}

// total returns the length of a line.
func total(size []int, numberGap int) int {
	sum := -numberGap
	for k := range size {
		sum += size[k] + gap(k, numberGap)
	}
	return sum
}

// shrink reduces the width of the pool column and then of the node column until lines have at most
// width runes.
func shrink(size []int, width int) {
	for _, k := range []int{1, 0} {
		over := max(0, total(size, 1)-width)
		size[k] = max(size[k]-over, min(size[k], nameMin))
	}
}

func pad(b *strings.Builder, text string, size int, right bool) {
	space := strings.Repeat(" ", max(0, size-utf8.RuneCountInString(text)))
	if right {
		b.WriteString(space + text)
		return
	}
	b.WriteString(text + space)
}

// cut shortens a text to size runes in the middle, since nodes often differ at the ends of their
// names.
func cut(text string, size int) string {
	r := []rune(text)
	if len(r) <= size {
		return text
	}
	head := (size - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(size-1-head):])
}

// nameOf returns the name of a node, without its domain unless the table is wide.
func nameOf(n *Node, wide bool) string {
	if short, _, _ := strings.Cut(n.Name, "."); !wide && short != "" {
		return short
	}
	return n.Name
}

// region returns the region of all nodes, or empty if they are in several regions.
func (t *Table) region() string {
	only := ""
	for i := range t.Nodes {
		switch r := t.Nodes[i].Region; {
		case only == "":
			only = r
		case r != only && r != "":
			return ""
		}
	}
	return only
}

// zoneOf returns the zone of a node, or its region if it has no zone. If all nodes are in one
// region, which the summary names, the zone is shortened to a suffix such as "a".
func zoneOf(n *Node, region string, wide bool) string {
	if n.Zone == "" {
		return cmp.Or(n.Region, none)
	}
	if rest, inside := strings.CutPrefix(n.Zone, region); inside && rest != "" && !wide {
		return strings.TrimPrefix(rest, "-")
	}
	return n.Zone
}

// priceOf formats a price. A tilde marks a price that is recorded or modelled.
func priceOf(n *Node) string {
	if n.Price == nil {
		return none
	}
	text := fmt.Sprintf("%.3f", *n.Price)
	if n.PriceOf == sourceRecorded || n.PriceOf == sourceModelled {
		return "~" + text
	}
	return text
}

func percent(x *float64) string {
	if x == nil {
		return none
	}
	return figures.Share(*x, 0)
}

// span formats a duration like kubectl, in its largest unit.
func span(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
