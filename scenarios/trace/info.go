package trace

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A Summary is a trace in figures. A figure that nothing could be computed for
// is NaN; it is written as "-".
type Summary struct {
	Name, About string
	Synthetic   bool
	From, To    policy.Time

	Providers, Regions, Zones []string
	Types, Markets, Rows      int

	// Markets with a recorded availability, hazard, band and on-demand price;
	// Catalog has those that only the catalog prices on demand, Unpriced names
	// those that nothing does.
	WithAvailability, WithHazard, WithBand, WithOnDemand, Catalog int
	Unpriced                                                      []string

	// Changes are of the spot price. PerDay is their number for each
	// market-day of the median market, Still the share of markets without any.
	Changes int
	PerDay  float64
	Still   float64

	// GapHours are the 5th, 50th and 95th percentile of the time between two
	// changes of a market.
	GapHours [3]float64

	// StepMedian and StepP99 are percentiles of the size of a change, as the
	// absolute difference of logarithms.
	StepMedian, StepP99 float64

	// Autocorrelation is that of a change with the one before, SameSign how
	// often the two have one direction.
	Autocorrelation, SameSign float64

	// Ratio holds percentiles 5, 50 and 95 of spot over on-demand, weighted by
	// time; Offered is the share of market-time in which there is a price.
	Ratio   [3]float64
	Offered float64

	// ZoneCorrelation is the median correlation of the daily moves of one type
	// in two zones of a region.
	ZoneCorrelation float64

	Warnings []string
	Digest   [32]byte
}

// Info describes t.
func Info(t *Trace) *Summary {
	s := &Summary{
		Name: t.Name, About: t.About, Synthetic: t.Synthetic, From: t.From, To: t.To,
		Markets: len(t.Series), Warnings: t.Warnings, Digest: t.Digest,
	}
	s.count(t)
	s.measureChanges(t)
	s.measureRatio(t)
	s.ZoneCorrelation = zoneCorrelation(t)
	return s
}

