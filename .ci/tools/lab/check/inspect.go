package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// A Finding is something about a trace that its reader should know.
type Finding struct {
	// Name is short and the same for every trace.
	Name string `json:"name"`

	// Failure says that no market can have done it, so that the trace is
	// wrong. Without it, the finding is only remarkable.
	Failure bool `json:"failure"`

	// Count is how often it was found, and Text says what in words, with
	// examples.
	Count int    `json:"count"`
	Text  string `json:"text"`
}

// The bounds of plausible prices. They are far outside the recorded range: the most
// expensive hour of AWS's auction cost ten times the on-demand price, which was the cap;
// the largest step in a year and a half of prices halved a price.
const (
	// ratioImpossible is a price in the wrong unit, such as cents for dollars.
	ratioImpossible = 50

	// stepImpossible is a factor between two prices of one market.
	stepImpossible = 1000

	// firstSpot is the day on which Amazon began to sell Spot capacity, the
	// first that anybody sold.
	firstSpot = "2009-12-14"

	// examplesShown is how many markets a finding names.
	examplesShown = 3

	// silentBelow is the share of the changes of a median day below which a day
	// is taken for one without recording, where a median day has at least
	// busyDay changes.
	silentBelow = 0.02
	busyDay     = 50
)

// An inspector gathers findings by market.
type inspector struct {
	t        *trace.Trace
	findings []Finding

	zero, dear, leap, above, free, unpriced, derived, unoffered, contradiction, truth []string
}

// Inspect looks for what cannot be and for what is remarkable. Findings are in
// a fixed order, failures first.
func Inspect(t *trace.Trace) []Finding {
	x := &inspector{t: t}
	for i := range t.Series {
		x.market(&t.Series[i])
	}
	x.report("price-impossible", true, x.dear, fmt.Sprintf("a price above %d × on-demand is one in the wrong unit",
		ratioImpossible))
	x.report("step-impossible", true, x.leap,
		fmt.Sprintf("a price that changes %d-fold at once is one in the wrong unit", stepImpossible))
	x.report("on-demand-free", true, x.free, "an on-demand price that falls or rises tenfold is one of another type")
	x.whole()
	x.report("above-on-demand", false, x.above, "Spot above the on-demand price is worth nothing; only auctions have it")
	x.report("without-on-demand", false, x.unpriced,
		"neither the trace nor the catalog has an on-demand price: runs leave these out")
	x.report("on-demand-modelled", false, x.derived,
		"nobody publishes an on-demand price: ratios are to that of a type of AWS of that size")
	x.report("price-zero", false, x.zero, "some lists write 0 for what is not sold, and runs take it so")
	x.report("never-offered", false, x.unoffered, "no price at any time")
	x.report("available-unsold", false, x.contradiction, "a node is said to be had while there is no price")
	x.silentDays()
	slices.SortStableFunc(x.findings, func(a, b Finding) int { return rank(a) - rank(b) })
	return x.findings
}

// rank puts failures first.
func rank(f Finding) int {
	if f.Failure {
		return 0
	}
	return 1
}

// report adds a finding for the markets of names.
func (x *inspector) report(name string, failure bool, names []string, why string) {
	if len(names) == 0 {
		return
	}
	x.findings = append(x.findings, Finding{name, failure, len(names),
		fmt.Sprintf("%d of %d markets: %s (%s)", len(names), len(x.t.Series), why, cli.FirstOf(names, examplesShown))})
}

