package models

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// MarketFeaturesV2 are the features of a market that a cluster can observe: price changes within
// four hours, the cluster's experience in the market, in other zones of its region and in its
// surroundings, the nodes that run there, and the closed form's forecast. All are derived from a
// snapshot.
const MarketFeaturesV2 = "spotter-market/2"

// The features of [MarketFeaturesV2], in order.
const (
	featurePriceRatio  = iota // charge / on-demand
	featurePriceHour          // change of the price ratio within an hour
	featurePriceWindow        // change of the price ratio within four hours
	featurePriceSpread        // standard deviation of the price ratio within four hours
	featureNoon               // distance of the hour of the day, UTC, from 12
	featureEvening            // distance of the hour of the day from 18
	featureWeekend
	featureGPU
	featureVCPU // base-2 logarithm
	featureBand // from 0 to 1, 0.5 if no band is published
	featureNoBand
	featureHeld     // base-2 logarithm of 1 + nodes
	featureYoungest // time since the last launch of a running node
	featureOldest   // time since the first launch of a running node
	featureRefused  // time since the last refusal
	featureReclaimed
	featureRate     // logarithm of reclaims per node-hour
	featureRefusals // fraction of launches that were refused
	featureHours    // base-2 logarithm of 1 + node-hours
	featureOthersHeld
	featureOthersYoungest
	featureOthersOldest
	featureOthersTrouble
	featureOthersRate
	featureOthersRefusals
	featureZoneTrouble   // fraction of other markets of the zone in trouble
	featureRegionTrouble // fraction of other markets of the region in trouble
	featureClosedHazard  // logarithm of the closed form's hazard
	featureClosedCapacity
	marketFeatures
)

// marketNamesV2 are the names of the features. "others" are the markets of the same type in other
// zones of the region.
var marketNamesV2 = []string{
	"price_ratio", "price_change_1h", "price_change_4h", "price_spread", "hour_from_noon", "hour_from_evening", "weekend",
	"gpu", "vcpu", "band", "band_unknown", "held", "since_last_launch", "since_first_launch", "since_refusal", "since_reclaim",
	"reclaim_rate", "refusal_share", "node_hours", "others_held", "others_since_last_launch", "others_since_first_launch",
	"others_since_trouble", "others_reclaim_rate", "others_refusal_share", "zone_trouble", "region_trouble",
	"closed_form_hazard", "closed_form_capacity",
}

// The time since an event is measured in quarters of a doubling from ten minutes, so that a row
// does not change while little happens. An event more than two weeks ago counts as never.
const (
	sinceMax   = 11.0 // log2(1 + hours·6) for two weeks
	sinceNever = 12.0
	quarters   = 4
	sixteenths = 16

	// troubled is the time that a market counts as in trouble after a refusal or a reclaim, in
	// milliseconds.
	troubled = policy.Time(3_600_000)
)

// A marketView contains the data that all rows of a snapshot share.
type marketView struct {
	names  []string // names of the grouped markets
	others []int32  // by market: group of its type and region
	class  []int32  // by market: group of its zone, separately for accelerators
	region []int32  // by market: group of its region, separately for accelerators
	gpu    []bool
	vcpu   []float64 // base-2 logarithm

	// clock contains the features of the hour and the day, which are the same for all rows.
	clock [featureWeekend - featureNoon + 1]float64

	// members[first[g]:first[g+1]] are the Spot markets of group g of others.
	members []policy.MarketID
	first   []int32

	met             []met // by market
	zones, regions  []trouble
	rowsOf          int // the number of groups of others
	zonesN, regionN int
}

// A met is the current state and experience of one market.
type met struct {
	nodes              int32
	youngest, oldest   policy.Time // 0 without nodes
	refused, reclaimed policy.Time // 0 if never
	launches, refusals float64
	reclaims, hours    float64
	known, bad         bool
}

// A trouble counts markets with current information, and those of them in trouble.
type trouble struct{ known, bad int32 }

// MarketRows builds the rows of [MarketFeaturesV2] for successive snapshots. It does not keep a
// reference to a snapshot, and must not be used concurrently.
type MarketRows struct{ view marketView }

