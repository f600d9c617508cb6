package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// An OutageCause is why pods were missed that a workload must have.
type OutageCause uint8

// The causes of outages. Those up to and including CauseRefused come of Spot.
const (
	CauseReclaim     OutageCause = iota // the provider took their spot node, or gave notice that it would
	CauseRefused                        // they were wanted for the first time, and a spot launch for them was refused
	CauseMove                           // the policy drained their node or evicted them
	CauseProvisioner                    // the provisioner consolidated or expired their node
	CauseFault                          // their node failed with its zone, as the scenario orders
	CauseBudget                         // a budget had them evicted
	CausePreemption                     // pods of a higher priority took their place
	CauseGrowth                         // they were wanted for the first time, and were not ready within the ready grace

	// OutageCauses is how many there are.
	OutageCauses = iota
)

// String returns the name used in output.
func (c OutageCause) String() string {
	return [...]string{"reclaim", "refused", "move", "provisioner", "fault", "budget", "preemption", "growth"}[c]
}

// Spot reports whether what comes of c would not be without Spot.
func (c OutageCause) Spot() bool { return c <= CauseRefused }

// An Incident is a time in which a workload had fewer pods ready than required; gaps
// under five minutes belong to it, but are not counted.
type Incident struct {
	Workload string
	Began    policy.Time

	// Outage is how long fewer were ready than required, in whole milliseconds, and
	// Pods how many were missing at most.
	Outage time.Duration
	Pods   int32

	// Cause is the one that most of the time comes of.
	Cause OutageCause
}

// A CauseOutage is the part of an outage that comes of one cause.
type CauseOutage struct {
	Outage    time.Duration
	Incidents int64 // most of whose time comes of it
}

// CauseOutages are the parts of an outage by cause. Their sum is the outage.
//
// A time below what is required comes of Spot if it would not be without the pods
// that Spot took or refused; else of the cause that most of the missing pods have.
type CauseOutages [OutageCauses]CauseOutage

// Spot returns the part that would not be without Spot.
func (c *CauseOutages) Spot() CauseOutage {
	a, b := c[CauseReclaim], c[CauseRefused]
	return CauseOutage{a.Outage + b.Outage, a.Incidents + b.Incidents}
}

// Outages are the incidents of a workload, or of all of a run.
type Outages struct {
	// Outage is how long fewer pods were ready than required, summed over incidents
	// and workloads, in whole milliseconds. OutageMinutes is the sum in minutes, rounded
	// once, half up: those of workloads need not add up to those of their run.
	Outage        time.Duration
	OutageMinutes int64

	Incidents int64

	// PodsAffected is the sum over incidents of the most pods missing at once, and
	// Longest the incident that has most of the outage, of equal ones the first.
	PodsAffected int64
	Longest      Incident

	Causes CauseOutages

	// WithoutPDB is the part of CauseProvisioner in workloads without a
	// PodDisruptionBudget, whose pods Karpenter evicts all at once.
	WithoutPDB time.Duration
}

// SpotMinutes returns the part that would not be without Spot in minutes, rounded half up.
func (o *Outages) SpotMinutes() int64 { return OutageMinutes(o.Causes.Spot().Outage) }

// String says what they come to: "2 min in 3 incidents, 4 pods; none from Spot
// (provisioner 1m48s)".
func (o *Outages) String() string {
	text := fmt.Sprintf("%d min in %s", o.OutageMinutes, figures.Count(o.Incidents, "incident"))
	if o.Incidents == 0 {
		return text
	}
	return text + ", " + figures.Count(o.PodsAffected, "pod") + "; " + o.Sources()
}

// Sources says which part of an outage comes of Spot, and what the parts come of.
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

// parts lists what comes of the causes from first to last.
func (o *Outages) parts(first, last OutageCause) string {
	var list []string
	for c := first; c <= last; c++ {
		if x := o.Causes[c].Outage; x > 0 {
			list = append(list, c.String()+" "+x.Round(time.Second).String()+o.withoutPDB(c))
		}
	}
	return strings.Join(list, ", ")
}

// withoutPDB says how much of what comes of c is in workloads without a PodDisruptionBudget.
func (o *Outages) withoutPDB(c OutageCause) string {
	switch {
	case c != CauseProvisioner || o.WithoutPDB == 0:
		return ""
	case o.WithoutPDB == o.Causes[c].Outage:
		return " without a PDB"
	}
	return " of which " + o.WithoutPDB.Round(time.Second).String() + " without a PDB"
}

// String names an incident: "1m12s of default/web from 2026-01-05 03:12:04 (2 pods,
// reclaim)".
func (i *Incident) String() string {
	return fmt.Sprintf("%v of %s from %s (%s, %v)", i.Outage.Round(time.Second), i.Workload, i.Began.Std().Format(time.DateTime), figures.Count(i.Pods, "pod"), i.Cause)
}