// market looks at one series.
func (x *inspector) market(s *trace.Series) {
	name := s.Name()
	fallback, derived := measure.OnDemand(s)
	var zero, dear, leap, above, moved, contradiction bool
	priced := fallback > 0
	var last, cheapest, dearest policy.Money
	for j, spot := range s.Spot {
		onDemand := fallback
		if s.OnDemand != nil && s.OnDemand[j] > 0 {
			onDemand, priced = s.OnDemand[j], true
			dearest = max(dearest, onDemand)
			if cheapest == 0 || onDemand < cheapest {
				cheapest = onDemand
			}
		}
		contradiction = contradiction || spot == policy.NoPrice && s.Available != nil && s.Available[j] == 1
		if spot < 0 {
			continue
		}
		zero = zero || spot == 0
		dear = dear || onDemand > 0 && spot > ratioImpossible*onDemand
		above = above || onDemand > 0 && spot > onDemand+onDemand/1000
		leap = leap || last > 0 && spot > 0 && (spot > stepImpossible*last || last > stepImpossible*spot)
		last = spot
	}
	moved = dearest > 10*cheapest
	note(&x.zero, zero, name)
	note(&x.dear, dear, name)
	note(&x.leap, leap, name)
	note(&x.above, above, name)
	note(&x.free, moved, name)
	note(&x.unpriced, !priced, name)
	note(&x.derived, derived && dearest == 0, name)
	note(&x.unoffered, !measure.EverOffered(s), name)
	note(&x.contradiction, contradiction, name)
	note(&x.truth, s.TrueHazard != nil, name)
}

func note(list *[]string, found bool, name string) {
	if found {
		*list = append(*list, name)
	}
}

// whole looks at what is of the trace and not of one market.
func (x *inspector) whole() {
	t := x.t
	first, err := time.Parse(time.DateOnly, firstSpot)
	if err != nil {
		panic(err)
	}
	if t.From < policy.TimeOf(first) {
		x.findings = append(x.findings, Finding{"before-spot", true, 1, fmt.Sprintf(
			"it begins %s, and nobody sold Spot capacity before %s: times are in another unit", cli.Minute(t.From)+"Z", firstSpot)})
	}
	if len(x.unpriced) == len(t.Series) {
		x.findings = append(x.findings, Finding{"nothing-priced", true, len(t.Series),
			"no market has an on-demand price: nothing can be compared and nothing run"})
	}
	if !t.Synthetic && !t.Unmarked {
		x.report("truth-recorded", true, x.truth,
			"only a generator knows the true hazard, and the trace says that it was recorded")
	}
	if t.Synthetic && t.Meta["seed"] == "" {
		x.findings = append(x.findings, Finding{"seed-unknown", false, 1,
			"it was generated and does not say by which seed: it cannot be made again"})
	}
	if t.Unmarked {
		x.findings = append(x.findings, Finding{"origin-unknown", false, 1,
			"its files do not say whether it was recorded or generated"})
	}
}

const day = policy.Time(24 * time.Hour / time.Millisecond)

// silentDays finds whole days without changes in a trace that has many each
// day: days on which nothing was recorded.
func (x *inspector) silentDays() {
	t := x.t
	begin := (t.From + day - 1) / day
	count := make([]float64, max(0, t.To/day-begin))
	for i := range t.Series {
		s := &t.Series[i]
		for j := 1; j < len(s.At); j++ {
			if d := s.At[j]/day - begin; s.Spot[j] != s.Spot[j-1] && d >= 0 && int(d) < len(count) {
				count[d]++
			}
		}
	}
	sorted := slices.Clone(count)
	slices.Sort(sorted)
	median := portable.Quantile(sorted, 0.5)
	if !(median >= busyDay) {
		return
	}
	var silent []string
	for d, n := range count {
		if n < float64(silentBelow*median) {
			silent = append(silent, ((begin + policy.Time(d)) * day).Std().Format(time.DateOnly))
		}
	}
	if len(silent) > 0 {
		x.findings = append(x.findings, Finding{"silent-days", false, len(silent), fmt.Sprintf(
			"%d of %d days have less than 2%% of the %.0f changes of a median day, as if nothing had been recorded (%s)",
			len(silent), len(count), median, cli.FirstOf(silent, examplesShown))})
	}
}

// Failures returns those of all that are failures.
func Failures(all []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return !f.Failure })
}

// FindingsText renders findings for a terminal.
func FindingsText(all []Finding) string {
	if len(all) == 0 {
		return "nothing implausible was found\n"
	}
	var b strings.Builder
	for _, f := range all {
		kind := "remark"
		if f.Failure {
			kind = "FAILURE"
		}
		fmt.Fprintf(&b, "%-8s %s: %s\n", kind, f.Name, f.Text)
	}
	return b.String()
}
