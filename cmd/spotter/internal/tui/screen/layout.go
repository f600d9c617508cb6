package screen

// A Pane is one part of the screen.
type Pane int

// The panes, in the order of their number keys.
const (
	Nodes Pane = iota
	Markets
	Savings
	Workloads
	Decisions
	GPUBudgets

	paneCount int = iota
)

// String returns the title of a pane.
func (p Pane) String() string {
	return [...]string{"Nodes", "Markets", "Savings", "Workloads", "Decisions", "Budgets"}[p]
}

// The minimum size of the screen, and the sizes from which several panes are shown at once, in
// three columns, and with two policies side by side.
const (
	widthMin, heightMin     = 60, 15
	widthSome, heightSome   = 100, 30
	widthMany, heightMany   = 160, 44
	widthBoth, heightShared = 100, 40
	widthFigures            = 116 // the header has all figures
	heightStory             = 20  // the story has a line
)

// A rect is a rectangle of the screen, in cells.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// cut returns the upper h lines of r and the rest; split returns the left w columns and the rest.
func (r rect) cut(h int) (above, below rect) {
	h = min(max(h, 0), r.h)
	return rect{r.x, r.y, r.w, h}, rect{r.x, r.y + h, r.w, r.h - h}
}

func (r rect) split(w int) (left, right rect) {
	w = min(max(w, 0), r.w)
	return rect{r.x, r.y, w, r.h}, rect{r.x + w, r.y, r.w - w, r.h}
}

// An area is the position of a pane of one run.
type area struct {
	rect
	pane Pane
	run  int
}

// A layout is the positions of all parts of the screen.
type layout struct {
	header, story, tabs, body, scrub rect

	areas []area

	// side is the position of the inspector. It is empty if the inspector is closed.
	side rect
}

// A shape is the input of a layout.
type shape struct {
	w, h int

	pane       Pane // focused pane
	run        int  // focused run
	both, zoom bool
	first      int // first of the two runs side by side
	inspecting bool
	story      bool
	// workloads and gpuBudgets are their numbers in the scenario.
	workloads, gpuBudgets int
}

// size returns the size of a pane of a run inside its border.
func (l *layout) size(p Pane, run int) rect {
	for _, a := range l.areas {
		if a.pane == p && a.run == run {
			return inside(a.rect)
		}
	}
	return inside(l.body)
}

// areaAt returns the area at x, y, or nil if there is no pane.
func (l *layout) areaAt(x, y int) *area {
	for i := range l.areas {
		if l.areas[i].holds(x, y) {
			return &l.areas[i]
		}
	}
	return nil
}

// inside returns the part of a pane inside its border.
func inside(r rect) rect { return rect{r.x + 1, r.y + 1, max(r.w-2, 0), max(r.h-2, 0)} }

// headerHeight and footerHeight are the numbers of lines of the header and of the last line.
const (
	headerHeight = 2
	footerHeight = 1
)

// arrange returns the layout of a screen.
func arrange(s shape) layout {
	var l layout
	all := rect{0, 0, s.w, s.h}
	l.header, all = all.cut(headerHeight)
	if s.story && s.h >= heightStory {
		l.story, all = all.cut(1)
	}
	all, _ = all.cut(all.h - footerHeight)
	scrub := 2
	if s.h >= heightSome {
		scrub = 3
	}
	all, l.scrub = all.cut(all.h - scrub)
	several := s.w >= widthSome && s.h >= heightSome && !s.zoom
	if !several {
		l.tabs, all = all.cut(1)
	}
	l.body = all
	if s.inspecting {
		if s.w < widthSome {
			l.side = all
			return l
		}
		all, l.side = all.split(all.w - max(all.w*2/5, widthSome/2))
		several = several && all.w >= widthSome
		if !several && l.tabs.h == 0 {
			l.tabs, all = all.cut(1)
			l.tabs.w = l.body.w
			l.side.y, l.side.h = all.y, all.h
		}
	}
	switch {
	case s.both && s.w >= widthBoth && !s.inspecting:
		l.areas = halves(all, s, several)
	case !several:
		l.areas = []area{{all, s.pane, s.run}}
	case all.w >= widthMany && s.h >= heightMany:
		l.areas = wide(all, s)
	default:
		l.areas = some(all, s)
	}
	return l
}

// some arranges five or six panes in two columns.
func some(all rect, s shape) []area {
	left, right := all.split(all.w * 11 / 20)
	nodes, decisions := left.cut(left.h / 2)
	right, gpuBudgets := right.cut(right.h - tableHeight(s.gpuBudgets, right.h/5))
	charts, workloads := right.cut(right.h - tableHeight(s.workloads, right.h/4))
	markets, savings := charts.cut(charts.h * 11 / 20)
	areas := []area{{nodes, Nodes, s.run}, {markets, Markets, s.run}, {savings, Savings, s.run},
		{workloads, Workloads, s.run}}
	if s.gpuBudgets > 0 {
		areas = append(areas, area{gpuBudgets, GPUBudgets, s.run})
	}
	return append(areas, area{decisions, Decisions, s.run})
}

// wide arranges the panes in three columns above the decisions.
func wide(all rect, s shape) []area {
	all, decisions := all.cut(all.h - max(all.h*3/10, 12))
	left, right := all.split(all.w * 2 / 5)
	middle, right := right.split(right.w * 11 / 20)
	markets, savings := middle.cut(middle.h * 11 / 20)
	workloads, gpuBudgets := right.cut(right.h - tableHeight(s.gpuBudgets, right.h/3))
	areas := []area{{left, Nodes, s.run}, {markets, Markets, s.run}, {savings, Savings, s.run},
		{workloads, Workloads, s.run}}
	if s.gpuBudgets > 0 {
		areas = append(areas, area{gpuBudgets, GPUBudgets, s.run})
	}
	return append(areas, area{decisions, Decisions, s.run})
}

// tableHeight returns the height in lines of a pane with the given rows, including its border and
// titles, up to most; 0 without rows.
func tableHeight(rows, most int) int {
	if rows == 0 {
		return 0
	}
	return max(min(rows+3, most), 4)
}

// halves arranges two runs side by side: the focused pane of each if there is space for only one,
// otherwise nodes, workloads and decisions of each above the markets and savings, which are shared.
func halves(all rect, s shape, several bool) []area {
	if !several {
		left, right := all.split(all.w / 2)
		return []area{{left, s.pane, s.first}, {right, s.pane, s.first + 1}}
	}
	var areas []area
	if s.h >= heightShared {
		var shared rect
		all, shared = all.cut(all.h * 7 / 10)
		markets, savings := shared.split(shared.w / 2)
		areas = append(areas, area{markets, Markets, s.run}, area{savings, Savings, s.run})
	}
	left, right := all.split(all.w / 2)
	for i, half := range []rect{left, right} {
		run := s.first + i
		nodes, rest := half.cut(half.h * 9 / 20)
		workloads, decisions := rest.cut(rest.h * 9 / 20)
		areas = append(areas, area{nodes, Nodes, run}, area{workloads, Workloads, run}, area{decisions, Decisions, run})
	}
	return areas
}