// Collect prepares the rows of s for [MarketRows.Row], until the next call. The forecasts in s must
// be those of the closed form.
func (b *MarketRows) Collect(s *policy.Snapshot) {
	v := &b.view
	v.group(s)
	v.clock = clockOf(s.Now)
	v.met = scratch.Zeroed(v.met, len(s.Markets))
	v.zones = scratch.Zeroed(v.zones, v.zonesN)
	v.regions = scratch.Zeroed(v.regions, v.regionN)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone || n.Market < 0 || n.Launched == 0 || n.ReclaimAt != 0 {
			continue
		}
		x := &v.met[n.Market]
		if x.nodes == 0 || n.Launched > x.youngest {
			x.youngest = n.Launched
		}
		if x.nodes == 0 || n.Launched < x.oldest {
			x.oldest = n.Launched
		}
		x.nodes++
	}
	decay, at := 1.0, s.Now // of the last market: most experiences refer to the same instant
	for i := range s.Markets {
		m, x := &s.Markets[i], &v.met[i]
		if m.Capacity != policy.Spot {
			continue
		}
		e := &m.Experience
		if e.At != at {
			decay, at = decayed(e.At, s.Now), e.At
		}
		x.launches, x.refusals = float64(e.Launches*decay), float64(e.Refusals*decay)
		x.reclaims, x.hours = float64(e.Reclaims*decay), float64(e.NodeHours*decay)
		x.refused, x.reclaimed = e.Refused, e.Reclaimed
		last := max(e.Refused, e.Reclaimed)
		x.bad = last != 0 && s.Now-last < troubled && last > x.youngest
		x.known = x.bad || x.nodes > 0
		for _, t := range [...]*trouble{&v.zones[v.class[i]], &v.regions[v.region[i]]} {
			t.add(x, 1)
		}
	}
}

func (t *trouble) add(x *met, n int32) {
	if x.known {
		t.known += n
	}
	if x.bad {
		t.bad += n
	}
}

// share returns the fraction of other markets in trouble, which is biased to 0 if few are known.
func (t trouble) share(x *met) float64 {
	t.add(x, -1)
	return float64(t.bad) / float64(t.known+2)
}

// group groups the markets of s, if they changed.
func (v *marketView) group(s *policy.Snapshot) {
	if v.grouped(s) {
		return
	}
	n := len(s.Markets)
	v.names = make([]string, n)
	v.others, v.class, v.region = make([]int32, n), make([]int32, n), make([]int32, n)
	v.gpu, v.vcpu = make([]bool, n), make([]float64, n)
	type key struct {
		region string
		id     int32
		gpu    bool
	}
	var kinds, zones, regions = map[key]int32{}, map[key]int32{}, map[key]int32{}
	number := func(all map[key]int32, k key) int32 {
		id, ok := all[k]
		if !ok {
			id = int32(len(all))
			all[k] = id
		}
		return id
	}
	for i := range s.Markets {
		m := &s.Markets[i]
		gpu := s.Types[m.Type].Capacity.GPU > 0 || s.Types[m.Type].Allocatable.GPU > 0
		v.names[i], v.gpu[i], v.vcpu[i] = m.Name, gpu, log2(float64(max(1, s.Types[m.Type].VCPU)))
		v.others[i] = number(kinds, key{m.Region, int32(m.Type), gpu})
		v.class[i] = number(zones, key{m.Region, int32(m.Zone), gpu})
		v.region[i] = number(regions, key{m.Region, 0, gpu})
	}
	v.rowsOf, v.zonesN, v.regionN = len(kinds), len(zones), len(regions)
	v.first = make([]int32, v.rowsOf+1)
	v.members = v.members[:0]
	for i := range s.Markets {
		if s.Markets[i].Capacity == policy.Spot {
			v.members = append(v.members, policy.MarketID(i))
			v.first[v.others[i]+1]++
		}
	}
	slices.SortStableFunc(v.members, func(a, b policy.MarketID) int { return cmp.Compare(v.others[a], v.others[b]) })
	for g := range v.rowsOf {
		v.first[g+1] += v.first[g]
	}
}

// grouped reports whether the groups are those of the markets of s.
func (v *marketView) grouped(s *policy.Snapshot) bool {
	if len(v.names) != len(s.Markets) || len(v.names) == 0 {
		return false
	}
	for i := range s.Markets {
		if v.names[i] != s.Markets[i].Name {
			return false
		}
	}
	return true
}

// Row writes the features of market id to row. s must be the collected snapshot, and row long
// enough.
func (b *MarketRows) Row(s *policy.Snapshot, id policy.MarketID, row []float32) {
	v, m := &b.view, &s.Markets[id]
	x := &v.met[id]
	var f [marketFeatures]float64
	pricesInto(&f, m)
	copy(f[featureNoon:], v.clock[:])
	if v.gpu[id] {
		f[featureGPU] = 1
	}
	f[featureVCPU] = v.vcpu[id]
	f[featureBand], f[featureNoBand] = 0.5, 1
	if m.Band >= 0 && m.Band < policy.BandCount {
		f[featureBand], f[featureNoBand] = float64(m.Band)/(policy.BandCount-1), 0
	}
	f[featureHeld] = log2(float64(1 + x.nodes))
	f[featureYoungest], f[featureOldest] = since(s.Now, x.youngest), since(s.Now, x.oldest)
	f[featureRefused], f[featureReclaimed] = since(s.Now, x.refused), since(s.Now, x.reclaimed)
	f[featureRate], f[featureRefusals] = rateOf(x.reclaims, x.hours), shareOf(x.refusals, x.launches)
	f[featureHours] = grid(log2(1+x.hours), quarters)
	b.othersInto(&f, s, id)
	f[featureZoneTrouble] = grid(v.zones[v.class[id]].share(x), sixteenths)
	f[featureRegionTrouble] = grid(v.regions[v.region[id]].share(x), sixteenths)
	f[featureClosedHazard] = grid(portable.Log(max(m.Forecast.Hazard, 1e-7)), sixteenths)
	f[featureClosedCapacity] = grid(m.Forecast.Capacity, 8*sixteenths)
	for i := range f {
		row[i] = float32(f[i])
	}
}

