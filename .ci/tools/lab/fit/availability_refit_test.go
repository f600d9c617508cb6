package fit

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A refitted is a constant of the weather in use and what its recording says.
type refitted struct {
	name         string
	inUse, refit float64

	// distance is how far apart they may be.
	distance float64
}

// The constants of the weather that were fitted are what a fit of their
// recordings gives now, within a stated distance. With -v all are printed.
func TestRefit(t *testing.T) {
	p := weather.DefaultParams()
	var all []refitted
	all = append(all, refitShortages(t, &p)...)
	all = append(all, refitDepth(t, &p)...)
	nine := nineZones(t)
	all = append(all, refitRhythm(nine, &p)...)
	all = append(all, refitScarce(t, nine, &p)...)
	for _, r := range all {
		line := fmt.Sprintf("%-28s in use %8.4f, refitted %8.4f, may differ by %.4f", r.name, r.inUse, r.refit, r.distance)
		if math.Abs(r.inUse-r.refit) > r.distance {
			t.Error(line)
			continue
		}
		t.Log(line)
	}
}

// refitShortages fits the lengths of shortages and the gaps between them of common
// types to the intervals of r5.16xlarge.
func refitShortages(t *testing.T, p *weather.Params) []refitted {
	tr := recordedZones(t, "availability/skypilot/preemption/1-node/aws-04-19-2023", time.Date(2023, 4, 19, 0, 0, 0, 0, time.UTC))
	var lengths [2][]intervalSeen
	for i := range tr.Series {
		s := &tr.Series[i]
		for k := 1; k < len(s.At); k++ {
			until, ended := tr.To, false
			if k+1 < len(s.At) {
				until, ended = s.At[k+1], true
			}
			interval := intervalSeen{float64(until-s.At[k]) / float64(hourLong), ended}
			lengths[s.Available[k]] = append(lengths[s.Available[k]], interval)
		}
	}
	nine := nineZones(t)
	april := recordedZones(t, "availability/skypilot/preemption/1-node/aws-04-22-2023", time.Date(2023, 4, 22, 0, 0, 0, 0, time.UTC))
	frailty := (rateSpread(tr) + rateSpread(nine) + rateSpread(april)) / 3
	upShape, _ := weibull(lengths[1])
	downShape, downScale := weibull(lengths[0])
	return []refitted{
		{"GapShape", p.GapShape, upShape, 0.03},
		{"LengthShape", p.LengthShape, downShape, 0.03},
		{"LengthScale", p.LengthScale, downScale, 0.03},
		{"FrailtySigma", p.FrailtySigma, frailty, 0.1},
	}
}

// rateSpread returns the deviation between the logarithms of the rates at which
// zones fall.
func rateSpread(tr *trace.Trace) float64 {
	var rates []float64
	for i := range tr.Series {
		p := probe([]*trace.Series{&tr.Series[i]}, tr.To, probeGap([]*trace.Series{&tr.Series[i]}))
		b := p.behaviour()
		ends, hours := b.ups.total()
		rates = append(rates, math.Log(ends/hours))
	}
	_, spread := meanAndSpread(rates)
	return spread
}

// An intervalSeen is the length of an interval in hours, and whether its end was seen.
type intervalSeen struct {
	hours float64
	ended bool
}

// weibull returns the shape and the scale of the greatest likelihood.
func weibull(intervals []intervalSeen) (shape, scale float64) {
	lo, hi := 0.05, 5.0
	for range 60 {
		k := (lo + hi) / 2
		var n, logs, sum, weighted float64
		for _, s := range intervals {
			x := math.Pow(s.hours, k)
			sum += x
			weighted += x * math.Log(s.hours)
			if s.ended {
				n++
				logs += math.Log(s.hours)
			}
		}
		if weighted/sum-1/k-logs/n > 0 {
			hi = k
		} else {
			lo = k
		}
		shape, scale = k, math.Pow(sum/n, 1/k)
	}
	return shape, scale
}

