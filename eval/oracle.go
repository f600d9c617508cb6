package eval

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

// Oracle returns a lower bound on bill + outage cost in w over every policy,
// whatever it knows and whatever the weather does. No run may cost less.
//
// Why it holds. Cut the window into hours, and let each resource r of each
// hour have a price y(r) ≥ 0 such that, for every instance type,
//
//	Σ y(r) × allocatable(type, r) ≤ the least price of the type in that hour,
//
// over all its markets, spot and on-demand. A node then costs at every instant
// at least what its allocatable is worth, and so at least what the requests of
// the pods on it are worth, since they fit. Hence a pod that is bound costs at
// least y·requests per hour, and a pod that is missing costs 2 × pod value:
//
//   - A service that wants d pods at an instant and has r ready ones pays at
//     least r·(y·requests) + 2·value·max(0, d − r), and this is at least
//     d·min(y·requests, 2·value).
//   - A job that could be finished in time must have each hour of its work done
//     inside the window, between release and deadline, by at most as many pods
//     at once as it has, or pays 2 × value for it. The cheapest hours that can
//     hold the work cost no more than any that do.
//
// Every feasible y gives a valid bound; the best one comes from a linear
// program per hour with a variable per resource and a constraint per type. Its
// result is shrunk until it is feasible, so validity does not rest on the
// solver. What the bound leaves out only lowers it: whole nodes, delays,
// reclaims and refusals, disruption budgets, shares, DaemonSets.
//
// The pod value used is the least over all on-demand markets of the world,
// which is at most that of the markets the pod may use. The bound is exact to
// the rounding of half a micro-dollar per node.
func Oracle(w *scenarios.World) policy.Money {
	o := newOracle(w)
	jobs := o.jobs()
	for i := range jobs {
		o.spread(&jobs[i])
	}
	total := 0.0
	for h := range o.hours {
		o.solve(h)
		total += o.services(h)
	}
	for i := range jobs {
		total += o.jobCost(&jobs[i])
	}
	return policy.Money(math.Floor(total))
}

// An oracle holds the tables of one computation. Resources are columns: CPU,
// memory, storage, pods and then one per kind of accelerator. Amounts of money
// are micro-dollars.
type oracle struct {
	world  *scenarios.World
	window billing.Span
	hours  []billing.Span
	gpus   []string

	// scale is the largest allocatable of each resource: in units of it the
	// coefficients of the programs lie between 0 and 1. It is 0 for a resource
	// that nothing offers.
	scale []float64

	types    [][]float64 // allocatable of the types that have a price
	floor    [][]float64 // per hour: the least price of each of types
	requests [][]float64 // per workload
	value    []float64   // per workload: the least pod value per hour
	podHours [][]float64 // per hour: of each workload, pod-hours wanted
	wanted   [][]float64 // per hour: of each resource, the amount wanted
	prices   [][]float64 // per hour: y
	program  program
}

func newOracle(w *scenarios.World) *oracle {
	o := &oracle{world: w, window: billing.Span{From: w.Start, To: w.Start.Add(w.Duration)}}
	for t := o.window.From; t < o.window.To; t = t.Add(time.Hour) {
		o.hours = append(o.hours, billing.Span{From: t, To: min(t.Add(time.Hour), o.window.To)})
	}
	for i := range w.Types {
		if g := w.Types[i].GPUResource; g != "" && !slices.Contains(o.gpus, g) {
			o.gpus = append(o.gpus, g)
		}
	}
	o.readPrices()
	for i := range w.Templates {
		t := &w.Templates[i]
		o.requests = append(o.requests, o.inScale(o.row(t.Requests, t.GPUResource)))
		ramp, _ := o.ramp(billing.Span{From: w.Start, To: w.Start + 1})
		o.value = append(o.value, leastPodValue(w, t, ramp))
	}
	for range o.hours {
		o.podHours = append(o.podHours, make([]float64, len(w.Workloads)))
		o.wanted = append(o.wanted, make([]float64, len(o.scale)))
		o.prices = append(o.prices, make([]float64, len(o.scale)))
	}
	for i := range w.Workloads {
		if k := w.Workloads[i].Kind; k != policy.KindJob && k != policy.KindDaemonSet {
			o.readSchedule(i)
		}
	}
	return o
}

// row spreads r over the columns.
func (o *oracle) row(r policy.Resources, gpu string) []float64 {
	row := make([]float64, 4+len(o.gpus))
	row[0], row[1], row[2], row[3] = float64(r.CPU), float64(r.Memory), float64(r.Storage), float64(r.Pods)
	if i := slices.Index(o.gpus, gpu); i >= 0 {
		row[4+i] = float64(r.GPU)
	}
	return row
}

// inScale divides row by the scale. What nothing offers counts nothing: no pod
// that asks for it can run, and the bound for it is that of the rest.
func (o *oracle) inScale(row []float64) []float64 {
	for i, s := range o.scale {
		if s > 0 {
			row[i] /= s
		} else {
			row[i] = 0
		}
	}
	return row
}

