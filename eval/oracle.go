package eval

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

// A Bound is a lower bound on bill + outage cost in a world.
type Bound struct {
	// Cost holds for every policy, whatever it knows and whatever the weather
	// does; OnDemand for those that buy on demand only.
	Cost, OnDemand policy.Money

	// Slots holds for every policy in the weather of a seed, in which a market has
	// only so many nodes at once. It is at least Cost; 0 where no seed is given.
	Slots policy.Money

	// Short is in how many pieces of the window the search for good prices was cut
	// short by its limit of work. The bounds hold, and may be lower for it.
	Short int
	// open says that they were not worked out, since the comparison was stopped.
	open bool
}

// Oracle returns the bounds of w. No run may cost less.
//
// Why they hold. Cut the window wherever a price, an offer or a demand changes.
// In each piece let every kind of node (what it leaves to pods beside its
// DaemonSet pods, and the workloads that may run there) have a price per
// resource such that all that it leaves is worth no more than the node costs,
// in the cheapest market in which one can be alive. What the pods on a node
// request is then worth no more than the node, so a pod of a workload costs at
// least the worth of its requests on the kind where that is least: its rate.
// And a pod that is missing costs 2 × pod value, so no rate need be above that.
//
//   - A service that wants d pods and has r pays at least rate·r + 2·value·(d−r),
//     and this is at least rate·d.
//   - A job released early enough that no run is excused from it has each hour of
//     its work done between its release and its end, by at most as many pods at
//     once as it has, or pays 2·value for it. What can be done of it before the
//     window costs nothing; to every completion of the others belongs the start of
//     a pod. The cheapest pieces that can hold the work cost no more than any that
//     do.
//
// Sharper than prices of resources are prices of pods such that no whole pods
// that fit a node of a kind are together worth more than it costs: they are its
// pods' rates at once. Whether they are such is searched exactly; for a kind of
// which the search takes too long its prices of resources are left.
//
// Any prices give a bound. Those used are the best: they come from the linear
// program whose columns are nodes of a kind, each with pods that just fit, whose
// rows are the workloads, and in which a pod may stay unserved. The rates that it
// finds are worked out again from the prices alone, with every rounding downward,
// so that a fault of the solver can only lower the bound. Where work of jobs goes
// is found by turns: it decides how good the bound is and not whether it holds.
//
// What was paid for in advance is a node of a kind that costs nothing, as long as
// the amount lasts. Let each commitment have a value per unit: then such a node
// costs its part of that value, for as many as there are, and the value of the
// whole amount is taken off the bound. Any values will do, and the best are again
// those of the program, which has a row for each commitment.
//
// What is left out only lowers it: whole nodes, the start-up of nodes, overlap,
// reclaims and refusals, slots (of which oracle_slots.go has a bound), spreading
// over zones, disruption budgets, shares and limits. A market counts as closed only where no slot of it could hold a
// node: which is when depends on the weather, so that the bound of a seed is above
// that of all.
//
// A world that cannot be run has bounds of 0.
func Oracle(w *scenarios.World) Bound {
	o, err := newOracle(w)
	if err != nil {
		return Bound{}
	}
	return o.every()
}

// every returns the bounds that hold in every weather.
func (o *oracle) every() Bound {
	cost, short := o.bound(o.newFleet(anyMarket, nil))
	onDemand, also := o.bound(o.newFleet(onDemandOnly, nil))
	// What holds for every policy holds for those that buy on demand too.
	return Bound{Cost: cost, OnDemand: max(cost, onDemand), Short: short + also}
}

// under returns the bounds over every policy in the weather of a seed.
func (o *oracle) under(seed uint64) (Bound, error) {
	drawn, err := o.stage.NewWeather(seed)
	if err != nil {
		return Bound{}, fmt.Errorf("weather of seed %d: %w", seed, err)
	}
	cost, short := o.bound(o.newFleet(anyMarket, drawn))
	slots, also := o.bound(o.slottedFleet(drawn))
	return Bound{Cost: cost, Slots: max(cost, slots), Short: short + also}, nil
}

func anyMarket(*policy.Market) bool      { return true }
func onDemandOnly(m *policy.Market) bool { return m.Capacity == policy.OnDemand }