// OutageMinutes returns a sum of times below what is required in minutes, rounded half up.
func OutageMinutes(outage time.Duration) int64 {
	return int64((outage + time.Minute/2) / time.Minute)
}

// incident adds one, given its milliseconds below by cause and its greatest shortfall.
func (o *Outages) incident(began policy.Time, by *[OutageCauses]int64, short int32) {
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
	if a, b := &o.Longest, &more.Longest; b.Outage > a.Outage || b.Outage == a.Outage && b.Outage > 0 && b.Began < a.Began {
		*a = *b
	}
	for c := range o.Causes {
		o.Causes[c].Outage += more.Causes[c].Outage
		o.Causes[c].Incidents += more.Causes[c].Incidents
	}
}

// cause returns what the workload is below its required level by now. Of the pods that
// it wants for the first time those count that are desired: the others are not due yet.
func (g *readiness) cause() OutageCause {
	missing := g.missing
	early := max(0, g.wanted-g.desired)
	for _, c := range [...]OutageCause{CauseGrowth, CauseRefused} {
		n := min(early, missing[c])
		missing[c], early = missing[c]-n, early-n
	}
	taken, refused := missing[CauseReclaim], missing[CauseRefused]
	if g.ready+taken+refused >= g.required && taken+refused > 0 {
		if taken >= refused {
			return CauseReclaim
		}
		return CauseRefused
	}
	most := CauseGrowth // a StatefulSet has yet to make some of what it wants
	for c := CauseGrowth; c > CauseRefused; c-- {
		if n := missing[c]; n > 0 && n >= missing[most] {
			most = c
		}
	}
	return most
}

// serving follows of each workload which pods serve and why others are missed.
type serving struct {
	*environment
	nodes     *nodes
	pods      *pods
	queue     *schedulingQueue
	space     *placement.Space
	watch     *watch
	workloads *workloads

	of         []readiness
	readyTimes []int64 // milliseconds from creation to ready
}

// Pods that a workload misses are counted by cause: a pod that is to end by anybody's
// doing but its workload's is missed until the one in its place is ready, and a pod
// more until it is ready for the first time.

// serves reports whether w must have pods ready at all times.
func (sv *serving) serves(w policy.WorkloadID) bool {
	kind := sv.scenario.Workloads[w].Kind
	return kind != policy.KindJob && kind != policy.KindDaemonSet && sv.needed(w)
}

// needed reports whether pods of w are missed where they do not run: the others are to be preempted,
// or run nowhere.
func (sv *serving) needed(w policy.WorkloadID) bool {
	return !sv.scenario.Workloads[w].Expendable && !sv.prepared.neverRuns(w)
}

// setRequired derives the required part of what is desired: the strictest
// matching budget, or without one all but a quarter (at least one may miss). The time
// until now is counted by what was required before.
func (sv *serving) setRequired(w policy.WorkloadID) {
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	required := int32(0)
	if sv.needed(w) {
		required = sv.admitted(w, sv.requiredOf(w, g.desired))
	}
	if _, fewer := sv.workloads.rolling(w); fewer > 0 { // whoever rolls out agrees to it
		required = min(required, max(0, g.wanted-fewer))
	}
	g.required = required
	sv.watch.workload(w)
}

// outages returns the incidents of workload w that are over in g.
func (sv *serving) outages(w policy.WorkloadID, g *readiness) Outages {
	o := g.outages
	if o.Incidents > 0 {
		o.Longest.Workload = sv.scenario.Workloads[w].Name
	}
	if len(sv.scenario.Templates[w].PDBs) == 0 {
		o.WithoutPDB = o.Causes[CauseProvisioner].Outage
	}
	return o
}

// requiredOf returns the part of the pods of w that must be ready when so many
// are desired.
func (sv *serving) requiredOf(w policy.WorkloadID, desired int32) int32 {
	pdbs := sv.scenario.Templates[w].PDBs
	if len(pdbs) == 0 {
		required := desired - max(1, desired/4)
		if desired >= 1 {
			required = max(required, 1)
		}
		return max(required, 0)
	}
	required := int32(0)
	for _, p := range pdbs {
		required = max(required, sv.scenario.PDBs[p].Required(desired))
	}
	return min(required, desired)
}

// missed has the workload of pod id, which is about to end, miss it for cause c. Of
// several causes the first counts, and one that met it before it was ready takes the
// place of why it was made.
func (sv *serving) missed(id policy.PodID, c OutageCause) {
	p, x := &sv.pods.all[id], &sv.pods.state[id]
	w := sv.scenario.Templates[p.Template].Workload
	if x.taken || p.Phase == policy.PodTerminating || p.Phase == policy.PodGone || !sv.serves(w) {
		return
	}
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	if p.Phase != policy.PodReady {
		g.missing[x.cause]--
	}
	g.missing[c]++
	x.cause, x.taken = c, true
}