// readPrices fills types, floor and scale.
func (o *oracle) readPrices() {
	w := o.world
	place := make([]int, len(w.Types)) // in o.types, from 1
	for i := range w.Markets {
		id := w.Markets[i].Type
		curve := carried(w.Prices[i].Price)
		if curve == nil {
			continue
		}
		if place[id] == 0 {
			o.types = append(o.types, o.row(w.Types[id].Allocatable, w.Types[id].GPUResource))
			place[id] = len(o.types)
		}
	}
	o.scale = make([]float64, 4+len(o.gpus))
	for _, row := range o.types {
		for r, v := range row {
			o.scale[r] = max(o.scale[r], v)
		}
	}
	for _, row := range o.types {
		o.inScale(row)
	}
	for range o.hours {
		row := make([]float64, len(o.types))
		for i := range row {
			row[i] = math.Inf(1)
		}
		o.floor = append(o.floor, row)
	}
	for i := range w.Markets {
		if curve := carried(w.Prices[i].Price); curve != nil {
			o.readCurve(place[w.Markets[i].Type]-1, w.Prices[i].At, curve)
		}
	}
}

// carried returns prices with the price in force before it, or the first one
// after it, in place of policy.NoPrice: what a node is charged that runs on
// while the market is closed. It returns nil when there is no price at all.
func carried(prices []policy.Money) []policy.Money {
	first := slices.IndexFunc(prices, func(p policy.Money) bool { return p != policy.NoPrice })
	if first < 0 {
		return nil
	}
	out, last := make([]policy.Money, len(prices)), prices[first]
	for i, p := range prices {
		if p != policy.NoPrice {
			last = p
		}
		out[i] = last
	}
	return out
}

// readCurve lowers the floors of a type to the prices of one of its markets.
func (o *oracle) readCurve(typ int, at []policy.Time, price []policy.Money) {
	i := 0
	for h, span := range o.hours {
		ramp, ramped := o.ramp(span)
		if ramped {
			// A ramp looks at the price once in a while and holds it.
			span.From = span.From.Add(-rampHold)
		}
		for i > 0 && at[i] > span.From {
			i--
		}
		for i+1 < len(at) && at[i+1] <= span.From {
			i++
		}
		least := price[i]
		for j := i + 1; j < len(at) && at[j] < span.To; j++ {
			least = min(least, price[j])
		}
		o.floor[h][typ] = min(o.floor[h][typ], float64(least)*ramp)
	}
}

// rampHold is the longest that a price ramp may hold a price.
const rampHold = time.Hour

// ramp returns what ordered price ramps may have lowered prices to at some
// instant of span, as a factor of at most 1, and whether there is a ramp.
func (o *oracle) ramp(span billing.Span) (factor float64, found bool) {
	factor = 1
	for i := range o.world.Faults {
		f := &o.world.Faults[i]
		if f.Kind == scenarios.FaultPriceRamp && f.At < span.To && f.At.Add(f.Duration+rampHold) > span.From {
			factor *= max(0, min(1, f.Factor))
			found = true
		}
	}
	return factor, found
}