// An oracle holds what all bounds of one world share. Workloads that nobody
// misses, such as DaemonSets, want nothing.
type oracle struct {
	world  *scenarios.World
	stage  *sim.Stage
	window billing.Span

	sites []site
	apart [][]int

	// classes are the workloads whose pods are alike, by the first of each, and
	// classOf is the class of each workload.
	classes, classOf []int

	services []demand
	jobs     []batch

	// workMax bounds the operations that one bound may take, of which a core does
	// some 10^9 a second. Few worlds come near it: it takes hundreds of services
	// or of kinds of node.
	workMax int

	// value is what a missing pod of each workload costs per hour, in
	// micro-dollars: 2 × its pod value, and less for jobs, see missing.
	value []float64
}

// defaultWorkMax is the limit of work of a bound.
const defaultWorkMax = 3_000_000_000

func newOracle(w *scenarios.World) (*oracle, error) {
	stage, err := sim.NewStage(w)
	if err != nil {
		return nil, err
	}
	o := &oracle{world: w, stage: stage, workMax: defaultWorkMax, window: billing.Span{From: w.Start, To: w.Start.Add(w.Duration)}}
	for i := range w.Workloads {
		o.value = append(o.value, o.missing(i))
	}
	o.findSites()
	o.findApart()
	o.findClasses()
	o.readServices()
	o.readJobs()
	return o, nil
}

// jobRounds is how often jobs' work is placed anew where there are jobs. Each
// round costs as much as the first; the bound is the best one's.
const jobRounds = 8

// bound returns the bound over policies that buy nodes of f only, and in how many
// pieces the prices are not the best since the work was at its end.
func (o *oracle) bound(f *fleet) (least policy.Money, short int) {
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
			f.giveBack(&pieces[i], &owned)
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

// rounding returns the most by which the meter may round a run's cost down. The
// outage cost of a service and what an instance of a job left undone are each
// twice an amount rounded to the micro-dollar, and so may be one less. A bill
// may be half of one less for every node. A node launched in the window pays
// more than that for its start-up, of which the bound knows nothing; of the
// others only those count that hold pods when the window begins.
func (o *oracle) rounding() policy.Money {
	nodes, amounts := int64(0), int64(len(o.services)+len(o.jobs))
	for i := range o.services {
		nodes += int64(replicasAt(o.services[i].steps, o.window.From))
	}
	for i := range o.world.Workloads {
		if job := o.world.Workloads[i].Job; job != nil {
			for _, at := range job.Releases {
				if at <= o.window.From {
					nodes += int64(job.Pods)
				}
			}
		}
	}
	return policy.Money(amounts + (nodes+1)/2)
}

// A piece is a stretch of the window in which no price, offer or demand changes.
type piece struct {
	span billing.Span

	// price is the least price of a node of each kind in micro-dollars, closed
	// where there can be none.
	price []policy.Money

	// wanted is the number of pods of each class that services want, guess how many
	// of jobs are thought to run.
	wanted []int32
	guess  []float64

	// supply is the least price in each supply of the fleet, and slots how many
	// nodes there may be at once.
	supply []policy.Money
	slots  []int32

	// rates is what a pod of each class costs at least, in millionths of a
	// micro-dollar per hour, where a node of each kind costs limits.
	rates, limits []int64

	// owned is what the commitments are taken to be worth, to be given back, in
	// the same unit.
	owned int64
}

// cut divides the window into pieces.
func (o *oracle) cut(f *fleet) []piece {
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
		p := piece{span: billing.Span{From: at[i], To: at[i+1]}, price: make([]policy.Money, len(f.kinds)), wanted: make([]int32, n), guess: make([]float64, n)}
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

// like reports whether p is a problem with the same solution as c.
func (p *piece) like(c *piece) bool {
	return slices.Equal(p.price, c.price) && slices.Equal(p.supply, c.supply) && slices.Equal(p.slots, c.slots) &&
		slices.Equal(p.wanted, c.wanted) && slices.Equal(p.guess, c.guess)
}

// milliseconds returns the length of the piece.
func (p *piece) milliseconds() int64 { return int64(p.span.To - p.span.From) }

// perMicroDollar is the number of units of a rate in one micro-dollar.
const perMicroDollar = 1_000_000

// A sum adds up rates × pod-milliseconds exactly, in 128 bits.
type sum struct{ high, low uint64 }

// add adds a product of numbers that are not negative.
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
		return math.MaxInt64 // above every amount of money; no world has it
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
