package screen

// A viewport is the visible part of the runs: the size of the screen, the focused pane and run, and
// the inspected subjects.
type viewport struct {
	width, height int

	// runs is the number of runs; focus is the index of the focused run, and pane its focused pane.
	runs, focus int
	pane        Pane
	both, zoom  bool

	// inspected are the inspected subjects. The last one is visible.
	inspected []subject
}

// small reports whether the screen is too small.
func (v *viewport) small() bool { return v.width < widthMin || v.height < heightMin }

// inspecting reports whether the inspector is open.
func (v *viewport) inspecting() bool { return len(v.inspected) > 0 }

// sideBySide reports whether two runs are shown.
func (v *viewport) sideBySide() bool {
	return v.both && v.runs > 1 && v.width >= widthBoth && !v.inspecting()
}

// first returns the index of the first of the two runs side by side.
func (v *viewport) first() int { return min(v.focus/2*2, v.runs-2) }

// otherRun moves the focus to the next run. It returns the reason if that is impossible.
func (v *viewport) otherRun() string {
	if v.runs == 1 {
		return onlyRun
	}
	v.focus = (v.focus + 1) % v.runs
	return ""
}

const onlyRun = "there is only one run; choose more with --policies"

// toggleBoth switches between two runs and one. It returns the reason if that is impossible.
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

// subject returns the inspected subject, or nil if the inspector is closed.
func (v *viewport) subject() *subject {
	if !v.inspecting() {
		return nil
	}
	return &v.inspected[len(v.inspected)-1]
}

// back returns to the previously inspected subject, or closes the inspector.
func (v *viewport) back() { v.inspected = v.inspected[:len(v.inspected)-1] }

// layout returns the current layout. of is the focused run, or nil if no run is open, and story
// reports that there is a line for the story.
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
