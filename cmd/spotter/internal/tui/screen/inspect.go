package screen

import (
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
)

// A subject is the subject of the inspector: an item of a pane by name, or an entry of a decision.
type subject struct {
	pane  Pane
	name  string
	entry entryID
}

// An inspector shows the facts about one subject.
type inspector struct {
	// known and panel are the title and the facts, of which the first scroll lines are skipped.
	known  string
	panel  draw.Panel
	scroll int

	// past is a buffer for nodes that no longer exist.
	past timeline.Frame
}

// facts returns the facts about the focused run at the time shown.
func (i *inspector) facts(p *playback) *facts {
	return &facts{run: p.shown().run, now: p.time(), past: &i.past}
}

// know gathers the facts about the subject. side is where they are drawn.
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

// scrollBy scrolls the text drawn at side. It stops when the last line is visible.
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