// refitDepth fits the beta distribution of partial depth, by its mean and
// variance, to the shares of a fleet that were lost within three minutes.
func refitDepth(t *testing.T, p *weather.Params) []refitted {
	shares := fleetLosses(t)
	mean, deviation := meanAndSpread(shares)
	scale := mean*(1-mean)/(deviation*deviation) - 1
	return []refitted{
		{"mean partial depth", p.DepthA / (p.DepthA + p.DepthB), mean, 0.01},
		{"DepthA", p.DepthA, mean * scale, 0.15},
		{"DepthB", p.DepthB, (1 - mean) * scale, 0.6},
	}
}

// fleetLosses reads the shares of a recorded fleet that were lost together:
// losses within three minutes of each other are one.
func fleetLosses(t *testing.T) (shares []float64) {
	file, err := os.Open(policytest.Recording(t, "availability/bamboo/p3-trace.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fleet := map[string]bool{}
	before, lost, last := 0, 0, math.Inf(-1)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Split(lines.Text(), ",")
		at, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		if fields[1] == "add" {
			fleet[fields[2]] = true
			continue
		}
		if at-last > 180_000 {
			if lost > 0 {
				shares = append(shares, float64(lost)/float64(before))
			}
			before, lost = len(fleet), 0
		}
		delete(fleet, fields[2])
		lost++
		last = at
	}
	return append(shares, float64(lost)/float64(before))
}

// refitRhythm measures how much the share of time in which zones were not
// available swings with the hour and the weekday. The recordings name their day
// and not their hour, so their phase says little.
func refitRhythm(tr *trace.Trace, p *weather.Params) []refitted {
	byRegion := map[string][]*trace.Series{}
	for i := range tr.Series {
		s := &tr.Series[i]
		byRegion[s.Region] = append(byRegion[s.Region], s)
	}
	var hours [24]float64
	var weekdays [7]float64
	for _, region := range slices.Sorted(maps.Keys(byRegion)) {
		series := byRegion[region]
		seen := probe(series, tr.To, 195_000)
		byHour, byDay := seen.byTime(region)
		b := seen.behaviour()
		for z, share := range b.shares {
			for h := range hours {
				hours[h] += (1 - byHour[h][z].up/byHour[h][z].known) / (1 - share) / 9
			}
			for d := range weekdays {
				weekdays[d] += (1 - byDay[d][z].up/byDay[d][z].known) / (1 - share) / 9
			}
		}
	}
	smooth := waves(hours[:])
	return []refitted{
		{"swing of HourOfDay", swing(p.HourOfDay[:]), swing(smooth[:]), 0.15},
		{"swing of DayOfWeek", swing(p.DayOfWeek[:]), swing(weekdays[:]), 0.15},
	}
}

// swing returns the difference between the greatest and the least.
func swing(x []float64) float64 { return slices.Max(x) - slices.Min(x) }

// refitScarce fits the law of scarce types.
func refitScarce(t *testing.T, tr *trace.Trace, p *weather.Params) (out []refitted) {
	law := nineZonesLaw(t, tr)
	typical, in := law.Typical(), &p.Scarce
	for i, pace := range typical.Paces {
		out = append(out,
			refitted{fmt.Sprintf("Scarce.Common at %v h", pace), in.Common[i], typical.Common[i], 0.02},
			refitted{fmt.Sprintf("Scarce.Own at %v h", pace), in.Own[i], typical.Own[i], 0.02})
	}
	for h, x := range typical.Hour {
		out = append(out, refitted{fmt.Sprintf("Scarce.Hour[%d]", h), in.Hour[h], x, 0.03})
	}
	for d, x := range typical.Weekday {
		out = append(out, refitted{fmt.Sprintf("Scarce.Weekday[%d]", d), in.Weekday[d], x, 0.03})
	}
	return append(out, refitted{"Scarce.Unrest", in.Unrest, typical.Unrest, 0.05},
		refitted{"Scarce.Mean", in.Mean, typical.Mean, 0.05},
		refitted{"Scarce.Spread", in.Spread, typical.Spread, 0.05})
}
