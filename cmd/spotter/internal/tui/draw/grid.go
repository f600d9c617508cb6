package draw

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A GridMarket describes a market in the grid.
type GridMarket struct {
	Type, Zone string
	Spot       bool
	Price      policy.Money // per node-hour, policy.NoPrice if unknown
}

// A Grid shows nodes as cells: one line or more per pool and market, so that the length of a line
// is the number of nodes of a market. The height of a cell is the requested part of the node, and
// its colour shows how the node was bought and its age. A letter marks every state except running.
type Grid struct {
	// Pools and Markets are indexed by Node.Pool and Node.Market.
	Pools   []string
	Markets []GridMarket

	// Nodes are the nodes to show, in any order; the cells of one pool and market keep this order.
	Nodes []timeline.Node

	// Now is the instant shown, from which ages and times until reclaims are computed.
	Now policy.Time

	// Selected is the name of the selected node, or empty. The selected node is always visible.
	Selected string

	// Empty is the text if there are no nodes.
	Empty string
}

// Draw fills c.
func (g Grid) Draw(c Canvas) {
	if len(g.Nodes) == 0 {
		Message{Text: g.Empty}.Draw(c)
		return
	}
	l := g.look(c.w, c.h)
	if l.head {
		g.drawHead(c, l)
	}
	body := c.Sub(0, l.first(), c.w, l.body)
	for y := range min(l.body, len(l.rows)-l.top) {
		r := l.rows[l.top+y]
		if r.count == 0 {
			g.drawPool(body, y, l.groups[r.group].pool, l)
		} else {
			g.drawRow(body, y, r, l)
		}
	}
	if l.more {
		above, below := l.hidden()
		writeMore(c.Sub(0, 0, c.w, l.first()+l.body+1), above, below, "node")
	}
	if l.legend {
		drawLegend(c.Sub(0, c.h-1, c.w, 1))
	}
}

// drawHead writes the first line: the selected node, or a summary without a selection.
func (g Grid) drawHead(c Canvas, l gridLook) {
	var parts []Part
	if l.selected >= 0 {
		parts = g.describe(g.Nodes[l.order[l.selected]])
	} else {
		parts = g.tally(func(timeline.Node) bool { return true })
	}
	writeParts(c, 0, parts)
	if l.selected >= 0 {
		c.Sub(0, 0, c.w, 1).Mark()
	}
}

// describe returns a description of n in one line.
func (g Grid) describe(n timeline.Node) []Part {
	m := g.market(n.Market)
	kind := Say("on-demand", OnDemand)
	if n.Spot {
		kind = Say("spot", Spot)
	}
	parts := []Part{Strong("▸", Accent), Strong(CutMiddle(n.Name, 32), Title), Say("  ", Own)}
	if n.Notice != 0 {
		left := "taken now"
		if d := n.Notice.Sub(g.Now); d > 0 {
			left = "taken in " + figures.Duration(d)
		}
		parts = append(parts, Part{" NOTICE " + left + " ", Style{AlarmInk, Alarm, Bold}}, Say("  ", Own))
	}
	parts = append(parts, kind, Say(" "+n.Phase.String()+"  cpu "+mille(n.CPU)+" mem "+mille(n.Memory), Own))
	if n.GPU >= 0 {
		parts = append(parts, Say(" gpu "+mille(n.GPU), Own))
	}
	age := figures.Duration(g.Now.Sub(n.Since))
	return append(parts, Say("  "+strconv.Itoa(int(n.Pods))+" pods  "+age+" old  ", Own),
		Say(m.Type+" "+m.Zone+" "+PerHour(m.Price), Muted))
}

// mille formats thousandths as percent.
func mille(x int16) string { return figures.RoughShare(float64(x) / 1000) }

// tally counts the nodes for which want returns true, as parts of a line. States without nodes are
// omitted.
func (g Grid) tally(want func(timeline.Node) bool) []Part {
	var all, spot int
	var states [stateCount]int
	for _, n := range g.Nodes {
		if !want(n) {
			continue
		}
		all++
		states[stateOf(n)]++
		if n.Spot {
			spot++
		}
	}
	parts := []Part{
		Strong(figures.Count(all, "node"), Title), Say(" ", Own),
		Say("· "+figures.Integer(spot)+" spot ", Spot), Say("· "+figures.Integer(all-spot)+" on-demand ", OnDemand),
	}
	for s := stateCount - 1; s > running; s-- {
		if states[s] > 0 {
			parts = append(parts,
				Say("· "+string(stateLooks[s].letter)+" "+figures.Integer(states[s])+" "+stateLooks[s].word+" ",
					stateLooks[s].text))
		}
	}
	return parts
}

