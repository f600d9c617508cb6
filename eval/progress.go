package eval

import (
	"errors"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/sim"
)

// A Step is a part of a comparison that takes time.
type Step string

// The steps, in the order in which they come.
const (
	StepRuns   Step = "runs"
	StepBounds Step = "bounds"
)

// A Progress is how far a comparison is.
type Progress struct {
	Step        Step
	Done, Total int

	// Under names the truth of a stress; empty where there is one comparison.
	Under string

	// Cells is the number of all cells, and Finished the number of cells whose policies are all
	// done. SoFar has the interim results, by scenario and policy as in Config. All policies have
	// the same number of runs in it. For a scenario without a finished cell it has the runs done of
	// its first cell. It must not be changed.
	Finished, Cells int
	SoFar           []SoFar
}

// A SoFar has the results of the finished runs of one policy in one scenario.
type SoFar struct {
	Scenario, Policy string

	// Saved is the median of net_savings_pct and Outage that of outage_minutes,
	// unknown before the first run.
	Saved, Outage Value
}

// A progress adds up what is finished, and reports it.
type progress struct {
	report func(Progress) // may be nil
	c      *Config

	mu    sync.Mutex
	state Progress
	left  []int       // unfinished runs of each cell
	saved [][]float64 // of each place of state.SoFar, ascending
	lost  [][]float64 // outage minutes, likewise
	first map[string]int
}

// newProgress returns the progress of runs runs. If they are only part of a comparison, nothing is
// summed up.
func newProgress(c *Config, runs int) *progress {
	p := &progress{report: c.Progress, c: c, first: map[string]int{}}
	p.state = Progress{Step: StepRuns, Total: runs}
	if c.Mine != nil {
		return p
	}
	cells := len(c.Cases) * len(c.Seeds)
	p.state.Cells = cells
	for range cells {
		p.left = append(p.left, len(c.Policies))
	}
	for _, k := range c.Cases {
		if _, known := p.first[k.Scenario]; known {
			continue
		}
		p.first[k.Scenario] = len(p.state.SoFar)
		for _, name := range c.Policies {
			p.state.SoFar = append(p.state.SoFar, SoFar{Scenario: k.Scenario, Policy: name})
		}
	}
	p.saved, p.lost = make([][]float64, len(p.state.SoFar)), make([][]float64, len(p.state.SoFar))
	return p
}

// ran takes note that run i is done, with result r or err.
func (p *progress) ran(runs []RunRow, i int, r *sim.Result, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs[i].Result, runs[i].Err = r, err
	p.state.Done++
	if p.report == nil {
		return
	}
	if n := len(p.c.Policies); p.left != nil {
		p.left[i/n]--
		p.sumUp(slices.Clone(runs[i/n*n:i/n*n+n]), p.left[i/n] == 0)
	}
	p.report(p.state)
}

// sumUp adds a finished cell. Until a scenario has one, the runs done of its first cell are shown,
// so that there are figures after the first runs.
func (p *progress) sumUp(cell []RunRow, whole bool) {
	first := p.first[cell[0].Scenario]
	if whole {
		p.state.Finished++
	} else if len(p.lost[first]) > 0 {
		return
	}
	measure(p.c, cell, []oracle.Bound{{Open: true}})
	p.state.SoFar = slices.Clone(p.state.SoFar) // what was reported before is kept
	for i := range cell {
		saved, lost := cell[i].Value("net_savings_pct"), cell[i].Value("outage_minutes")
		if whole {
			saved, lost = insert(&p.saved[first+i], saved), insert(&p.lost[first+i], lost)
		}
		p.state.SoFar[first+i].Saved, p.state.SoFar[first+i].Outage = saved, lost
	}
}

// insert puts v in its place among values and returns their median.
func insert(values *[]float64, v Value) Value {
	if v.Known {
		at, _ := slices.BinarySearch(*values, v.V)
		*values = slices.Insert(*values, at, v.V)
	}
	n := len(*values)
	if n == 0 {
		return Value{}
	}
	return Value{((*values)[(n-1)/2] + (*values)[n/2]) / 2, true}
}

// ErrUnfinished is why a run is missing that was not done, or not to its end,
// since the comparison was stopped.
var ErrUnfinished = errors.New("not done: the comparison was stopped")

// Unfinished reports whether the run is missing because it was not done. One that
// broke is not.
func (r *RunRow) Unfinished() bool { return errors.Is(r.Err, ErrUnfinished) }

// keepWhole makes runs comparable after a stop: where some cell is done under all
// policies, those done under some of them only are left out, so that every policy
// is summed up over the same.
func keepWhole(c *Config, runs []RunRow) {
	n := len(c.Policies)
	var part [][]RunRow
	whole := false
	for i := 0; i < len(runs); i += n {
		cell := runs[i : i+n]
		if slices.ContainsFunc(cell, func(r RunRow) bool { return r.Unfinished() }) {
			part = append(part, cell)
		} else {
			whole = true
		}
	}
	for _, cell := range part {
		for i := range cell {
			if whole {
				cell[i].Result, cell[i].Err = nil, ErrUnfinished
			}
		}
	}
}

// Done returns how many runs were done, those that broke included.
func (r *Report) Done() int {
	n := 0
	for i := range r.Runs {
		if !r.Runs[i].Unfinished() {
			n++
		}
	}
	return n
}

// stop marks r as incomplete. No gate passes: what is missing may be what breaks
// it.
func (r *Report) stop() {
	r.Stopped = true
	for i := range r.Gates {
		r.Gates[i].Pass, r.Gates[i].Stopped = false, true
	}
}
