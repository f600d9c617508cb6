package measure

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Availability are the figures of whether a node could be had.
type Availability struct {
	// Markets record it. Probe is how often they were asked; 0 means that every
	// change was seen at its instant.
	Markets int
	Probe   time.Duration

	// Share is the share of time in which a node could be had, MeanUp and
	// MeanDown the mean length of an interval with and without, in hours: time over
	// ends, so that an interval which the end of the trace cuts counts rightly.
	Share, MeanUp, MeanDown float64

	// Losses are the ends of intervals with. Hours are the market time of which
	// the state is known.
	Losses int
	Hours  float64

	// Hazard is the rate at which intervals end, by their age.
	Hazard [len(bucketHours)]Bucket

	// Zones are ascending by provider, region and zone, Regions likewise.
	Zones   []ZoneAvailability
	Regions []RegionAvailability

	// Within is the mean correlation of the states of one type in two zones of
	// a region, over all pairs of all regions; Across that in two regions.
	Within, Across           float64
	WithinPairs, AcrossPairs int

	// Ups and Downs are the hours of whole intervals with and without, sorted.
	Ups, Downs []float64
}

// A Bucket is a range of the age of an interval, in hours.
type Bucket struct {
	From, To float64 // To is +Inf in the last one

	// Events are the intervals that ended at such an age, Exposure the hours
	// that all intervals together spent at it.
	Events   int
	Exposure float64
}

// Hazard returns the ends per hour at that age, NaN if no interval reached it.
func (b *Bucket) Hazard() float64 { return float64(b.Events) / b.Exposure }

// bucketHours are where the ranges of age begin.
var bucketHours = [...]float64{0, 0.5, 1, 2, 4, 8, 24}

// ZoneAvailability is the availability of the markets of a zone.
type ZoneAvailability struct {
	Provider, Region, Zone  string
	Share, MeanUp, MeanDown float64
	Losses                  int
}

// RegionAvailability says how the zones of a region fail together. Zones are
// compared for one type at a time, and types are averaged by time.
type RegionAvailability struct {
	Provider, Region string

	// Zones is the greatest number of zones that one type has.
	Zones int

	// Correlation is the mean over pairs of zones of that of their states.
	Correlation float64
	Pairs       int

	// AllDown is the share of time in which no zone had a node, Independent
	// what it would be if zones failed independently. AllDownEvents are the
	// intervals.
	AllDown, Independent float64
	AllDownEvents        int
}

// A track is the state of one market over time: at[i] starts an interval in state up[i], which is
// 1, 0 or -1 for unknown, and the last interval ends at end.
type track struct {
	at  []policy.Time
	up  []int8
	end policy.Time
}

func measureAvailability(t *trace.Trace, probe time.Duration) *Availability {
	a := &Availability{}
	tracks := make([]track, len(t.Series))
	for i := range t.Series {
		if s := &t.Series[i]; s.Available != nil {
			tracks[i] = trackOf(s, t.To).probed(t.From, probe)
			a.Markets++
		}
	}
	if a.Markets == 0 {
		return nil
	}
	if a.Probe = ProbeOf(t); probe > a.Probe {
		a.Probe = probe
	}
	for i, from := range bucketHours {
		a.Hazard[i].From, a.Hazard[i].To = from, math.Inf(1)
		if i+1 < len(bucketHours) {
			a.Hazard[i].To = bucketHours[i+1]
		}
	}
	a.intervals(t, tracks)
	a.together(t, tracks)
	return a
}

// ProbeOf returns the median time between two probes of availability, over all
// changes of t; 0 when their instants are known or nothing was recorded.
func ProbeOf(t *trace.Trace) time.Duration {
	var gaps []int32
	for i := range t.Series {
		s := &t.Series[i]
		if s.Available == nil {
			continue
		}
		for j := 1; j < len(s.At); j++ {
			if s.Available[j] < 0 || s.Available[j] == s.Available[j-1] {
				continue
			}
			gap := int32(0)
			if s.ProbeGap != nil {
				gap = s.ProbeGap[j]
			}
			gaps = append(gaps, max(0, gap))
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]) * time.Second
}

// trackOf returns the intervals of s.
func trackOf(s *trace.Series, end policy.Time) track {
	tr := track{end: end}
	for j, at := range s.At {
		if n := len(tr.up); n == 0 || tr.up[n-1] != s.Available[j] {
			tr.at, tr.up = append(tr.at, at), append(tr.up, s.Available[j])
		}
	}
	return tr
}