// clockOf returns the features of the hour and the day.
func clockOf(now policy.Time) (f [featureWeekend - featureNoon + 1]float64) {
	at := now.Std().UTC()
	hour, day := float64(at.Hour()), at.Weekday()
	f[0] = math.Abs(hour-12) / 12
	f[1] = math.Abs(float64((int(hour)+6)%24)-12) / 12
	if day == 0 || day == 6 {
		f[2] = 1
	}
	return f
}

// pricesInto sets the price features, as fractions of the on-demand price.
func pricesInto(f *[marketFeatures]float64, m *policy.Market) {
	onDemand := m.OnDemand.Float()
	if onDemand <= 0 {
		return
	}
	now := m.Charge().Float() / onDemand
	f[featurePriceRatio] = min(now, 2)
	const hourAgo = 6 // steps of the history
	var sum, squares float64
	n := 0
	first, hour := now, now
	for i, p := range m.History {
		if p == policy.NoPrice {
			continue
		}
		x := max(p, m.Reserve).Float() / onDemand
		if n == 0 {
			first = x
		}
		if i < len(m.History)-hourAgo {
			hour = x
		}
		d := x - now
		sum += d
		squares += float64(d * d)
		n++
	}
	f[featurePriceHour], f[featurePriceWindow] = limit(now-hour), limit(now-first)
	if n > 1 {
		mean := sum / float64(n)
		f[featurePriceSpread] = math.Sqrt(max(0, squares/float64(n)-float64(mean*mean)))
	}
}

// othersInto sets the features about other zones.
func (b *MarketRows) othersInto(f *[marketFeatures]float64, s *policy.Snapshot, id policy.MarketID) {
	v := &b.view
	g := v.others[id]
	var all met
	for _, other := range v.members[v.first[g]:v.first[g+1]] {
		if other == id {
			continue
		}
		x := &v.met[other]
		if x.nodes > 0 && (all.nodes == 0 || x.oldest < all.oldest) {
			all.oldest = x.oldest
		}
		all.nodes += x.nodes
		all.youngest = max(all.youngest, x.youngest)
		all.refused = max(all.refused, x.refused, x.reclaimed)
		all.launches += x.launches
		all.refusals += x.refusals
		all.reclaims += x.reclaims
		all.hours += x.hours
	}
	f[featureOthersHeld] = log2(float64(1 + all.nodes))
	f[featureOthersYoungest], f[featureOthersOldest] = since(s.Now, all.youngest), since(s.Now, all.oldest)
	f[featureOthersTrouble] = since(s.Now, all.refused)
	f[featureOthersRate], f[featureOthersRefusals] = rateOf(all.reclaims, all.hours), shareOf(all.refusals, all.launches)
}

// since returns the time since at on the scale of the features.
func since(now, at policy.Time) float64 {
	if at == 0 {
		return sinceNever
	}
	return min(sinceMax, grid(log2(1+float64(max(0, now-at))/600_000), quarters))
}

// rateNone is the result of rateOf without experience.
var rateNone = grid(portable.Log(0.02/20), sixteenths)

// rateOf returns the logarithm of the reclaim rate; without experience the rate is one in a
// thousand hours.
func rateOf(reclaims, hours float64) float64 {
	if reclaims == 0 && hours == 0 {
		return rateNone
	}
	return grid(portable.Log((reclaims+0.02)/(hours+20)), sixteenths)
}

// shareOf returns the fraction of launches that were refused.
func shareOf(refusals, launches float64) float64 {
	return grid((refusals+0.05)/(refusals+launches+1), 8*sixteenths)
}

// grid rounds x to the nearest multiple of 1/n.
func grid(x float64, n int) float64 {
	return math.Floor(float64(x*float64(n))+0.5) / float64(n)
}

// log2 returns the base-2 logarithm, with a shortcut for 1, which is the most common argument.
func log2(x float64) float64 {
	if x == 1 {
		return 0
	}
	return portable.Log(x) / math.Ln2
}

func limit(x float64) float64 { return max(-1, min(x, 1)) }
