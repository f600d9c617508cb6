package fit

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// The offsets by hour and weekday are shrunk towards 0 for short recordings: a recording of
// hoursTrusted days keeps half of the hourly offsets, and one of weekdaysTrusted weeks half
// of the weekday offsets.
const (
	hoursTrusted    = 6
	weekdaysTrusted = 4
)

// season returns the offsets of the slack by hour and weekday of local time: how
// far the slack with which zones are available at that time is from their mean
// slack. The hours are smoothed to two waves a day.
func (p *probing) season(shares []float64, region string) (hours [24]float64, weekdays [7]float64) {
	byHour, byDay := p.byTime(region)
	days := float64(policy.Time(p.probes)*p.gap) / float64(day)
	smoothed := waves(offsets(byHour[:], shares))
	for h := range hours {
		hours[h] = float64(smoothed[h] * days / (days + hoursTrusted))
	}
	if weeks := days / 7; weeks >= 2 {
		for d, x := range offsets(byDay[:], shares) {
			weekdays[d] = float64(x * weeks / (weeks + weekdaysTrusted))
		}
	}
	return hours, weekdays
}

// A tally counts, of one zone in some part of the time, the probes that found it
// up and those that found anything.
type tally struct{ up, known float64 }

// byTime counts per hour and weekday and zone.
func (p *probing) byTime(region string) (hours [24][]tally, weekdays [7][]tally) {
	for h := range hours {
		hours[h] = make([]tally, len(p.zones))
	}
	for d := range weekdays {
		weekdays[d] = make([]tally, len(p.zones))
	}
	for z, runs := range p.zones {
		at := 0
		for i := int32(0); i < p.probes; i++ {
			for at+1 < len(runs) && runs[at+1].from <= i {
				at++
			}
			if runs[at].up < 0 {
				continue
			}
			h, d := weather.LocalTime(p.begin+policy.Time(i)*p.gap, region)
			for _, t := range []*tally{&hours[h][z], &weekdays[d][z]} {
				t.up += float64(runs[at].up)
				t.known++
			}
		}
	}
	return hours, weekdays
}

// offsets returns how far the slack is from its mean in each part of the time,
// as the mean over zones, with the mean 0 over the parts.
func offsets(parts [][]tally, shares []float64) []float64 {
	out := make([]float64, len(parts))
	mean := 0.0
	for i, zones := range parts {
		for z, t := range zones {
			// Two probes of the usual share keep it off 0 and 1.
			usual := max(0.01, min(shares[z], 0.99))
			share := (t.up + float64(2*usual)) / (t.known + 2)
			out[i] += (slackOf(share) - slackOf(usual)) / float64(len(zones))
		}
		mean += out[i] / float64(len(parts))
	}
	for i := range out {
		out[i] -= mean
	}
	return out
}

// slackOf returns the slack at which a zone is available with this probability.
func slackOf(share float64) float64 {
	return chance.NormalQuantile(max(0.01, min(share, 0.99)))
}

// waves returns what remains of a day's values of its first two waves.
func waves(x []float64) (out [24]float64) {
	for wave := 1; wave <= 2; wave++ {
		along, across := 0.0, 0.0
		for h, v := range x {
			along += float64(v * cosine(wave*h) / 12)
			across += float64(v * cosine(wave*h-6) / 12)
		}
		for h := range out {
			out[h] += float64(along*cosine(wave*h)) + float64(across*cosine(wave*h-6))
		}
	}
	return out
}

// cosine returns the cosine of an angle in hours, of which 24 are a full turn.
func cosine(hours int) float64 {
	thirty := math.Sqrt(0.75)
	quarter := [7]float64{1, math.Sqrt((1 + thirty) / 2), thirty, math.Sqrt(0.5), 0.5, math.Sqrt((1 - thirty) / 2), 0}
	h := ((hours % 24) + 24) % 24
	if h > 12 {
		h = 24 - h
	}
	if h > 6 {
		return -quarter[12-h]
	}
	return quarter[h]
}
