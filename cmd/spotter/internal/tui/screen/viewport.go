package screen

// A viewport is what the viewer sees of the runs: how large the screen is, which
// pane of which run keys are for, and what is looked at more closely.
type viewport struct {
	width, height int

	// runs is how many there are to show; focus is the one and pane the pane of it
	// that keys are for.
	runs, focus int
	pane        Pane
	both, zoom  bool

	// inspected are the subjects looked at, the last one on the screen.
	inspected []subject
}

// small reports whether nothing fits on the screen.
func (v *viewport) small() bool { return v.width < widthMin || v.height < heightMin }

// inspecting reports whether a subject is looked at.
func (v *viewport) inspecting() bool { return len(v.inspected) > 0 }

// sideBySide reports whether two runs are shown.
func (v *viewport) sideBySide() bool {
	return v.both && v.runs > 1 && v.width >= widthBoth && !v.inspecting()
}

// first is the first of the runs side by side: those with the focus and its
// neighbour.
func (v *viewport) first() int { return min(v.focus/2*2, v.runs-2) }

// otherRun moves the focus to the next run. It returns why it cannot.
func (v *viewport) otherRun() string {
	if v.runs == 1 {
		return onlyRun
	}
	v.focus = (v.focus + 1) % v.runs
	return ""
}

const onlyRun = "there is only one run; choose more with --policies"

// toggleBoth shows two runs or one again. It returns why it cannot.
func (v *viewport) toggleBoth() string {
	switch {
	case v.runs < 2:
		return onlyRun
	case v.width < widthBoth:
		return "two policies side by side need 100 columns; tab shows the other one"
	}
	v.both, v.inspected = !v.both, nil
	return ""
}

// subject is what is looked at, nil while nothing is.
func (v *viewport) subject() *subject {
	if !v.inspecting() {
		return nil
	}
	return &v.inspected[len(v.inspected)-1]
}

// back leaves what is looked at, for what was before it.
func (v *viewport) back() { v.inspected = v.inspected[:len(v.inspected)-1] }

// layout is where everything stands now; of is the run with the focus, nil while
// nothing is open, and story says that there is a line for it.
func (v *viewport) layout(of *show, story bool) layout {
	s := shape{story: story, w: v.width, h: v.height, pane: v.pane, run: v.focus, both: v.sideBySide(), zoom: v.zoom,
		inspecting: v.inspecting()}
	if of != nil {
		s.workloads, s.gpuBudgets = len(of.workloads), len(of.gpuBudgets)
	}
	if s.both {
		s.first = v.first()
	}
	return arrange(s)
}
