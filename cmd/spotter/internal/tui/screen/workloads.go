package screen

import (
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// A tablePane is a pane of one table.
type tablePane struct {
	run   *run
	pane  Pane
	names []string // of the rows
	table draw.Table

	// status is what the box says at its right.
	status string
}

// show shows rows of those names, of all that there are.
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

// listWorkloads shows how many pods each workload of the run has and needs.
func (p *tablePane) listWorkloads(now policy.Time, sel *selection) {
	s, filter, out := p.run, sel.filters[Workloads], 0
	var names []string
	var rows []draw.WorkloadRow
	// Nobody misses a DaemonSet: they come last.
	for _, last := range []bool{false, true} {
		for i := range s.workloads {
			w, f := &s.workloads[i], &s.frame.Workloads[i]
			daemon := w.Kind == policy.KindDaemonSet
			if daemon != last {
				continue
			}
			if f.Ready < f.Required {
				out++
			}
			if !matches(filter, w.Name, w.Kind.String()) {
				continue
			}
			desired := f.Desired
			if daemon {
				desired = max(desired, f.Ready) // it wants a pod on every node, whatever is written
			}
			names = append(names, w.Name)
			rows = append(rows, draw.WorkloadRow{Name: w.Name, Kind: w.Kind.String(), Ready: f.Ready, Required: f.Required,
				Desired: desired, OnSpot: f.OnSpot, Out: f.Ready < f.Required, Outage: sim.OutageMinutes(s.outageOf(int32(i),
					s.from, now).total)})
		}
	}
	p.show(draw.Workloads(rows, -1), names, len(s.workloads), sel)
	if out > 0 {
		p.status = figures.Count(out, "outage") + " · " + p.status
	}
}

// listBudgets shows what is used of each GPU budget of the run.
func (p *tablePane) listBudgets(sel *selection) {
	var names []string
	var rows []draw.BudgetRow
	for i := range p.run.budgets {
		b, f := &p.run.budgets[i], &p.run.frame.Budgets[i]
		if !matches(sel.filters[Budgets], b.Name) {
			continue
		}
		row := draw.BudgetRow{Name: b.Name, GPUHours: f.GPUHours, Dollars: f.Dollars, Spent: f.Spent, Closed: f.Closed}
		if b.HasGPUHours {
			row.HourMax = b.GPUHours
		}
		if b.HasDollars {
			row.MoneyMax = b.Dollars
		}
		names, rows = append(names, b.Name), append(rows, row)
	}
	p.show(draw.Budgets(rows, -1), names, len(p.run.budgets), sel)
}
