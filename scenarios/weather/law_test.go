package weather

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// lawPlace returns the n-th place of a region.
func lawPlace(seed, n uint64, mean float64) Place {
	return Place{
		Region: "us-east-1", Mean: mean,
		Common: chance.Stream(seed, "law common"), Own: chance.Stream(seed, "law own").At1(n),
	}
}

// flatLaw has neither hours nor weekdays, so that its figures are known.
func flatLaw() Law {
	l := scarceLaw()
	l.Hour, l.Weekday = [24]float64{}, [7]float64{}
	return l
}

// down returns the share of time in outages.
func down(outages []Outage, from, to policy.Time) float64 {
	sum := policy.Time(0)
	for _, o := range outages {
		sum += max(0, min(o.Until, to)-max(o.From, from))
	}
	return float64(sum) / float64(to-from)
}

// Over long times a place is available with the probability Φ(mean), whatever
// the unrest, and its outages begin as often as the law's rate says.
func TestLawShareAndRate(t *testing.T) {
	from, to := begin, begin+days(3000)
	for _, unrest := range []float64{0, 1.2} {
		for _, mean := range []float64{-1, 0.4, 1.3} {
			l := flatLaw()
			l.Unrest = unrest
			outages := l.Outages(nil, lawPlace(1, 0, mean), from, to)
			if got, want := 1-down(outages, from, to), chance.NormalCDF(mean); math.Abs(got-want) > 0.04 {
				t.Errorf("unrest %v, mean %v: available %.3f of the time, want %.3f", unrest, mean, got, want)
			}
			got, want := float64(len(outages))/(float64(to-from)/float64(hour)), l.Rate(mean)
			if math.Abs(got/want-1) > 0.12 {
				t.Errorf("unrest %v, mean %v: %.4f outages per hour, want %.4f", unrest, mean, got, want)
			}
		}
	}
}

// Unrest makes quiet stretches longer and the others fuller of outages: more
// shortages last beyond a day, and more end within the hour.
func TestUnrest(t *testing.T) {
	long := func(unrest float64) (share float64) {
		l := flatLaw()
		l.Unrest = unrest
		outages := l.Outages(nil, lawPlace(2, 0, 1), begin, begin+days(3000))
		for i := 1; i < len(outages); i++ {
			if up := outages[i].From - outages[i-1].Until; up > days(1) {
				share += float64(up) / float64(days(3000))
			}
		}
		return share
	}
	if even, uneven := long(0), long(1.2); uneven < even+0.05 {
		t.Errorf("shortages beyond a day fill %.3f of the time without unrest and %.3f with it, want more", even, uneven)
	}
}

// Zones of a region share its levels: they are down together far more often
// than by accident, and zones of different regions are not.
func TestZonesFailTogether(t *testing.T) {
	l := flatLaw()
	from, to := begin, begin+days(3000)
	a := l.Outages(nil, lawPlace(3, 0, 0.4), from, to)
	b := l.Outages(nil, lawPlace(3, 1, 0.4), from, to)
	c := l.Outages(nil, lawPlace(4, 2, 0.4), from, to)
	both := func(x, y []Outage) (share float64) {
		for i, j := 0, 0; i < len(x) && j < len(y); {
			share += float64(max(0, min(x[i].Until, y[j].Until)-max(x[i].From, y[j].From))) / float64(to-from)
			if x[i].Until < y[j].Until {
				i++
			} else {
				j++
			}
		}
		return share
	}
	q := 1 - chance.NormalCDF(0.4)
	if got := (both(a, b) - q*q) / (q * (1 - q)); got < 0.35 || got > 0.6 {
		t.Errorf("the correlation of two zones of a region is %.3f, want about .48", got)
	}
	if got := (both(a, c) - q*q) / (q * (1 - q)); math.Abs(got) > 0.05 {
		t.Errorf("the correlation of zones of two regions is %.3f, want 0", got)
	}
}

// A longer draw starts as a shorter one does.
func TestLawLongerDraw(t *testing.T) {
	l := scarceLaw()
	long := l.Outages(nil, lawPlace(5, 0, 0), begin, begin+days(60))
	short := l.Outages(nil, lawPlace(5, 0, 0), begin, begin+days(20))
	if len(short) < 20 || !slices.Equal(short, long[:len(short)]) {
		t.Errorf("%d outages in 20 days are not the first of %d in 60", len(short), len(long))
	}
}

// Outages follow the rates that the law says beforehand, hour by hour, but for
// the evenness of the draws.
func TestRisks(t *testing.T) {
	l := flatLaw()
	l.Unrest = 0 // the rates are those of an even clock
	p := lawPlace(6, 0, 0.4)
	to := begin + days(4000)
	var hours []policy.Time
	for at := begin; at < to; at += hour {
		hours = append(hours, at)
	}
	risks := l.Risks(p, begin, hours)
	outages := l.Outages(nil, p, begin, to)
	var expected, soon [2]float64 // where the risk is below the usual and above
	next := 0
	for i, risk := range risks {
		at := begin + policy.Time(i)*hour
		for next < len(outages) && outages[next].Until <= at {
			next++
		}
		in := next < len(outages) && outages[next].From <= at
		if in != (risk == 0) {
			t.Fatalf("hour %d: in an outage %v, risk %v", i, in, risk)
		}
		if in {
			continue
		}
		class := 0
		if risk > 0.3 {
			class = 1
		}
		// Within a minute the levels hardly change.
		expected[class] += risk / 60
		if next < len(outages) && outages[next].From <= at+hour/60 {
			soon[class]++
		}
	}
	for class := range expected {
		if ratio := soon[class] / expected[class]; ratio < 0.75 || ratio > 1.35 {
			t.Errorf("class %d: %v outages within a minute, want about %.0f", class, soon[class], expected[class])
		}
	}
}

// Every constant of the model says what it rests on, once.
func TestAssumptions(t *testing.T) {
	p := DefaultParams()
	seen := map[string]int{}
	for _, a := range p.Assumptions() {
		for _, name := range strings.Split(a.Name, ", ") {
			seen[name]++
		}
		if a.Value == "" || a.Source == "" || a.Basis != Fitted && a.Basis != Published && a.Basis != Modelled {
			t.Errorf("incomplete: %+v", a)
		}
	}
	fields := reflect.TypeFor[Params]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; seen[name] != 1 {
			t.Errorf("Params.%s is listed %d times, want once", name, seen[name])
		}
	}
	if leads := len(policy.NoticeRules()); len(seen) != fields.NumField()+leads {
		t.Errorf("%d names are listed for %d constants and %d providers", len(seen), fields.NumField(), leads)
	}
}
