package screen

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// sentence describes an event.
func sentence(s *inventory, e *timeline.Event) string {
	switch e.Kind {
	case timeline.Launched:
		return fmt.Sprintf("%s launched in %s%s", e.Subject, s.place(e.Object), at(e.Amount))
	case timeline.Refused:
		return "a launch for " + e.Subject + " was refused" + in(s.place(e.Object))
	case timeline.Joined:
		return e.Subject + " joined and takes pods"
	case timeline.Noticed:
		return e.Subject + " got notice: the provider reclaims it" + in(s.place(e.Object))
	case timeline.Recommended:
		return "the provider recommends to leave " + e.Subject + in(s.place(e.Object))
	case timeline.Reclaimed:
		return e.Subject + " was reclaimed" + in(s.place(e.Object))
	case timeline.Outbid:
		return e.Subject + " was outbid" + in(s.place(e.Object))
	case timeline.Draining:
		return e.Subject + " is being drained" + in(s.place(e.Object))
	case timeline.Undrained:
		return e.Subject + " is no longer drained"
	case timeline.Deleted:
		return e.Subject + " is gone"
	}
	return sentenceOfWork(e)
}

// sentenceOfWork describes an event of workloads, faults or budgets.
func sentenceOfWork(e *timeline.Event) string {
	switch e.Kind {
	case timeline.PodEvicted:
		return "a pod" + of(e.Object) + " was evicted from " + e.Subject
	case timeline.PodLost:
		return "a pod" + of(e.Object) + " was lost with " + e.Subject
	case timeline.OutageBegan:
		return e.Subject + " has less than it must: an outage starts"
	case timeline.OutageEnded:
		return e.Subject + " has what it must again: its outage ends"
	case timeline.ReplicasChanged:
		return fmt.Sprintf("%s now wants %s", e.Subject, figures.Count(e.Amount, "replica"))
	case timeline.JobDone:
		return "a job of " + e.Subject + " is done"
	case timeline.JobMissed:
		return "a job of " + e.Subject + " missed its deadline"
	case timeline.FaultBegan:
		return "fault starts: " + fault(e)
	case timeline.FaultEnded:
		return "fault ends: " + fault(e)
	case timeline.GateClosed:
		return "budget " + e.Subject + " is spent: its gate closes"
	case timeline.GateOpened:
		return "budget " + e.Subject + " has room: its gate opens"
	case timeline.LossBudgetUsedUp:
		return "loss budget of " + e.Subject + " is used up: the pool moves to on-demand nodes"
	case timeline.LossBudgetRestored:
		return "loss budget of " + e.Subject + " covers losses again: the pool may hold Spot"
	case timeline.Paused:
		return e.Subject + " is paused" + by(e.Object)
	case timeline.Resumed:
		return e.Subject + " resumes" + by(e.Object)
	}
	return e.Subject
}

func fault(e *timeline.Event) string { return strings.TrimSpace(e.Subject + " " + e.Object) }

func of(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by budget " + name
}

func in(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

// at returns the price as a suffix, or empty if there is no price.
func at(amount int64) string {
	if amount <= 0 {
		return ""
	}
	return " at " + draw.PerHour(policy.Money(amount))
}
