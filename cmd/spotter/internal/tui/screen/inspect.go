package screen

import (
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
)

// A subject is what the inspector is about: something of a pane by name, or an
// entry of a decision.
type subject struct {
	pane  Pane
	name  string
	entry entryID
}

// An inspector says what is known of one subject.
type inspector struct {
	// known and panel are the title and the rest of what is known of it, from line
	// scroll on.
	known  string
	panel  draw.Panel
	scroll int

	// past is for what is gone.
	past timeline.Frame
}

// facts are what is known of the run with the focus at the shown time.
func (i *inspector) facts(p *playback) *facts {
	return &facts{run: p.shown().run, now: p.time(), past: &i.past}
}

// know gathers what is known of what is inspected; to is where it is drawn.
func (i *inspector) know(x *subject, p *playback, side rect) {
	i.known, i.panel.Sections = "", nil
	if x != nil {
		f := i.facts(p)
		switch x.pane {
		case Nodes:
			i.known, i.panel.Sections = "Node "+x.name, f.ofNode(x.name)
		case Markets:
			i.known, i.panel.Sections = "Market "+f.place(x.name), f.ofMarket(x.name)
		case Workloads:
			i.known, i.panel.Sections = "Workload "+x.name, f.ofWorkload(x.name)
		case GPUBudgets:
			i.known, i.panel.Sections = "Budget "+x.name, f.ofGPUBudget(x.name)
		case Decisions:
			i.known, i.panel.Sections = "Decision", f.ofDecision(x.entry)
		case Savings:
			i.known, i.panel.Sections = "Policy "+x.name, p.ofPolicy(x.name)
		}
	}
	i.scrollBy(0, side)
}

// scrollBy scrolls what is drawn at side, which shows no less than it can.
func (i *inspector) scrollBy(lines int, side rect) {
	in := inside(side)
	i.scroll = min(max(i.scroll+lines, 0), max(i.panel.Lines(in.w)-in.h, 0))
}

func (i *inspector) draw(c draw.Canvas) {
	p := i.panel
	in := draw.Box{Title: i.known, Right: "esc back", Focused: true}.Frame(c)
	p.Scroll = min(i.scroll, max(p.Lines(in.Width())-in.Height(), 0))
	p.Draw(in)
}
