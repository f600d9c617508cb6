package oracle

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A Bound is a lower bound on the sum of bill and outage cost in a scenario.
type Bound struct {
	// Cost applies to every policy, whatever its information, in every weather. OnDemand applies to
	// policies that only launch on-demand nodes.
	Cost, OnDemand policy.Money

	// Slots applies to every policy in the weather of a seed, in which a market has a limited
	// number of nodes at once. It is at least Cost, and 0 without a seed.
	Slots policy.Money

	// Short is the number of pieces of the window in which the search for good prices was stopped
	// at its work limit. The bounds are still valid, but may be lower.
	Short int

	// Open reports whether the bounds were not computed; the other fields are then undefined. No
	// function of this package sets it.
	Open bool
}

// Of returns the bounds of w. No run costs less. The bounds are 0 if w cannot be run.
func Of(w *scenarios.BoundScenario) Bound {
	o, err := New(w)
	if err != nil {
		return Bound{}
	}
	return o.Every()
}

// Every returns the bounds that apply in every weather.
func (o *Oracle) Every() Bound {
	cost, short := o.bound(o.newFleet(anyMarket, nil))
	onDemand, also := o.bound(o.newFleet(onDemandOnly, nil))
	// A bound for every policy is also a bound for policies that only launch on-demand nodes.
	return Bound{Cost: cost, OnDemand: max(cost, onDemand), Short: short + also}
}

// Under returns the bounds for every policy in the weather of a seed.
func (o *Oracle) Under(seed uint64) (Bound, error) {
	drawn, err := o.prepared.DrawWeather(seed)
	if err != nil {
		return Bound{}, fmt.Errorf("weather of seed %d: %w", seed, err)
	}
	cost, short := o.bound(o.newFleet(anyMarket, drawn))
	slots, also := o.bound(o.slottedFleet(drawn))
	return Bound{Cost: cost, Slots: max(cost, slots), Short: short + also}, nil
}

func anyMarket(*policy.Market) bool      { return true }
func onDemandOnly(m *policy.Market) bool { return m.Capacity == policy.OnDemand }

// An Oracle contains the common data of all bounds of one scenario. Workloads without an outage
// cost, such as DaemonSets, have no demand.
type Oracle struct {
	scenario *scenarios.BoundScenario
	prepared *sim.Prepared
	window   billing.Span
	fees     []policy.Money // by market: the lowest fees of a node in any pool

	sites     []site
	exclusive [][]int // sets of workloads that share no node

	// classes groups the workloads with equivalent pods; each is represented by the first of its
	// workloads. classOf is the class of each workload.
	classes, classOf []int

	services []demand
	jobs     []batch

	// workMax is the maximum number of operations of one bound; a core executes about 10^9 of them
	// per second. Few scenarios reach it: those with hundreds of services or of kinds of nodes.
	workMax int

	// value is the cost of a missing pod of each workload per hour, in micro-dollars: 2 × its pod
	// value, and less for jobs; see missing.
	value []float64
}

// defaultWorkMax is the default of Oracle.workMax.
const defaultWorkMax = 3_000_000_000

// New returns the oracle of w. It returns an error if w cannot be run.
func New(w *scenarios.BoundScenario) (*Oracle, error) {
	prepared, err := sim.Prepare(w)
	if err != nil {
		return nil, err
	}
	o := &Oracle{scenario: w, prepared: prepared, workMax: defaultWorkMax,
		window: billing.Span{From: w.Start, To: w.Start.Add(w.Duration)}}
	for i := range w.Workloads {
		o.value = append(o.value, o.missing(i))
	}
	o.findSites()
	o.findExclusiveSets()
	o.findClasses()
	o.readServices()
	o.readJobs()
	return o, nil
}

// jobRounds is the number of iterations for the times of jobs' work if there are jobs. Each takes
// as long as the first. The bound is that of the best iteration.
const jobRounds = 8

// bound returns the bound for policies that only launch nodes of f, and the number of pieces whose
// prices are not optimal because the work limit was reached.
func (o *Oracle) bound(f *fleet) (least policy.Money, short int) {
	jobs := slices.Clone(o.jobs)
	pieces := o.cut(f)
	rounds := 1
	if len(jobs) > 0 {
		rounds = jobRounds
		for i := range jobs {
			jobs[i].spread(pieces)
		}
	}
	var value []float64
	for _, w := range o.classes {
		value = append(value, o.value[w])
	}
	work := 0
	for round := range rounds {
		var all, owned sum
		p := newPacking(f, value, o.workMax)
		p.work = work
		short = 0
		for i := range pieces {
			if !p.solve(&pieces[i]) {
				short++
			}
			owned.add(pieces[i].owned, pieces[i].milliseconds())
			f.addRents(&pieces[i], &owned)
			for j, n := range pieces[i].wanted {
				all.add(pieces[i].rates[j], int64(n)*pieces[i].milliseconds())
			}
		}
		for i := range jobs {
			jobs[i].settle(pieces, &all, 1/float64(round+2))
		}
		least = max(least, all.money()-owned.moneyUp()-o.rounding())
		if work = p.work; work > o.workMax {
			break
		}
	}
	return least, short
}

