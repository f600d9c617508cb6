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

// A usage is what the pods of a budget used until an instant, in device-hours: slack is what the
// whole seconds of the API leave open, lost what a ledger may lack of pods that ended unseen,
// and late what it may have of pods whose end it heard of late.
type usage struct{ used, slack, lost, late float64 }

func (w *Watcher) usage(b *Budget, until time.Time, unseen time.Duration) (x usage) {
	for _, key := range sorted(w.uses) {
		u := w.uses[key]
		devices := u.pod.Requests[b.Resource]
		if u.pod.Namespace != b.Namespace || !matches(b.Selector, u.pod.Labels) || devices == 0 {
			continue
		}
		end := until
		if u.ends && u.pod.End.Before(until) {
			end = u.pod.End
		}
		if !end.After(u.pod.Start) {
			continue
		}
		ran := end.Sub(u.pod.Start)
		x.used += devices * ran.Hours()
		x.slack += devices * time.Second.Hours()
		if u.ends {
			x.slack += devices * time.Second.Hours()
			x.lost += devices * min(ran, unseen).Hours()
			x.late += devices * min(w.late(end, unseen), until.Sub(end)).Hours()
		}
	}
	return x
}

// most returns what a ledger may say at most: a thousandth more than what was used, which is
// written to the thousandth.
func (x usage) most() float64 { return 1.001*x.used + x.slack + x.late + 0.0005 }

// Ledger holds that a budget's ledger is within a thousandth of what its pods used, and a
// second for each that began and ended, since the API keeps whole seconds. Of what pods
// used that ended unseen a ledger may lack unseen each: what is remembered was not yet
// saved when a leader was killed, and more where its release ended for a while. What ended
// while a replica was cut off it may count until that one heard of it.
func (w *Watcher) Ledger(at time.Time, b Budget, unseen time.Duration) {
	x := w.usage(&b, b.CountedAt, unseen+w.absent)
	least := 0.999*x.used - x.slack - x.lost - 0.0005
	if b.Consumed < least || b.Consumed > x.most() || math.IsNaN(b.Consumed) {
		w.find(at, "ledger", "GPUBudget %s/%s says %.3f device-hours, and its pods used %.3f (from %.3f to %.3f would do)",
			b.Namespace, b.Name, b.Consumed, x.used, least, x.most())
	}
}

// A booking is what a ledger said at an instant.
type booking struct {
	at     time.Time
	budget Budget
	unseen time.Duration
}

// bookedAfter is how long after a ledger is seen it is judged: pods that it counts may be seen
// later than it.
const bookedAfter = 30 * time.Second

// Booked takes what a ledger says from now on. By the time that has passed for the watcher,
// whatever the ledger's own is, its pods must have used as much.
func (w *Watcher) Booked(at time.Time, b Budget, unseen time.Duration) {
	w.booked = append(w.booked, booking{at, b, unseen})
}

// JudgeBooked judges what was booked some time before now.
func (w *Watcher) JudgeBooked(now time.Time) {
	for len(w.booked) > 0 && now.Sub(w.booked[0].at) >= bookedAfter {
		x := &w.booked[0]
		if most := w.usage(&x.budget, x.at, x.unseen).most(); x.budget.Consumed > most {
			w.find(x.at, "ledger",
				"GPUBudget %s/%s says %.3f device-hours, and by then its pods can have used %.3f: it grew faster than time passed",
				x.budget.Namespace, x.budget.Name, x.budget.Consumed, most)
		}
		w.booked = w.booked[1:]
	}
}