// leastPodValue returns the value per hour of a pod of t on the on-demand
// market that makes it least, its price times ramp; 0 where none can hold it.
func leastPodValue(w *scenarios.World, t *policy.Template, ramp float64) float64 {
	least := math.Inf(1)
	for i := range w.Markets {
		m := &w.Markets[i]
		if m.Capacity != policy.OnDemand || len(w.Prices[i].At) == 0 {
			continue
		}
		price := float64(billing.NewCurve(w.Prices[i].At, w.Prices[i].Price).At(w.Start))
		if share := t.Requests.LargestShare(w.Types[m.Type].Allocatable); share < 1e9 {
			least = min(least, math.Floor(price*ramp*share))
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return max(0, least)
}

// readSchedule adds the pod-hours that service i wants, growth counted only
// after the ready grace.
func (o *oracle) readSchedule(i int) {
	steps, grace := o.world.Workloads[i].Schedule, o.world.ReadyGrace
	if len(steps) == 0 {
		return
	}
	cuts := []policy.Time{o.window.From, o.window.To}
	for _, s := range steps {
		cuts = append(cuts, s.At, s.At.Add(grace))
	}
	slices.Sort(cuts)
	for k := 1; k < len(cuts); k++ {
		span := billing.Span{From: cuts[k-1], To: cuts[k]}.Clip(o.window)
		if span.To <= span.From {
			continue
		}
		replicas := float64(desired(steps, grace, span.From))
		o.eachHour(span, func(h int, share float64) {
			hours := float64(replicas * share)
			o.podHours[h][i] += hours
			for r, q := range o.requests[i] {
				o.wanted[h][r] += float64(hours * q)
			}
		})
	}
}

// desired returns the replicas that count at t: the fewest wanted since the
// ready grace before it.
func desired(steps []scenarios.ReplicaStep, grace time.Duration, t policy.Time) int32 {
	since := t.Add(-grace)
	fewest, found := steps[0].Replicas, false
	for i, s := range steps {
		if s.At > t {
			break
		}
		if i+1 < len(steps) && steps[i+1].At <= since {
			continue // over before the grace began
		}
		if i > 0 && s.At > since && !found {
			fewest, found = steps[i-1].Replicas, true
		}
		if !found {
			fewest, found = s.Replicas, true
		}
		fewest = min(fewest, s.Replicas)
	}
	return fewest
}

// eachHour calls f with every hour that span touches and how many hours long
// the part in common is.
func (o *oracle) eachHour(span billing.Span, f func(h int, hours float64)) {
	first := int(span.From.Sub(o.window.From) / time.Hour)
	for h := max(0, first); h < len(o.hours) && o.hours[h].From < span.To; h++ {
		if in := span.Clip(o.hours[h]); in.To > in.From {
			f(h, in.Length().Hours())
		}
	}
}

// firstNodeMax is the least slack that a job must have to be counted: more
// than the start-up of a node and a pod ever takes, since counting a job that
// a run does not count would make the bound wrong.
const firstNodeMax = 30 * time.Minute

// A batch is one instance of a job that can be finished in time.
type batch struct {
	workload int
	span     billing.Span // in which the work counts
	work     float64      // pod-hours that must be done in span
	pods     float64      // that run at once, at most
}

// jobs returns the instances that no policy may leave undone for nothing:
// those released early enough to be finished even if the first node is long in
// coming. Work that fits before the window is taken off, and what is released
// before warm-up is never run.
func (o *oracle) jobs() []batch {
	var jobs []batch
	for i := range o.world.Workloads {
		job := o.world.Workloads[i].Job
		if job == nil || job.Pods <= 0 {
			continue
		}
		slack := max(2*o.world.ReadyGrace, firstNodeMax) + o.world.Templates[i].Startup
		rounds := time.Duration((job.Completions + job.Pods - 1) / job.Pods)
		for _, released := range job.Releases {
			end := o.window.To
			if job.Deadline > 0 {
				end = min(end, released.Add(job.Deadline))
			}
			if released < o.window.From.Add(-o.world.WarmUp) || released.Add(rounds*job.Work+slack) > end {
				continue
			}
			b := batch{workload: i, span: billing.Span{From: max(released, o.window.From), To: end}, pods: float64(job.Pods)}
			b.work = float64(float64(job.Completions) * job.Work.Hours())
			if before := b.span.From.Sub(released); before > 0 {
				b.work -= float64(b.pods * before.Hours())
			}
			if b.work > 0 && b.span.To > b.span.From {
				jobs = append(jobs, b)
			}
		}
	}
	return jobs
}

// spread adds what b wants to the hours in which it may run, evenly: a guess
// at where it will run, which the bound's validity does not need.
func (o *oracle) spread(b *batch) {
	length := b.span.Length().Hours()
	o.eachHour(b.span, func(h int, hours float64) {
		work := float64(b.work * hours / length)
		for r, q := range o.requests[b.workload] {
			o.wanted[h][r] += float64(work * q)
		}
	})
}

// solve finds resource prices for hour h and shrinks them until no type is
// worth more than it costs.
func (o *oracle) solve(h int) {
	y := o.prices[h]
	o.program.maximize(o.types, o.floor[h], o.wanted[h], y)
	shrink(y, o.types, o.floor[h])
}

// shrink scales y down until rows·y ≤ limits.
func shrink(y []float64, rows [][]float64, limits []float64) {
	factor := 1.0
	for i, row := range rows {
		if worth := dot(y, row); worth > limits[i] {
			factor = min(factor, limits[i]/worth*(1-1e-12))
		}
	}
	for r := range y {
		y[r] *= factor
	}
}

// services returns what the pod-hours wanted in hour h cost at least.
func (o *oracle) services(h int) float64 {
	total := 0.0
	for i, hours := range o.podHours[h] {
		if hours > 0 {
			total += float64(hours * o.podHour(h, i))
		}
	}
	return total
}

// podHour returns what a pod of workload i costs at least in hour h, served or
// not.
func (o *oracle) podHour(h, i int) float64 {
	return min(dot(o.prices[h], o.requests[i]), 2*o.value[i])
}

// jobCost returns what the work of b costs at least: in its cheapest hours,
// done or left undone. They hold all of it, since b could be finished.
func (o *oracle) jobCost(b *batch) float64 {
	type offer struct{ price, room float64 }
	var offers []offer
	o.eachHour(b.span, func(h int, hours float64) {
		offers = append(offers, offer{o.podHour(h, b.workload), float64(b.pods * hours)})
	})
	slices.SortStableFunc(offers, func(a, b offer) int {
		switch {
		case a.price < b.price:
			return -1
		case a.price > b.price:
			return 1
		}
		return 0
	})
	total, left := 0.0, b.work
	for _, f := range offers {
		hours := min(left, f.room)
		total += float64(hours * f.price)
		left -= hours
	}
	return total
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}
