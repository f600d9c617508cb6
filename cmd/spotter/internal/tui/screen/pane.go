package screen

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A pane shows one part of a run.
type pane interface {
	// draw draws the pane in its box.
	draw(c draw.Canvas, b draw.Box, sel *selection)

	// move moves the selection in a pane of a size by dx columns, if it has columns, and dy rows.
	move(size rect, dx, dy int, sel *selection)

	// pick selects the item at x, y.
	pick(size rect, x, y int, sel *selection) hit
}

// A hit is the result of a click in a pane: an item was selected, or a time of a chart was chosen.
type hit struct {
	selected, timed bool
	at              policy.Time
}

// A selection is the viewer's selection in the panes. It applies to all runs, since it is by name.
// The selected decision is separate for each run.
type selection struct {
	chosen  [paneCount]string
	filters [paneCount]string
	holds   bool // whether decisions that held something back are listed
	order   nodeOrder
}

// withHolds reports whether decisions that held something back are listed. A filter for holds
// includes them.
func (s *selection) withHolds() bool {
	return s.holds || slices.Contains(strings.Fields(s.filters[Decisions]), timeline.Hold.String())
}

// stepped returns the verbs of the decisions to step through, or nil for all.
func (s *selection) stepped() []timeline.Verb {
	if s.withHolds() {
		return nil
	}
	return acting
}

// follow selects the subject of an event, so that it can be inspected at once.
func (s *selection) follow(v *inventory, e *timeline.Event) {
	switch {
	case v.workload(e.Subject) >= 0:
		s.chosen[Workloads] = e.Subject
	case e.Object != "" && v.workload(e.Object) >= 0:
		s.chosen[Workloads] = e.Object
	case e.Subject != "":
		s.chosen[Nodes] = e.Subject
	}
	if e.Object != "" && v.market(e.Object) >= 0 {
		s.chosen[Markets] = e.Object
	}
}

// status returns the text at the right end of a box's title: text, and the filter of the pane.
func (s *selection) status(p Pane, text string) string {
	if s.filters[p] != "" {
		text += " /" + s.filters[p]
	}
	return text
}

// empty returns the text of a pane without rows: none, or that nothing matches the filter.
func (s *selection) empty(p Pane, none string) string {
	if s.filters[p] != "" {
		return nothingHas(s.filters[p])
	}
	return none
}

// move moves the selection in a list of names. Without a selection it selects the first name.
func (s *selection) move(p Pane, by int, names []string) {
	if len(names) == 0 {
		return
	}
	at := 0
	if i := s.row(p, names); i >= 0 {
		at = min(max(i+by, 0), len(names)-1)
	}
	s.chosen[p] = names[at]
}

// row returns the index of the selection in a list of names, or -1.
func (s *selection) row(p Pane, names []string) int {
	if s.chosen[p] == "" {
		return -1
	}
	return slices.Index(names, s.chosen[p])
}

// pick selects the row of a table at the given line.
func (s *selection) pick(p Pane, t draw.Table, height, line int, names []string) hit {
	row, ok := t.RowAt(height, line)
	if !ok {
		return hit{}
	}
	s.chosen[p] = names[row]
	return hit{selected: true}
}

// pickTime returns the time of a chart at x, y of its pane.
func pickTime(c draw.Chart, at rect, x, y int) hit {
	if !at.holds(x, y) {
		return hit{}
	}
	t, ok := c.TimeAt(at.w, at.h, x-at.x)
	return hit{timed: ok, at: t}
}

// A show is a run on the screen, with its panes. list updates the panes to the time shown.
type show struct {
	*run

	nodePane      nodesPane
	marketPane    marketsPane
	workloadPane  tablePane
	gpuBudgetPane tablePane
	decisionPane  decisionsPane
}

func newShow(r Run) *show {
	x := newRun(r)
	return &show{run: x, nodePane: nodesPane{run: x}, marketPane: marketsPane{tablePane: tablePane{run: x, pane: Markets}},
		workloadPane:  tablePane{run: x, pane: Workloads},
		gpuBudgetPane: tablePane{run: x, pane: GPUBudgets}, decisionPane: decisionsPane{run: x, entry: follow}}
}

// list updates the content of the panes from the frame.
func (s *show) list(now policy.Time, sel *selection) {
	s.nodePane.list(now, sel)
	s.marketPane.list(now, sel)
	s.workloadPane.listWorkloads(now, sel)
	s.gpuBudgetPane.listGPUBudgets(sel)
	s.decisionPane.list(now, sel)
}

// matches reports whether every word of a filter, in lower case, occurs in one of the texts.
func matches(filter string, texts ...string) bool {
	for word := range strings.FieldsSeq(filter) {
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), word) }) {
			return false
		}
	}
	return true
}

// nothingHas returns the text that nothing matches a filter.
func nothingHas(filter string) string { return "nothing here has “" + filter + "”" }

// numbers formats how many of all items are shown.
func numbers(shown, all int) string {
	if shown == all {
		return figures.Integer(all)
	}
	return figures.Integer(shown) + " of " + figures.Integer(all)
}