// drawPool writes the line above the markets of a pool.
func (g Grid) drawPool(c Canvas, y int, pool int32, l gridLook) {
	line := c.Sub(0, y, c.w, 1)
	name := "no pool"
	if pool >= 0 && int(pool) < len(g.Pools) {
		name = g.Pools[pool]
	}
	x := line.Text(0, 0, CutMiddle(name, max(c.w/2, 8)), ink(Title).bold()) + 1
	if l.titles() > 1 || l.selected >= 0 || !l.head { // otherwise the first line has the same summary
		x = writeParts(line, x, g.tally(func(n timeline.Node) bool { return n.Pool == pool }))
	}
	for ; x < c.w; x++ {
		line.Set(x, 0, '─', ink(Faint))
	}
}

// drawRow writes one line of cells. The first line of a market starts with its label.
func (g Grid) drawRow(c Canvas, y int, r gridRow, l gridLook) {
	group := l.groups[r.group]
	if r.first == group.first || y == 0 {
		g.drawLabel(c.Sub(0, y, l.label.width, 1), group, l.label)
	}
	for i := range r.count {
		at := r.first + i
		g.drawNode(c.Sub(l.label.width+i*l.cell, y, l.cell, 1), g.Nodes[l.order[at]], at == l.selected)
	}
}

// drawLabel writes the market of a line.
func (g Grid) drawLabel(c Canvas, group gridGroup, l gridLabel) {
	m := g.market(group.market)
	s, mark := ink(OnDemand), "O "
	if m.Spot {
		s, mark = ink(Spot), "S "
	}
	x := c.Text(0, 0, mark, s.bold())
	c.Text(x, 0, CutMiddle(m.Type, l.kind), s)
	x += l.kind + 1
	if l.zone > 0 {
		c.Text(x, 0, CutMiddle(m.Zone, l.zone), ink(Muted))
		x += l.zone + 1
	}
	if l.price > 0 {
		p := Price(m.Price)
		c.Text(x+l.price-Width(p), 0, p, ink(Muted))
		x += l.price + 1
	}
	n := figures.Integer(group.count)
	c.Text(x+l.number-Width(n), 0, n, Style{}.bold())
}

// drawNode fills c, the cell of one node.
func (g Grid) drawNode(c Canvas, n timeline.Node, selected bool) {
	if c.w >= listMin {
		g.drawLine(c, n, selected)
		return
	}
	state := stateOf(n)
	fill, s := fillRune(n), ink(ageInk(n.Spot, g.Now.Sub(n.Since)))
	look := stateLooks[state]
	switch {
	case state == noticed:
		alarm := Style{AlarmInk, Alarm, Bold}
		c.Set(0, 0, '!', alarm)
		if c.w == 2 {
			c.Set(1, 0, fill, Style{Notice, Own, 0})
		} else {
			c.Text(1, 0, countdown(n.Notice.Sub(g.Now)), alarm)
		}
	case c.w == 1 && state != running:
		c.Set(0, 0, look.letter, ink(look.text).bold())
	default:
		c.Set(0, 0, fill, s)
		if state != running {
			c.Set(1, 0, look.letter, ink(look.text).bold())
		} else if c.w > 2 {
			c.Set(1, 0, fill, s)
		}
	}
	if !selected {
		return
	}
	if c.w == 1 {
		c.Set(0, 0, '◆', ink(Title).bold())
	} else if last := c.w - 1; state == running || state != noticed && last > 1 {
		c.Set(last, 0, '◂', ink(Accent).bold())
	}
	c.Mark()
}

