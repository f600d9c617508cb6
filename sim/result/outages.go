package result

import (
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// An OutageCause is the reason why required pods were missing.
type OutageCause uint8

// The causes of outages. Those up to and including CauseRefused result from the use of Spot.
const (
	CauseReclaim     OutageCause = iota // the provider reclaimed their Spot node, or gave notice that it would
	CauseRefused                        // they were new, and a Spot launch for them was refused
	CauseMove                           // the policy drained their node or evicted them
	CauseProvisioner                    // the provisioner consolidated or expired their node
	CauseFault                          // their node failed with its zone, because of a fault of the scenario
	CauseBudget                         // a GPU budget evicted them
	CausePreemption                     // pods of a higher priority took their place
	CauseGrowth                         // they were new, and not ready within the ready grace

	// OutageCauses is the number of causes.
	OutageCauses = iota
)

// String returns the name used in output.
func (c OutageCause) String() string {
	return [...]string{"reclaim", "refused", "move", "provisioner", "fault", "budget", "preemption", "growth"}[c]
}

// Spot reports whether outages of cause c result from the use of Spot.
func (c OutageCause) Spot() bool { return c <= CauseRefused }

// An Incident is an interval in which a workload had fewer ready pods than required. Gaps of less
// than five minutes belong to it, but do not count as outage.
type Incident struct {
	Workload string
	Began    policy.Time

	// Outage is the time with fewer ready pods than required, in whole milliseconds, and Pods the
	// maximum number of missing pods.
	Outage time.Duration
	Pods   int32

	// Cause is the cause of the largest part of Outage.
	Cause OutageCause
}

// A CauseOutage is the part of an outage that has one cause.
type CauseOutage struct {
	Outage    time.Duration
	Incidents int64 // incidents with this as their main cause
}

// CauseOutages are the parts of an outage by cause. Their sum is the outage.
//
// Time below the required level is attributed to Spot if there would be enough pods without those
// that Spot reclaimed or refused, and otherwise to the cause of most of the missing pods.
type CauseOutages [OutageCauses]CauseOutage

// Spot returns the part of the outage that results from the use of Spot.
func (c *CauseOutages) Spot() CauseOutage {
	a, b := c[CauseReclaim], c[CauseRefused]
	return CauseOutage{a.Outage + b.Outage, a.Incidents + b.Incidents}
}

// Outages are the incidents of a workload, or of all workloads of a run.
type Outages struct {
	// Outage is the time with fewer ready pods than required, summed over incidents and workloads,
	// in whole milliseconds. OutageMinutes is this sum in minutes, rounded half up. As it is
	// rounded once, the minutes of workloads need not add up to those of their run.
	Outage        time.Duration
	OutageMinutes int64

	Incidents int64

	// PodsAffected is the sum, over incidents, of the maximum number of pods missing at once.
	// Longest is the incident with the longest outage, the earliest one if several are equal.
	PodsAffected int64
	Longest      Incident

	Causes CauseOutages

	// WithoutPDB is the part of CauseProvisioner in workloads without a PodDisruptionBudget, whose
	// pods Karpenter evicts all at once.
	WithoutPDB time.Duration
}

// SpotMinutes returns the part of the outage that results from the use of Spot, in minutes, rounded
// half up.
func (o *Outages) SpotMinutes() int64 { return OutageMinutes(o.Causes.Spot().Outage) }

// String formats the totals: "2 min in 3 incidents, 4 pods; none from Spot (provisioner 1m48s)".
func (o *Outages) String() string {
	text := fmt.Sprintf("%d min in %s", o.OutageMinutes, figures.Count(o.Incidents, "incident"))
	if o.Incidents == 0 {
		return text
	}
	return text + ", " + figures.Count(o.PodsAffected, "pod") + "; " + o.Sources()
}

// Sources describes which part of an outage results from the use of Spot, and the causes of both
// parts.
func (o *Outages) Sources() string {
	spot := o.Causes.Spot().Outage
	of, others := o.parts(CauseReclaim, CauseRefused), o.parts(CauseRefused+1, OutageCauses-1)
	switch {
	case o.Outage == 0:
		return ""
	case spot == 0:
		return "none from Spot (" + others + ")"
	case spot == o.Outage:
		return "all from Spot (" + of + ")"
	}
	return "from Spot " + of + ", without it " + others
}

// parts lists the outages of the causes from first to last, both inclusive.
func (o *Outages) parts(first, last OutageCause) string {
	var list []string
	for c := first; c <= last; c++ {
		if x := o.Causes[c].Outage; x > 0 {
			list = append(list, c.String()+" "+x.Round(time.Second).String()+o.withoutPDB(c))
		}
	}
	return strings.Join(list, ", ")
}

// withoutPDB describes the part of the outage of cause c in workloads without a
// PodDisruptionBudget, or returns "".
func (o *Outages) withoutPDB(c OutageCause) string {
	switch {
	case c != CauseProvisioner || o.WithoutPDB == 0:
		return ""
	case o.WithoutPDB == o.Causes[c].Outage:
		return " without a PDB"
	}
	return " of which " + o.WithoutPDB.Round(time.Second).String() + " without a PDB"
}

// String describes an incident: "1m12s of default/web from 2026-01-05 03:12:04 (2 pods, reclaim)".
func (i *Incident) String() string {
	return fmt.Sprintf("%v of %s from %s (%s, %v)", i.Outage.Round(time.Second), i.Workload,
		i.Began.Std().Format(time.DateTime), figures.Count(i.Pods, "pod"), i.Cause)
}

// OutageMinutes converts the time below the required level to minutes, rounded half up.
func OutageMinutes(outage time.Duration) int64 {
	return int64((outage + time.Minute/2) / time.Minute)
}

// AddIncident adds an incident. by is its time below the required level by cause, in milliseconds,
// and short the maximum number of missing pods.
func (o *Outages) AddIncident(began policy.Time, by *[OutageCauses]int64, short int32) {
	more := Outages{Incidents: 1, PodsAffected: int64(short)}
	cause := OutageCause(0)
	for c := range by {
		more.Causes[c].Outage = time.Duration(by[c]) * time.Millisecond
		more.Outage += more.Causes[c].Outage
		if by[c] > by[cause] {
			cause = OutageCause(c)
		}
	}
	more.Causes[cause].Incidents = 1
	more.Longest = Incident{Began: began, Outage: more.Outage, Pods: short, Cause: cause}
	o.Add(&more)
}

// Add adds the incidents of more.
func (o *Outages) Add(more *Outages) {
	o.Outage += more.Outage
	o.OutageMinutes = OutageMinutes(o.Outage)
	o.Incidents += more.Incidents
	o.PodsAffected += more.PodsAffected
	o.WithoutPDB += more.WithoutPDB
	if a, b := &o.Longest, &more.Longest; b.Outage > a.Outage ||
		b.Outage == a.Outage && b.Outage > 0 && b.Began < a.Began {
		*a = *b
	}
	for c := range o.Causes {
		o.Causes[c].Outage += more.Causes[c].Outage
		o.Causes[c].Incidents += more.Causes[c].Incidents
	}
}

// IncidentGap is the gap below which two outages belong to the same incident, as in the policies'
// own accounting.
const IncidentGap = policy.IncidentGap
