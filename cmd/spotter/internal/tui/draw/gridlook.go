package draw

import (
	"cmp"

	"github.com/spotter-dev/spotter/policy/figures"
)

// A gridGroup is the nodes of one pool in one market, a contiguous part of the order.
type gridGroup struct {
	pool, market int32
	first, count int
}

// A gridRow is one line: cells of a group, or the title of its pool if count is 0.
type gridRow struct{ group, first, count int }

// A gridLabel is the widths of the parts of the label before the cells; 0 for a part that is
// omitted.
type gridLabel struct{ kind, zone, price, number, width int }

// A gridLook is the layout of a grid on a canvas.
type gridLook struct {
	order    []int32 // indexes of Grid.Nodes in the order of drawing
	groups   []gridGroup
	rows     []gridRow
	label    gridLabel
	cell     int // columns of one cell
	selected int // index in order, or -1

	head, legend, more bool
	body               int // lines of rows
	top                int // first visible row
}

// first returns the line of the first row.
func (l gridLook) first() int {
	if l.head {
		return 1
	}
	return 0
}

// listMin is the minimum width in columns of a node on a separate line.
const listMin = 34

// look returns the layout of g on w columns and h lines: one line per node if h lines are enough;
// otherwise the widest cells with which every market takes one line, so that lengths are
// comparable; otherwise the widest with which all nodes fit, or the narrowest.
func (g Grid) look(w, h int) gridLook {
	l := gridLook{head: h >= 5, legend: h >= 8, body: h, selected: -1}
	if l.head {
		l.body--
	}
	if l.legend {
		l.body--
	}
	g.arrange(&l)
	l.label = g.labels(w, l.groups)
	l.fit(w - l.label.width)
	if len(l.rows) > l.body && l.body >= 3 {
		l.more = true
		l.body--
	}
	l.top = window(l.rowOf(l.selected), len(l.rows), l.body)
	return l
}

// fit chooses the width of cells and divides the groups into rows of w columns.
func (l *gridLook) fit(w int) {
	longest := 0
	for _, g := range l.groups {
		longest = max(longest, g.count)
	}
	if l.titles()+len(l.order) <= l.body && w >= listMin {
		l.cell = w
		l.rows = rowsOf(l.groups, 1)
		return
	}
	for l.cell = 3; l.cell > 1; l.cell-- {
		if longest*l.cell <= w {
			break
		}
	}
	if longest*l.cell > w {
		for l.cell = 3; l.cell > 1; l.cell-- {
			if len(rowsOf(l.groups, max(w/l.cell, 1))) <= l.body {
				break
			}
		}
	}
	l.rows = rowsOf(l.groups, max(w/l.cell, 1))
}

// arrange sets the order and the groups: by pool, then Spot before on-demand, then by market.
func (g Grid) arrange(l *gridLook) {
	markets := len(g.Markets) + 1
	counts := make([]int32, (len(g.Pools)+1)*2*markets)
	place := func(i int) int {
		n := g.Nodes[i]
		// Nodes without a pool and unknown markets come last.
		pool, market := len(g.Pools), len(g.Markets)
		if n.Pool >= 0 && int(n.Pool) < pool {
			pool = int(n.Pool)
		}
		if n.Market >= 0 && int(n.Market) < market {
			market = int(n.Market)
		}
		second := 1
		if n.Spot {
			second = 0
		}
		return (pool*2+second)*markets + market
	}
	for i := range g.Nodes {
		counts[place(i)]++
	}
	next := int32(0)
	for k, n := range counts {
		if n > 0 {
			l.groups = append(l.groups, gridGroup{first: int(next), count: int(n)})
		}
		counts[k], next = next, next+n
	}
	l.order = make([]int32, len(g.Nodes))
	for i, n := range g.Nodes {
		k := place(i)
		at := counts[k]
		l.order[at], counts[k] = int32(i), at+1
		if g.Selected != "" && n.Name == g.Selected {
			l.selected = int(at)
		}
	}
	for i := range l.groups {
		first := g.Nodes[l.order[l.groups[i].first]]
		l.groups[i].pool, l.groups[i].market = first.Pool, first.Market
	}
}