// drawLine fills c with a node that has a separate line: its state, name, requests, and other facts
// that fit.
func (g Grid) drawLine(c Canvas, n timeline.Node, selected bool) {
	state := stateOf(n)
	look := stateLooks[state]
	if state != running {
		c.Set(0, 0, look.letter, ink(look.text).bold())
	}
	name := min(max(c.w-45, 12), 28)
	c.Text(2, 0, CutMiddle(n.Name, name), Style{}.bold())
	most := float64(Use(&n)) / 1000
	bar := c.Sub(3+name, 0, 15, 1)
	Meter{Value: most, Whole: 1, Ink: ageInk(n.Spot, g.Now.Sub(n.Since))}.Draw(bar.Sub(0, 0, 10, 1))
	part := figures.RoughShare(most)
	bar.Text(15-Width(part), 0, part, Style{})
	rest := c.Sub(name+20, 0, c.w-name-20, 1)
	facts := []Part{Say(fmt.Sprintf("%3d pods", n.Pods), Own), Say(fmt.Sprintf("%7s old",
		figures.Duration(g.Now.Sub(n.Since))), Muted)}
	switch {
	case state == noticed:
		facts = append([]Part{{" taken in " + figures.Duration(max(n.Notice.Sub(g.Now), 0)) + " ",
			Style{AlarmInk, Alarm, Bold}}}, facts...)
	case state != running:
		facts = append(facts, Say(look.word, look.text))
	}
	x := 0
	for _, f := range facts {
		if x+Width(f.Text) <= rest.w {
			x = rest.Text(x, 0, f.Text, f.Style) + 2
		}
	}
	if selected {
		c.Mark()
	}
}

// countdown formats the time left of a notice in two columns: seconds below a hundred, minutes
// below ten, otherwise two dots.
func countdown(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < 100*time.Second:
		s := strconv.Itoa(int(d / time.Second))
		return " "[:2-len(s)] + s
	case d < 10*time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	default:
		return ".."
	}
}

var blocks = []rune("·▁▂▃▄▅▆▇█")

// fillRune returns the block whose height shows the largest requested share of n.
func fillRune(n timeline.Node) rune {
	most := int(Use(&n))
	if most == 0 {
		return blocks[0]
	}
	return blocks[min(max((most*8+500)/1000, 1), 8)]
}

// ageInk returns the ink of a running node. There are four shades: for ages of less than an hour,
// six hours and a day, and for older nodes.
func ageInk(spot bool, age time.Duration) Ink {
	step := Ink(3)
	switch {
	case age < time.Hour:
		step = 0
	case age < 6*time.Hour:
		step = 1
	case age < 24*time.Hour:
		step = 2
	}
	if spot {
		return Spot0 + step
	}
	return OnDemand0 + step
}

// market returns a market, or one called "unknown" if i is out of range.
func (g Grid) market(i int32) GridMarket {
	if i < 0 || int(i) >= len(g.Markets) {
		return GridMarket{Type: "unknown", Price: policy.NoPrice}
	}
	return g.Markets[i]
}

// A nodeState is the state of a node in the grid, the most urgent last.
type nodeState int

const (
	running nodeState = iota
	launching
	joining
	deleting
	draining
	advised
	noticed
	stateCount
)

// stateLooks contains the letter, the word and the ink of each state.
var stateLooks = [stateCount]struct {
	letter rune
	word   string
	text   Ink
}{
	launching: {'+', "launching", Launching},
	joining:   {'~', "joining", Launching},
	deleting:  {'x', "deleting", Leaving},
	draining:  {'d', "draining", Draining},
	advised:   {'r', "advised", Warn},
	noticed:   {'!', "notice", Notice},
}

func stateOf(n timeline.Node) nodeState {
	switch {
	case n.Notice != 0:
		return noticed
	case n.Phase == policy.NodeDraining:
		return draining
	case n.Phase == policy.NodeDeleting:
		return deleting
	case n.Phase == policy.NodeLaunching:
		return launching
	case n.Phase == policy.NodeRegistered:
		return joining
	case n.Recommended:
		return advised
	default:
		return running
	}
}

// drawLegend writes the meaning of the cells.
func drawLegend(c Canvas) {
	parts := []Part{
		Say("▁▄█", Muted), Say(" requested  ", Muted), Strong("S", Spot), Say(" spot  ", Muted), Strong("O",
			OnDemand), Say(" on-demand  ", Muted),
		Say("█", Spot0), Say("█", Spot1), Say("█", Spot2), Say("█", Spot3), Say(" new to old  ", Muted),
	}
	var marks []Part
	for s := stateCount - 1; s > running; s-- {
		marks = append(marks, Strong(string(stateLooks[s].letter), stateLooks[s].text),
			Say(" "+stateLooks[s].word+"  ", Muted))
	}
	if partsWidth(parts)+partsWidth(marks) > c.w {
		parts = parts[:6]
	}
	if partsWidth(parts)+partsWidth(marks) > c.w {
		parts = nil
	}
	for parts = append(parts, marks...); len(parts) > 2 && partsWidth(parts)-2 > c.w; {
		parts = parts[:len(parts)-2]
	}
	writeParts(c, 0, parts)
}
