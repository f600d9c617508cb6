package watch

import (
	"math"
	"time"
)

// A Budget is what matters of a GPUBudget.
type Budget struct {
	Namespace, Name, Resource string
	Selector                  map[string]string

	// Consumed is what it says is used, in device-hours, and CountedAt up to when.
	Consumed  float64
	CountedAt time.Time
}

// A gap is when a replica could not hear of pods.
type gap struct{ from, to time.Time }

// Apart takes note that a replica is cut off from now on, for as long as said. What ends
// meanwhile it hears of once it watches again.
func (w *Watcher) Apart(at time.Time, d time.Duration) { w.gaps = append(w.gaps, gap{at, at.Add(d)}) }

// late returns how late the end of a pod may be heard of where a watch that was cut off
// is whole again after unseen.
func (w *Watcher) late(end time.Time, unseen time.Duration) (most time.Duration) {
	for _, g := range w.gaps {
		if heard := g.to.Add(unseen); !end.Before(g.from) && end.Before(heard) {
			most = max(most, heard.Sub(end))
		}
	}
	return most
}

// A use is what a pod has used of its resources.
type use struct {
	pod  Pod
	ends bool
}

// account remembers what a pod uses.
func (w *Watcher) account(p *Pod) {
	if !p.Start.IsZero() {
		w.uses[p.key()] = &use{*p, !p.End.IsZero()}
	}
}

// Ledger holds that a budget's ledger is within a thousandth of what its pods used, and a
// second for each that began and ended, since the API keeps whole seconds. Of what pods
// used that ended unseen a ledger may lack unseen each: what is remembered was not yet
// saved when a leader was killed. What ended while a replica was cut off it may count until
// that one heard of it.
func (w *Watcher) Ledger(at time.Time, b Budget, unseen time.Duration) {
	used, slack, lost, late := 0.0, 0.0, 0.0, 0.0
	for _, key := range sorted(w.uses) {
		u := w.uses[key]
		devices := u.pod.Requests[b.Resource]
		if u.pod.Namespace != b.Namespace || !matches(b.Selector, u.pod.Labels) || devices == 0 {
			continue
		}
		end := b.CountedAt
		if u.ends && u.pod.End.Before(end) {
			end = u.pod.End
		}
		if !end.After(u.pod.Start) {
			continue
		}
		ran := end.Sub(u.pod.Start)
		used += devices * ran.Hours()
		slack += devices * time.Second.Hours()
		if u.ends {
			slack += devices * time.Second.Hours()
			lost += devices * min(ran, unseen).Hours()
			late += devices * min(w.late(end, unseen), b.CountedAt.Sub(end)).Hours()
		}
	}
	least, most := 0.999*used-slack-lost-0.0005, 1.001*used+slack+late+0.0005 // which is written to the thousandth
	if b.Consumed < least || b.Consumed > most || math.IsNaN(b.Consumed) {
		w.find(at, "ledger", "GPUBudget %s/%s says %.3f device-hours, and its pods used %.3f (from %.3f to %.3f would do)", b.Namespace, b.Name, b.Consumed, used, least, most)
	}
}
