package screen

import (
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// A workloadsPane shows how many pods each workload of a run has and needs.
type workloadsPane struct {
	run   *run
	names []string // of the rows
	rows  []draw.WorkloadRow
}

func (p *workloadsPane) list(now policy.Time, sel *selection) {
	s, filter := p.run, sel.filters[Workloads]
	p.names, p.rows = p.names[:0], p.rows[:0]
	// Nobody misses a DaemonSet: they come last.
	for _, last := range []bool{false, true} {
		for i := range s.workloads {
			w, f := &s.workloads[i], &s.frame.Workloads[i]
			daemon := w.Kind == policy.KindDaemonSet
			if daemon != last || !matches(filter, w.Name, w.Kind.String()) {
				continue
			}
			desired := f.Desired
			if daemon {
				desired = max(desired, f.Ready) // it wants a pod on every node, whatever is written
			}
			p.names = append(p.names, w.Name)
			p.rows = append(p.rows, draw.WorkloadRow{Name: w.Name, Kind: w.Kind.String(), Ready: f.Ready, Required: f.Required,
				Desired: desired, OnSpot: f.OnSpot, Out: f.Ready < f.Required, Outage: sim.OutageMinutes(s.outageOf(int32(i), s.from, now).total)})
		}
	}
}

func (p *workloadsPane) table(sel *selection) draw.Table {
	t := draw.Workloads(p.rows, sel.row(Workloads, p.names))
	t.Empty = sel.empty(Workloads, t.Empty)
	return t
}

func (p *workloadsPane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	text, out := numbers(len(p.rows), len(p.run.workloads)), 0
	for i := range p.run.frame.Workloads {
		if w := &p.run.frame.Workloads[i]; w.Ready < w.Required {
			out++
		}
	}
	if out > 0 {
		text = figures.Count(out, "outage") + " · " + text
	}
	b.Right = sel.status(Workloads, text)
	p.table(sel).Draw(b.Frame(c))
}

func (p *workloadsPane) move(_ rect, dx, dy int, sel *selection) {
	sel.move(Workloads, dx+dy, p.names)
}

func (p *workloadsPane) pick(size rect, _, y int, sel *selection) hit {
	return sel.pick(Workloads, p.table(sel), size.h, y, p.names)
}

// A budgetsPane shows what is used of each GPU budget of a run.
type budgetsPane struct {
	run   *run
	names []string // of the rows
	rows  []draw.BudgetRow
}

func (p *budgetsPane) list(sel *selection) {
	p.names, p.rows = p.names[:0], p.rows[:0]
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
		p.names, p.rows = append(p.names, b.Name), append(p.rows, row)
	}
}

func (p *budgetsPane) table(sel *selection) draw.Table {
	t := draw.Budgets(p.rows, sel.row(Budgets, p.names))
	t.Empty = sel.empty(Budgets, "there are no budgets")
	return t
}

func (p *budgetsPane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	b.Right = sel.status(Budgets, numbers(len(p.rows), len(p.run.budgets)))
	p.table(sel).Draw(b.Frame(c))
}

func (p *budgetsPane) move(_ rect, dx, dy int, sel *selection) { sel.move(Budgets, dx+dy, p.names) }

func (p *budgetsPane) pick(size rect, _, y int, sel *selection) hit {
	return sel.pick(Budgets, p.table(sel), size.h, y, p.names)
}