// rounding returns the maximum amount by which the meter may round a run's cost down. The outage
// cost of a service and that of the undone work of a job instance are each twice an amount that is
// rounded to the micro-dollar, so each may be one micro-dollar too low. A bill may be half a
// micro-dollar too low for every node, and for each of its two fees. A node that is launched in the
// window pays more than that for its start-up, which the bound ignores. Of the other nodes, only
// those that run pods at the start of the window count.
func (o *Oracle) rounding() policy.Money {
	nodes, amounts := int64(0), int64(len(o.services)+len(o.jobs))
	for i := range o.services {
		nodes += int64(replicasAt(o.services[i].steps, o.window.From))
	}
	for i := range o.scenario.Workloads {
		if job := o.scenario.Workloads[i].Job; job != nil {
			for _, at := range job.Releases {
				if at <= o.window.From {
					nodes += int64(job.Pods)
				}
			}
		}
	}
	if slices.ContainsFunc(o.scenario.Pools, func(p policy.Pool) bool { return p.Fees != policy.NodeFees{} }) {
		nodes *= 3
	}
	return policy.Money(amounts + (nodes+1)/2)
}

// A piece is an interval of the window in which no price, offer or demand changes.
type piece struct {
	span billing.Span

	// price is the lowest price of a node of each kind in micro-dollars per hour, closed if no node
	// can be alive.
	price []policy.Money

	// wanted is the number of pods of each class that services require, guess the assumed number of
	// pods of jobs that run.
	wanted []int32
	guess  []float64

	// supply is the lowest price in each supply of the fleet, slots its maximum number of nodes at
	// once.
	supply []policy.Money
	slots  []int32

	// rates is the minimum cost of a pod of each class in millionths of a micro-dollar per hour, if
	// a node of each kind costs limits.
	rates, limits []int64

	// owned is the assumed value of the commitments, in the same unit. It must be subtracted from
	// the bound.
	owned int64
}

// cut divides the window into pieces.
func (o *Oracle) cut(f *fleet) []piece {
	at := append([]policy.Time{o.window.From, o.window.To}, f.cuts...)
	for i := range f.kinds {
		at = append(at, f.kinds[i].at...)
	}
	for i := range o.services {
		at = append(at, o.services[i].at...)
	}
	for i := range o.jobs {
		at = append(at, o.jobs[i].span.From, o.jobs[i].span.To)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	n := len(o.classes)
	var pieces []piece
	for i := 0; i+1 < len(at); i++ {
		if at[i] < o.window.From || at[i] >= o.window.To {
			continue
		}
		p := piece{span: billing.Span{From: at[i], To: at[i+1]}, price: make([]policy.Money, len(f.kinds)),
			wanted: make([]int32, n), guess: make([]float64, n)}
		for k := range f.kinds {
			p.price[k] = f.kinds[k].priceAt(at[i])
		}
		for k := range o.services {
			p.wanted[o.services[k].class] += o.services[k].countAt(at[i])
		}
		pieces = append(pieces, p)
	}
	f.supplyOver(pieces)
	return pieces
}

// like reports whether p and c are problems with the same solution.
func (p *piece) like(c *piece) bool {
	return slices.Equal(p.price, c.price) && slices.Equal(p.supply, c.supply) && slices.Equal(p.slots, c.slots) &&
		slices.Equal(p.wanted, c.wanted) && slices.Equal(p.guess, c.guess)
}

// milliseconds returns the length of the piece.
func (p *piece) milliseconds() int64 { return int64(p.span.To - p.span.From) }

// perMicroDollar is the number of units of a rate in one micro-dollar.
const perMicroDollar = 1_000_000

// A sum adds up products of rates and pod-milliseconds exactly, in 128 bits.
type sum struct{ high, low uint64 }

// add adds a product of two numbers, which must not be negative.
func (t *sum) add(rate, ms int64) {
	high, low := bits.Mul64(uint64(rate), uint64(ms))
	var carry uint64
	t.low, carry = bits.Add64(t.low, low, 0)
	t.high, _ = bits.Add64(t.high, high, carry)
}

// money returns the sum in whole micro-dollars, rounded down.
func (t *sum) money() policy.Money {
	const unit = uint64(time.Hour/time.Millisecond) * perMicroDollar
	if t.high >= unit {
		return math.MaxInt64 // higher than every amount of money; it does not occur in practice
	}
	quotient, _ := bits.Div64(t.high, t.low, unit)
	return policy.Money(min(quotient, math.MaxInt64))
}

// moneyUp returns the sum in whole micro-dollars, rounded up.
func (t *sum) moneyUp() policy.Money {
	if t.high == 0 && t.low == 0 {
		return 0
	}
	return min(t.money(), math.MaxInt64-1) + 1
}
