package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim/result"
)

// A Readiness tracks one workload: the pods that it wants and has, and the effects of the
// difference within the metered window.
type Readiness struct {
	since policy.Time // time up to which the integrals below are complete

	// wanted is the number of pods that the controller wants. desired is the same number, but
	// growth counts only after the ready grace. required is the number of pods that must serve.
	wanted, desired, required int32
	ready, readySpot          int32

	// seen is the number of pods that the cluster takes for ready: pods on a lost node count until
	// the loss is noticed.
	seen int32

	gateState
	readyIntegrals

	// Missing is the number of pods, by cause, that exist or must still be created and do not
	// serve.
	Missing [result.OutageCauses]int32

	outages  result.Outages // of closed incidents
	incident incidentInHand
}

// A gateState records that a closed gate keeps new pods out. After the gate has opened, no more
// pods than admitted are required until spared.
type gateState struct {
	gated    bool
	spared   policy.Time
	admitted int32
}

// The readyIntegrals of a workload over the metered window.
type readyIntegrals struct {
	missingMS int64 // pod-milliseconds of max(0, desired − ready)
	gatedMS   int64 // part of missingMS behind a closed gate
	fullMS    int64 // milliseconds with ready ≥ desired
	readyMS   int64 // pod-milliseconds ready
	spotMS    int64 // part of readyMS on Spot
}

// An incidentInHand is the current incident, if open is true. It ends once the workload has not
// been below its required level for [result.IncidentGap].
type incidentInHand struct {
	open             bool
	began, lastBelow policy.Time                // start, and last time below the level
	belowMS          [result.OutageCauses]int64 // milliseconds below so far
	shortfall        int32                      // maximum so far
}

// add adds the time from from to to below the required level, with short pods missing.
func (x *incidentInHand) add(from, to policy.Time, cause result.OutageCause, short int32) {
	if !x.open {
		x.open, x.began = true, from
	}
	x.belowMS[cause] += int64(to - from)
	x.shortfall = max(x.shortfall, short)
	x.lastBelow = to
}

// advance completes the integrals up to now, within the window.
func (g *Readiness) advance(now policy.Time, window billing.Span) {
	from, to := max(g.since, window.From), min(now, window.To)
	g.since = now
	if to <= from {
		return
	}
	ms := int64(to - from)
	if g.ready >= g.desired {
		g.fullMS += ms
	} else {
		g.missingMS += ms * int64(g.desired-g.ready)
		if g.gated {
			g.gatedMS += ms * int64(g.desired-g.ready)
		}
	}
	g.readyMS += ms * int64(g.ready)
	g.spotMS += ms * int64(g.readySpot)
	if g.ready >= g.required {
		return
	}
	if g.incident.open && from.Sub(g.incident.lastBelow) >= result.IncidentGap {
		g.close()
	}
	g.incident.add(from, to, g.cause(), g.required-g.ready)
}

// close ends the open incident, if there is one.
func (g *Readiness) close() {
	if x := &g.incident; x.open {
		g.outages.AddIncident(x.began, &x.belowMS, x.shortfall)
		*x = incidentInHand{}
	}
}

// outage returns the unserved value and the cost of the incidents of a workload. value is the value
// of one pod per hour. If perHour is positive, incidents cost that much per hour of outage;
// otherwise, each affected pod costs penalty × value.
func (g *Readiness) outage(value policy.Money, penalty float64, perHour policy.Money) (unserved,
	incidents policy.Money) {
	unserved = perHourOf(value, g.missingMS)
	if perHour > 0 {
		return unserved, perHourOf(perHour, g.outages.Outage.Milliseconds())
	}
	return unserved, (value * policy.Money(g.outages.PodsAffected)).Times(penalty)
}

// perHourOf returns the amount for ms milliseconds at an hourly rate, rounded half up. Full hours
// are computed separately, so that no product overflows.
func perHourOf(hourly policy.Money, ms int64) policy.Money {
	const hour = 3_600_000
	return hourly*policy.Money(ms/hour) + (hourly*policy.Money(ms%hour)+hour/2)/hour
}