// probed returns what is seen of tr by looking every step from from on. A step
// of 0 sees everything.
func (tr track) probed(from policy.Time, step time.Duration) track {
	if step <= 0 {
		return tr
	}
	seen := track{end: tr.end}
	pace := policy.Time(step / time.Millisecond)
	for i, at := range tr.at {
		end := tr.end
		if i+1 < len(tr.at) {
			end = tr.at[i+1]
		}
		// The first look that falls into the interval.
		look := from + (at-from+pace-1)/pace*pace
		if look >= end {
			continue
		}
		if n := len(seen.up); n == 0 || seen.up[n-1] != tr.up[i] {
			seen.at, seen.up = append(seen.at, look), append(seen.up, tr.up[i])
		}
	}
	return seen
}

// intervals fills in the figures of single markets.
func (a *Availability) intervals(t *trace.Trace, tracks []track) {
	var total ZoneAvailability
	var upAll, downAll float64
	recoveries := 0
	type sums struct {
		up, down   float64
		recoveries int
	}
	var zones []sums
	for i := range tracks {
		s, tr := &t.Series[i], &tracks[i]
		if len(tr.at) == 0 {
			continue
		}
		z := len(a.Zones) - 1
		if z < 0 || a.Zones[z].Provider != s.Provider || a.Zones[z].Region != s.Region || a.Zones[z].Zone != s.Zone {
			a.Zones, zones = append(a.Zones, ZoneAvailability{Provider: s.Provider, Region: s.Region,
				Zone: s.Zone}), append(zones, sums{})
			z++
		}
		m := a.market(tr)
		zones[z].up, zones[z].down = zones[z].up+m.up, zones[z].down+m.down
		zones[z].recoveries += m.recoveries
		a.Zones[z].Losses += m.losses
		upAll, downAll = upAll+m.up, downAll+m.down
		recoveries += m.recoveries
		total.Losses += m.losses
	}
	for z := range a.Zones {
		a.Zones[z].Share = zones[z].up / (zones[z].up + zones[z].down)
		a.Zones[z].MeanUp = per(zones[z].up, a.Zones[z].Losses)
		a.Zones[z].MeanDown = per(zones[z].down, zones[z].recoveries)
	}
	a.Losses, a.Hours = total.Losses, upAll+downAll
	a.Share, a.MeanUp, a.MeanDown = upAll/(upAll+downAll), per(upAll, a.Losses), per(downAll, recoveries)
	slices.Sort(a.Ups)
	slices.Sort(a.Downs)
}

// per returns hours for each event, NaN without one.
func per(hours float64, events int) float64 {
	if events == 0 {
		return math.NaN()
	}
	return hours / float64(events)
}

// A marketTime is what one market adds: hours with and without a node, and how
// often the one became the other.
type marketTime struct {
	up, down           float64
	losses, recoveries int
}

// market adds the intervals of one market to the distributions. The first interval
// began before the recording did, so that its age is unknown: it counts for
// shares, but not for the hazard.
func (a *Availability) market(tr *track) marketTime {
	var m marketTime
	for i, at := range tr.at {
		end, next := tr.end, int8(-1)
		if i+1 < len(tr.at) {
			end, next = tr.at[i+1], tr.up[i+1]
		}
		hours := hoursOf(at, end)
		began := i > 0 && tr.up[i-1] >= 0
		switch tr.up[i] {
		case 1:
			m.up += hours
			if next == 0 {
				m.losses++
			}
			if began {
				a.age(hours, next == 0)
			}
			if began && next == 0 {
				a.Ups = append(a.Ups, hours)
			}
		case 0:
			m.down += hours
			if next == 1 {
				m.recoveries++
			}
			if began && next == 1 {
				a.Downs = append(a.Downs, hours)
			}
		}
	}
	return m
}

// age spreads an interval over the buckets that it lived through.
func (a *Availability) age(hours float64, ended bool) {
	for i := range a.Hazard {
		b := &a.Hazard[i]
		if hours <= b.From {
			return
		}
		b.Exposure += min(hours, b.To) - b.From
		if ended && hours <= b.To {
			b.Events++
		}
	}
}