func (s *Summary) count(t *Trace) {
	var types []string
	for i := range t.Series {
		m := &t.Series[i]
		s.Providers = append(s.Providers, m.Provider)
		s.Regions = append(s.Regions, m.Region)
		s.Zones = append(s.Zones, m.Zone)
		types = append(types, m.Type)
		s.Rows += len(m.At)
		s.WithAvailability += one(m.Available != nil)
		s.WithHazard += one(m.Hazard != nil)
		s.WithBand += one(m.Band != nil)
		s.WithOnDemand += one(m.OnDemand != nil)
		if m.OnDemand == nil {
			if _, ok := catalog.OnDemand(m.Provider, m.Region, m.Type); ok {
				s.Catalog++
			} else {
				s.Unpriced = append(s.Unpriced, m.Name())
			}
		}
	}
	s.Providers, s.Regions, s.Zones = distinct(s.Providers), distinct(s.Regions), distinct(s.Zones)
	s.Types = len(distinct(types))
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// measureChanges fills in the figures of the changes of price.
func (s *Summary) measureChanges(t *Trace) {
	var gaps, sizes, rates []float64
	var products, squares float64
	pairs, same, still := 0, 0, 0
	for i := range t.Series {
		m := &t.Series[i]
		changes, previous := 0, 0.0
		last := policy.Time(0)
		for j := 1; j < len(m.At); j++ {
			if m.Spot[j] == m.Spot[j-1] || m.Spot[j] <= 0 || m.Spot[j-1] <= 0 {
				continue
			}
			step := portable.Log(float64(m.Spot[j]) / float64(m.Spot[j-1]))
			sizes = append(sizes, math.Abs(step))
			if changes++; changes > 1 {
				gaps = append(gaps, m.At[j].Sub(last).Hours())
				products += float64(step * previous)
				squares += float64(previous * previous)
				pairs++
				same += one(step > 0 == (previous > 0))
			}
			previous, last = step, m.At[j]
		}
		s.Changes += changes
		still += one(changes == 0)
		rates = append(rates, float64(changes)/(t.To-t.From).Sub(0).Hours()*24)
	}
	for _, list := range [...][]float64{gaps, sizes, rates} {
		slices.Sort(list)
	}
	s.PerDay = quantile(rates, 0.5)
	s.Still = float64(still) / float64(len(t.Series))
	s.GapHours = [3]float64{quantile(gaps, 0.05), quantile(gaps, 0.5), quantile(gaps, 0.95)}
	s.StepMedian, s.StepP99 = quantile(sizes, 0.5), quantile(sizes, 0.99)
	s.Autocorrelation = products / squares
	s.SameSign = float64(same) / float64(pairs)
}

// quantile returns the value below which a share q of sorted lies.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// measureRatio fills in spot over on-demand and the share of time offered.
func (s *Summary) measureRatio(t *Trace) {
	// Ratios are counted in a thousand steps up to 2, each weighted by time.
	const steps, most = 1000, 2.0
	var weight [steps]float64
	var offered, total, priced float64
	for i := range t.Series {
		m := &t.Series[i]
		fallback, _ := catalog.OnDemand(m.Provider, m.Region, m.Type)
		for j, at := range m.At {
			end := t.To
			if j+1 < len(m.At) {
				end = m.At[j+1]
			}
			hours := max(0, (end - at).Sub(0).Hours())
			total += hours
			if m.Spot[j] == policy.NoPrice {
				continue
			}
			offered += hours
			onDemand := fallback
			if m.OnDemand != nil && m.OnDemand[j] > 0 {
				onDemand = m.OnDemand[j]
			}
			if onDemand > 0 {
				ratio := float64(m.Spot[j]) / float64(onDemand)
				weight[min(int(ratio*steps/most), steps-1)] += hours
				priced += hours
			}
		}
	}
	s.Offered = offered / total
	for i, q := range [...]float64{0.05, 0.5, 0.95} {
		s.Ratio[i] = math.NaN()
		sum := 0.0
		for k := range weight {
			if sum += weight[k]; priced > 0 && sum >= float64(q*priced) {
				s.Ratio[i] = (float64(k) + 0.5) * most / steps
				break
			}
		}
	}
}

// zoneCorrelation returns the median over pairs of zones.
func zoneCorrelation(t *Trace) float64 {
	type group struct{ provider, region, kind, product string }
	moves := make([][]float64, len(t.Series))
	members := map[group][]int{}
	var groups []group
	for i := range t.Series {
		m := &t.Series[i]
		if moves[i] = dailyMoves(m, t.From, t.To); moves[i] == nil {
			continue
		}
		g := group{m.Provider, m.Region, m.Type, m.Product}
		if members[g] == nil {
			groups = append(groups, g)
		}
		members[g] = append(members[g], i)
	}
	var all []float64
	for _, g := range groups {
		for k, a := range members[g] {
			for _, b := range members[g][:k] {
				if r := correlation(moves[a], moves[b]); !math.IsNaN(r) {
					all = append(all, r)
				}
			}
		}
	}
	slices.Sort(all)
	return quantile(all, 0.5)
}

// dailyMoves returns the differences of the logarithm of the price at the ends
// of days, nil if there are few or none moves.
func dailyMoves(s *Series, from, to policy.Time) []float64 {
	const fewest = 10
	var moves []float64
	last, i := math.NaN(), 0
	moved := false
	for d := from; d <= to; d += day {
		for i < len(s.At) && s.At[i] <= d {
			i++
		}
		level := math.NaN()
		if i > 0 && s.Spot[i-1] > 0 {
			level = portable.Log(float64(s.Spot[i-1]))
		}
		if d > from {
			moves = append(moves, level-last)
			moved = moved || level != last
		}
		last = level
	}
	if len(moves) < fewest || !moved {
		return nil
	}
	return moves
}

// correlation is Pearson's, over the days on which both are known.
func correlation(a, b []float64) float64 {
	var n, sa, sb, saa, sbb, sab float64
	for i, x := range a {
		y := b[i]
		if math.IsNaN(x) || math.IsNaN(y) {
			continue
		}
		n++
		sa, sb = sa+x, sb+y
		saa, sbb, sab = saa+float64(x*x), sbb+float64(y*y), sab+float64(x*y)
	}
	va := float64(n*saa) - float64(sa*sa)
	vb := float64(n*sbb) - float64(sb*sb)
	if va <= 0 || vb <= 0 {
		return math.NaN()
	}
	return (float64(n*sab) - float64(sa*sb)) / math.Sqrt(float64(va*vb))
}

// Text renders s for a terminal, one fact a line.
func (s *Summary) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-22s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("trace", "%s", s.Name)
	line("about", "%s", dash(s.About))
	kind := "recorded"
	if s.Synthetic {
		kind = "synthetic (generated, not recorded)"
	}
	line("prices", "%s", kind)
	line("span", "%s to %s (%.1f days)", minute(s.From), minute(s.To), s.To.Sub(s.From).Hours()/24)
	line("providers", "%s", strings.Join(s.Providers, ", "))
	line("regions", "%s", strings.Join(s.Regions, ", "))
	line("zones", "%d: %s", len(s.Zones), few(s.Zones, 8))
	line("markets", "%d of %d instance types", s.Markets, s.Types)
	line("rows", "%d, %d of them changes of price", s.Rows, s.Changes)
	line("offered", "%s of the time", percent(s.Offered))
	line("changes", "%s a day in the median market, %s of markets never", number3(s.PerDay), percent(s.Still))
	line("between changes", "%s / %s / %s h (5th, 50th, 95th percentile)",
		number3(s.GapHours[0]), number3(s.GapHours[1]), number3(s.GapHours[2]))
	line("size of a change", "%s median, %s 99th percentile", percent(s.StepMedian), percent(s.StepP99))
	line("momentum", "autocorrelation %s, same direction %s", number3(s.Autocorrelation), percent(s.SameSign))
	line("spot / on-demand", "%s / %s / %s (5th, 50th, 95th percentile of time)",
		number3(s.Ratio[0]), number3(s.Ratio[1]), number3(s.Ratio[2]))
	line("zones of one type", "daily moves correlate by %s (median)", number3(s.ZoneCorrelation))
	line("on-demand prices", "%d recorded, %d from the catalog, %d unknown", s.WithOnDemand, s.Catalog, len(s.Unpriced))
	if len(s.Unpriced) > 0 {
		line("", "unknown: %s; runs leave these out", few(s.Unpriced, 5))
	}
	availability := "none: reclaims are modelled"
	if s.WithAvailability > 0 {
		availability = fmt.Sprintf("recorded for %d markets", s.WithAvailability)
	}
	line("availability", "%s", availability)
	line("digest", "%x", s.Digest[:8])
	for _, w := range s.Warnings {
		line("warning", "%s", w)
	}
	return b.String()
}

func minute(t policy.Time) string { return t.Std().Format(time.DateOnly + " 15:04Z") }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func few(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func number3(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", x*100)
}