// percentile returns the p-th percentile (nearest rank) of an ascending list.
func percentile(sorted []int64, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return time.Duration(sorted[max(rank, 1)-1]) * time.Millisecond
}

// A Holding integrates the capacity held over the metered window, in vCPUs, or in GPUs if every
// pool has them.
type Holding struct {
	since            policy.Time
	Nodes, SpotNodes int64
	Size, SpotSize   int64

	nodeMS, spotMS    int64
	sizeMS, spotSzMS  int64
	boundPods, podsMS int64
}

func (h *Holding) advance(now policy.Time, window billing.Span) {
	from, to := max(h.since, window.From), min(now, window.To)
	h.since = now
	if to <= from {
		return
	}
	ms := int64(to - from)
	h.nodeMS += ms * h.Nodes
	h.spotMS += ms * h.SpotNodes
	h.sizeMS += ms * h.Size
	h.spotSzMS += ms * h.SpotSize
	h.podsMS += ms * h.boundPods
}

// FillResult completes the result with the integrals over the window and the totals of budgets and
// gangs. saved is the memory of the policy, with its ledger of budgets.
func (c *Cluster) FillResult(saved *policy.Memory) {
	const hour, day = 3_600_000.0, 86_400_000.0
	res, length := c.Result, float64(c.Window.To-c.Window.From)
	services := 0
	for i := range c.Serving.Of {
		g, w := &c.Serving.Of[i], &c.Scenario.Workloads[i]
		g.advance(c.Window.To, c.Window)
		g.close()
		if !c.Serving.serves(policy.WorkloadID(i)) {
			continue
		}
		services++
		value := c.Prepared.PodValue(policy.WorkloadID(i))
		unserved, incidents := g.outage(value, w.OutagePenalty, w.OutageCostPerHour)
		full := float64(g.fullMS) / length
		wr := result.WorkloadResult{Name: w.Name, Kind: w.Kind, PodValue: value,
			Outages:  c.Serving.outages(policy.WorkloadID(i), g),
			Unserved: unserved, OutageCost: 2*unserved + incidents, Availability: full}
		if g.readyMS > 0 {
			wr.SpotShare = float64(g.spotMS) / float64(g.readyMS)
		}
		res.Workloads = append(res.Workloads, wr)
		res.Unserved += unserved
		res.UnservedCost += 2 * unserved
		res.IncidentCost += incidents
		res.Outages.Add(&wr.Outages)
		res.Availability += full
	}
	if services > 0 {
		res.Availability /= float64(services)
	} else {
		res.Availability = 1
	}
	res.OutageCost = res.UnservedCost + res.IncidentCost + res.JobCost
	h := &c.Nodes.Holding
	h.advance(c.Window.To, c.Window)
	res.NodeHours, res.SpotHours = float64(h.nodeMS)/hour, float64(h.spotMS)/hour
	res.CapacityHours = float64(h.sizeMS) / hour
	res.PodDays = float64(h.podsMS) / day
	if h.sizeMS > 0 {
		res.SpotShare = float64(h.spotSzMS) / float64(h.sizeMS)
	}
	slices.SortFunc(c.Serving.readyTimes, cmp.Compare[int64])
	res.TimeToReadyP50, res.TimeToReadyP95 = percentile(c.Serving.readyTimes, 50), percentile(c.Serving.readyTimes, 95)
	c.GPUBudgets.fill(saved)
	c.Gangs.fill()
	c.Kueue.fill()
}

// AddOutages adds to a sample the total outages at the given instant, as if open incidents ended
// then. The instant may be later than now.
func (c *Cluster) AddOutages(s *result.Sample, at policy.Time) {
	for i := range c.Serving.Of {
		w := &c.Scenario.Workloads[i]
		if !c.Serving.serves(policy.WorkloadID(i)) {
			continue
		}
		g := c.Serving.Of[i] // a copy, so that the incident stays open
		g.advance(at, c.Window)
		g.close()
		unserved, incidents := g.outage(c.Prepared.PodValue(policy.WorkloadID(i)), w.OutagePenalty, w.OutageCostPerHour)
		s.OutageCost += 2*unserved + incidents
		own := c.Serving.outages(policy.WorkloadID(i), &g)
		s.Outages.Add(&own)
	}
}