// leave notes that pod id, which was in the given phase, is no longer one of its workload's.
func (sv *serving) leave(id policy.PodID, was policy.PodPhase) {
	x := &sv.pods.state[id]
	w := sv.scenario.Templates[sv.pods.all[id].Template].Workload
	if !sv.serves(w) {
		return
	}
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	switch {
	case x.taken:
		sv.workloads.state[w].owed[x.cause]++
		sv.forgetOwed(w)
	case was != policy.PodReady:
		g.missing[x.cause]--
	}
}

// come notes that pod id was made: in the place of one that its workload misses, or
// as one more.
func (sv *serving) come(id policy.PodID) {
	x, w := &sv.pods.state[id], sv.scenario.Templates[sv.pods.all[id].Template].Workload
	if !sv.serves(w) {
		return
	}
	for c := range sv.workloads.state[w].owed {
		if sv.workloads.state[w].owed[c] > 0 {
			sv.workloads.state[w].owed[c]--
			x.cause = OutageCause(c)
			return
		}
	}
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	x.cause = CauseGrowth
	g.missing[CauseGrowth]++
}

// filled notes that pod id is missed no longer.
func (sv *serving) filled(id policy.PodID) {
	w := sv.scenario.Templates[sv.pods.all[id].Template].Workload
	if !sv.serves(w) {
		return
	}
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	g.missing[sv.pods.state[id].cause]--
}

// forgetOwed has w miss no more pods than it wants.
func (sv *serving) forgetOwed(w policy.WorkloadID) {
	ws, g := &sv.workloads.state[w], &sv.of[w]
	owed := int32(0)
	for _, n := range ws.owed {
		owed += n
	}
	for c := OutageCauses - 1; c >= 0; c-- {
		if drop := min(ws.owed[c], ws.active+owed-g.wanted); drop > 0 {
			ws.owed[c] -= drop
			g.missing[c] -= drop
			owed -= drop
		}
	}
}

// refusedSpot notes that pod id waits since a spot launch for it was refused.
func (sv *serving) refusedSpot(id policy.PodID) {
	x, w := &sv.pods.state[id], sv.scenario.Templates[sv.pods.all[id].Template].Workload
	if x.cause != CauseGrowth || !sv.serves(w) {
		return
	}
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	g.missing[CauseGrowth]--
	g.missing[CauseRefused]++
	x.cause = CauseRefused
}

// refusedMarkets does so for every pending pod that was promised no place and has room
// on a node of one of the markets of pool.
func (sv *serving) refusedMarkets(pool policy.PoolID, markets []policy.MarketID) {
	var offers []placement.Offer
	for _, o := range sv.prepared.offers[pool] {
		for _, m := range markets {
			if o.Market == m && sv.scenario.Markets[m].Capacity == policy.Spot {
				offers = append(offers, o)
			}
		}
	}
	if len(offers) == 0 {
		return
	}
	asked := make(map[policy.TemplateID]bool)
	for _, id := range sv.queue.pending {
		p := &sv.pods.all[id]
		if p.Phase != policy.PodPending || p.Gated || p.Nominated != policy.None || sv.pods.state[id].cause != CauseGrowth {
			continue
		}
		fits, known := asked[p.Template]
		if !known {
			bins, _ := placement.Provision(sv.space, []policy.Pod{*p}, offers)
			fits = len(bins) > 0
			asked[p.Template] = fits
		}
		if fits {
			sv.refusedSpot(id)
		}
	}
}

// lossOf returns why the provider takes node id. A node on demand is lost to nothing
// but a zone outage that the scenario orders, which takes spot nodes as well.
func (sv *serving) lossOf(id policy.NodeID) OutageCause {
	if !sv.nodes.state[id].spot {
		return CauseFault
	}
	m := &sv.scenario.Markets[sv.nodes.all[id].Market]
	for i := range sv.scenario.Faults {
		f := &sv.scenario.Faults[i]
		lasts := max(f.Duration, weather.DefaultParams().TakeWindow)
		if f.Kind == scenarios.FaultZoneOutage && f.At <= sv.q.Now && sv.q.Now <= f.At.Add(lasts) &&
			(f.Zone == "" || f.Zone == sv.scenario.Zones[m.Zone]) && (f.Type == "" || f.Type == sv.scenario.Types[m.Type].Name) {
			return CauseFault
		}
	}
	return CauseReclaim
}

// evictionOf returns why a pod of node id is evicted, by a drain of the given actor.
func (sv *serving) evictionOf(id policy.NodeID, forced bool, by policy.Actor) OutageCause {
	switch {
	case forced:
		return sv.lossOf(id)
	case by == policy.ActorUs:
		return CauseMove
	}
	return CauseProvisioner
}
