package screen

import (
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// A tablePane is a pane with one table.
type tablePane struct {
	run   *run
	pane  Pane
	names []string // names of the rows
	table draw.Table

	// status is the text at the right end of the title.
	status string
}

// show sets the table, whose rows have names. all is the number of rows without a filter.
func (p *tablePane) show(t draw.Table, names []string, all int, sel *selection) {
	p.names, p.table, p.status = names, t, numbers(len(names), all)
	p.table.Selected, p.table.Empty = sel.row(p.pane, names), sel.empty(p.pane, t.Empty)
}

func (p *tablePane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	b.Right = sel.status(p.pane, p.status)
	p.table.Draw(b.Frame(c))
}

func (p *tablePane) move(_ rect, dx, dy int, sel *selection) { sel.move(p.pane, dx+dy, p.names) }

func (p *tablePane) pick(size rect, _, y int, sel *selection) hit {
	return sel.pick(p.pane, p.table, size.h, y, p.names)
}

// listWorkloads lists the workloads of the run with their ready and required pods.
func (p *tablePane) listWorkloads(now policy.Time, sel *selection) {
	s, filter, out := p.run, sel.filters[Workloads], 0
	var names []string
	t := workloadTable
	// DaemonSets are least interesting, so they are last.
	for _, last := range []bool{false, true} {
		for i := range s.workloads {
			w, f := &s.workloads[i], &s.frame.Workloads[i]
			if (w.Kind == policy.KindDaemonSet) != last {
				continue
			}
			if f.Ready < f.Required {
				out++
			}
			if matches(filter, w.Name, w.Kind.String()) {
				names = append(names, w.Name)
				t.Rows = append(t.Rows, workloadRow(w, f, sim.OutageMinutes(s.outageOf(int32(i), s.from, now).total)))
			}
		}
	}
	p.show(t, names, len(s.workloads), sel)
	if out > 0 {
		p.status = figures.Count(out, "outage") + " · " + p.status
	}
}

// listGPUBudgets lists the usage of each GPU budget of the run.
func (p *tablePane) listGPUBudgets(sel *selection) {
	var names []string
	t := gpuBudgetTable
	for i := range p.run.gpuBudgets {
		if b := &p.run.gpuBudgets[i]; matches(sel.filters[GPUBudgets], b.Name) {
			names = append(names, b.Name)
			t.Rows = append(t.Rows, gpuBudgetRow(b, &p.run.frame.Budgets[i]))
		}
	}
	p.show(t, names, len(p.run.gpuBudgets), sel)
}
