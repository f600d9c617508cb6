package eval

import (
	"errors"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/sim"
)

// A Step is a phase of a comparison.
type Step string

// The steps, in order.
const (
	StepRuns   Step = "runs"
	StepBounds Step = "bounds"
)

// A Progress reports the progress of a comparison.
type Progress struct {
	Step        Step
	Done, Total int

	// Under names the truth of a stress test; empty for a single comparison.
	Under string

	// Cells is the number of all cells, and Finished the number of cells in which all policies have
	// run. SoFar contains the interim results, ordered by scenario and policy as in Config. They
	// are based on the same number of runs for all policies, except for a scenario without a
	// finished cell, for which they are the finished runs of its first cell. SoFar must not be
	// modified.
	Finished, Cells int
	SoFar           []SoFar
}

// A SoFar contains the interim results of one policy in one scenario.
type SoFar struct {
	Scenario, Policy string

	// Saved is the median of net_savings_pct and Outage the median of outage_minutes. Both are
	// unknown before the first run.
	Saved, Outage Value
}

// A progress aggregates finished runs, and reports them.
type progress struct {
	report func(Progress) // may be nil
	c      *Config

	mu    sync.Mutex
	state Progress
	left  []int       // number of unfinished runs of each cell
	saved [][]float64 // savings for each element of state.SoFar, ascending
	lost  [][]float64 // outage minutes for each element of state.SoFar, ascending
	first map[string]int
}

// newProgress returns the progress of the given number of runs. If they are only part of a
// comparison, it has no interim results.
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

// ran records that run i has finished, with result r or err.
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

// sumUp adds a cell. Until a scenario has a finished cell, the finished runs of its first cell are
// reported, so that there are results after the first runs.
func (p *progress) sumUp(cell []RunRow, whole bool) {
	first := p.first[cell[0].Scenario]
	if whole {
		p.state.Finished++
	} else if len(p.lost[first]) > 0 {
		return
	}
	measure(p.c, cell, []oracle.Bound{{Open: true}})
	p.state.SoFar = slices.Clone(p.state.SoFar) // earlier reports must not change
	for i := range cell {
		saved, lost := cell[i].Value("net_savings_pct"), cell[i].Value("outage_minutes")
		if whole {
			saved, lost = insert(&p.saved[first+i], saved), insert(&p.lost[first+i], lost)
		}
		p.state.SoFar[first+i].Saved, p.state.SoFar[first+i].Outage = saved, lost
	}
}

// insert inserts v into values, which ascend, and returns their median.
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

// ErrUnfinished is the error of a run that was not finished because the comparison was stopped.
var ErrUnfinished = errors.New("not done: the comparison was stopped")

// Unfinished reports whether the run is missing because it was not finished. It is false for a run
// that failed.
func (r *RunRow) Unfinished() bool { return errors.Is(r.Err, ErrUnfinished) }

// keepWhole makes runs comparable after a stop: if at least one cell is finished for all policies,
// it discards the cells that are only finished for some of them, so that all policies are
// summarized over the same cells.
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

// Done returns the number of finished runs, including those that failed.
func (r *Report) Done() int {
	n := 0
	for i := range r.Runs {
		if !r.Runs[i].Unfinished() {
			n++
		}
	}
	return n
}

// stop marks r as incomplete. No gate passes, because missing runs might violate it.
func (r *Report) stop() {
	r.Stopped = true
	for i := range r.Gates {
		r.Gates[i].Pass, r.Gates[i].Stopped = false, true
	}
}
