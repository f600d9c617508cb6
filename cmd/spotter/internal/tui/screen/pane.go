package screen

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A pane is what one part of the screen shows of a run.
type pane interface {
	// draw draws the pane in its box.
	draw(c draw.Canvas, b draw.Box, sel *selection)

	// move moves what is selected in a pane of that size by rows, and by columns
	// where there are any.
	move(size rect, dx, dy int, sel *selection)

	// pick selects the item at x, y.
	pick(size rect, x, y int, sel *selection) hit
}

// A hit is what the mouse found in a pane: something that is selected now, or a
// time of a chart.
type hit struct {
	selected, timed bool
	at              policy.Time
}

// A selection is what the viewer has chosen in the panes, of all runs alike: by
// name, since another run has it elsewhere. The decisions of each run have their
// own.
type selection struct {
	chosen  [paneCount]string
	filters [paneCount]string
	holds   bool // decisions that held something back are listed too
	order   nodeOrder
}

// withHolds reports whether what was held back is among the decisions: a viewer
// who filters for it wants to see it.
func (s *selection) withHolds() bool {
	return s.holds || slices.Contains(strings.Fields(s.filters[Decisions]), timeline.Hold.String())
}

// stepped are the verbs of the decisions to step through, none for all.
func (s *selection) stepped() []timeline.Verb {
	if s.withHolds() {
		return nil
	}
	return acting
}

// follow selects what an event is about, so that it can be inspected at once.
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

// status is what a box says at its right: a text, and the filter of the pane.
func (s *selection) status(p Pane, text string) string {
	if s.filters[p] != "" {
		text += " /" + s.filters[p]
	}
	return text
}

// empty is what a pane without rows says: none, or that the filter lets nothing
// through.
func (s *selection) empty(p Pane, none string) string {
	if s.filters[p] != "" {
		return nothingHas(s.filters[p])
	}
	return none
}

// move moves the choice in a list of names; without one yet it takes the first.
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

// row is the place of the choice in a list of names, -1 without one.
func (s *selection) row(p Pane, names []string) int {
	if s.chosen[p] == "" {
		return -1
	}
	return slices.Index(names, s.chosen[p])
}

// pick chooses the row of a table at the given line.
func (s *selection) pick(p Pane, t draw.Table, height, line int, names []string) hit {
	row, ok := t.RowAt(height, line)
	if !ok {
		return hit{}
	}
	s.chosen[p] = names[row]
	return hit{selected: true}
}

// pickTime is the time of a chart at x, y of its pane.
func pickTime(c draw.Chart, at rect, x, y int) hit {
	if !at.holds(x, y) {
		return hit{}
	}
	t, ok := c.TimeAt(at.w, at.h, x-at.x)
	return hit{timed: ok, at: t}
}

// A show is a run on the screen, with the panes that show it. They are at the
// shown time once list was called.
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

// list makes what the panes show of the frame.
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

// nothingHas says that a filter lets nothing through.
func nothingHas(filter string) string { return "nothing here has “" + filter + "”" }

// numbers says how many of all are shown.
func numbers(shown, all int) string {
	if shown == all {
		return figures.Integer(all)
	}
	return figures.Integer(shown) + " of " + figures.Integer(all)
}