// labels returns the widths of labels in w columns. Labels take little more than half of the
// columns. The widths depend on all markets, not only those in use, so that cells do not move over
// time.
func (g Grid) labels(w int, groups []gridGroup) gridLabel {
	l := gridLabel{kind: 7, zone: 0, number: 3}
	for _, group := range groups {
		l.number = max(l.number, Width(figures.Integer(group.count)))
	}
	for _, m := range g.Markets {
		l.kind, l.zone = max(l.kind, len(m.Type)), max(l.zone, len(m.Zone))
	}
	l.kind, l.zone, l.price = min(l.kind, 18), min(l.zone, 16), 8
	sum := func() int {
		n := 2 + l.kind + 1 + l.number + 1
		if l.zone > 0 {
			n += l.zone + 1
		}
		if l.price > 0 {
			n += l.price + 1
		}
		return n
	}
	for _, narrow := range []func(){
		func() { l.zone = min(l.zone, 10) },
		func() { l.price = 0 },
		func() { l.kind = min(l.kind, 12) },
		func() { l.zone = min(l.zone, 6) },
		func() { l.zone = 0 },
		func() { l.kind = 5 },
	} {
		if sum()*9 > w*5 {
			narrow()
		}
	}
	l.width = min(sum(), w)
	return l
}

// rowsOf returns the lines of groups with the given number of cells in each line.
func rowsOf(groups []gridGroup, cells int) []gridRow {
	rows := make([]gridRow, 0, 2*len(groups))
	for i, g := range groups {
		if i == 0 || groups[i-1].pool != g.pool {
			rows = append(rows, gridRow{group: i})
		}
		for n := 0; n < g.count; n += cells {
			rows = append(rows, gridRow{i, g.first + n, min(cells, g.count-n)})
		}
	}
	return rows
}

// titles returns the number of pool titles.
func (l gridLook) titles() int {
	n := 0
	for i, g := range l.groups {
		if i == 0 || l.groups[i-1].pool != g.pool {
			n++
		}
	}
	return n
}

// rowOf returns the row of the node at an index of the order, or -1.
func (l gridLook) rowOf(at int) int {
	if at < 0 {
		return -1
	}
	for i, r := range l.rows {
		if at >= r.first && at < r.first+r.count {
			return i
		}
	}
	return -1
}

// hidden returns the numbers of nodes above and below the visible ones.
func (l gridLook) hidden() (above, below int) {
	for i, r := range l.rows {
		switch {
		case i < l.top:
			above += r.count
		case i >= l.top+l.body:
			below += r.count
		}
	}
	return above, below
}

// NodeAt returns the index in Nodes of the node drawn at x, y on a canvas of w columns and h lines.
// For the label of a row it is the index of the row's first node. It returns false if no node is
// drawn there.
func (g Grid) NodeAt(w, h, x, y int) (int, bool) {
	l := g.look(w, h)
	y -= l.first()
	if y < 0 || y >= l.body || l.top+y >= len(l.rows) {
		return 0, false
	}
	r := l.rows[l.top+y]
	i := max(x-l.label.width, 0) / l.cell
	if i >= r.count {
		return 0, false
	}
	return int(l.order[r.first+i]), true
}

// Move returns the index in Nodes of the node dx cells after and dy lines below the selected one,
// as drawn on w columns and h lines. It stops at the ends. It returns the first node without a
// selection, and -1 without nodes.
func (g Grid) Move(w, h, dx, dy int) int {
	if len(g.Nodes) == 0 {
		return -1
	}
	l := g.look(w, h)
	if l.selected < 0 {
		return int(l.order[0])
	}
	at := min(max(l.selected+dx, 0), len(l.order)-1)
	row := l.rowOf(at)
	column := at - l.rows[row].first
	for step := cmp.Compare(dy, 0); dy != 0; dy -= step {
		next := row + step
		for next >= 0 && next < len(l.rows) && l.rows[next].count == 0 {
			next += step
		}
		if next < 0 || next >= len(l.rows) {
			break
		}
		row = next
		at = l.rows[row].first + min(column, l.rows[row].count-1)
	}
	return int(l.order[at])
}
