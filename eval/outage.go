package eval

import (
	"github.com/spotter-dev/spotter/sim"
)

// An OutageReport is what the incidents of several runs come to.
type OutageReport struct {
	// Outages are their sum, of which the minutes are rounded once. The longest
	// incident is one of a run.
	sim.Outages

	// LongestRun indexes Report.Runs: it has the longest incident. -1 without one.
	LongestRun int
}

// outages sums up the incidents of the given runs.
func (r *Report) outages(runs []int) OutageReport {
	out := OutageReport{LongestRun: -1}
	for _, i := range runs {
		if r.Runs[i].Err == nil {
			out.add(i, &r.Runs[i].Result.Outages)
		}
	}
	return out
}

// add adds the incidents of run i.
func (o *OutageReport) add(i int, more *sim.Outages) {
	before := o.Longest
	o.Add(more)
	if o.Longest != before {
		o.LongestRun = i
	}
}
