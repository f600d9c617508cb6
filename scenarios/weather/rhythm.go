package weather

import (
	"math"
	"sort"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

const hour policy.Time = 3_600_000

// A rhythm is the variation of the reclaim rate over time that all markets of a family in a zone
// share: by hour of the day, day of the week, and whether the family is calm or stressed. Its
// long-term mean is 1, and it is a factor of a market's mean rate.
type rhythm struct {
	// begin is the start of the run, rounded down to a whole UTC hour; cum[i] is the integral of
	// the rhythm, in hours, from begin to i hours later.
	begin policy.Time
	cum   []float64
}

// newRhythm draws the rhythm of the hours that overlap [from, to).
func newRhythm(p *Params, region string, key chance.Key, from, to policy.Time) *rhythm {
	begin := from - from%hour
	n := int((to - begin + hour - 1) / hour)
	r := &rhythm{begin: begin, cum: make([]float64, n+1)}
	calmHours, stressedHours := ceilMean(p.CalmHours), ceilMean(p.StressedHours)
	calm := (1 - float64(stressedHours/(calmHours+stressedHours)*p.Stressed)) * (calmHours + stressedHours) / calmHours
	stressed := key.At1(0).Float() < stressedHours/(calmHours+stressedHours)
	left, turn := 0, uint64(0)
	ahead := utcOffset(region)
	for i := range n {
		for left == 0 {
			turn++
			if turn > 1 {
				stressed = !stressed
			}
			mean := p.CalmHours
			if stressed {
				mean = p.StressedHours
			}
			left = int(math.Ceil(float64(mean * key.At1(turn).Exp1())))
		}
		left--
		state := calm
		if stressed {
			state = p.Stressed
		}
		hourOfDay, weekday := localTime(begin+policy.Time(i)*hour, ahead)
		season := float64(p.HourOfDay[hourOfDay] * p.DayOfWeek[weekday])
		r.cum[i+1] = r.cum[i] + float64(state*season)
	}
	return r
}

// ceilMean returns the mean of an exponentially distributed time with this mean, in hours, after
// rounding up to whole hours.
func ceilMean(mean float64) float64 { return -1 / portable.Expm1(-1/mean) }

// integral returns the integral of the rhythm from begin to t, in hours.
func (r *rhythm) integral(t policy.Time) float64 {
	i := min(int((t-r.begin)/hour), len(r.cum)-2)
	part := float64(t-r.begin-policy.Time(i)*hour) / float64(hour)
	return r.cum[i] + float64((r.cum[i+1]-r.cum[i])*part)
}

// inverse returns the time at which the integral reaches x, rounded down to milliseconds, for 0 ≤ x
// < cum[len(cum)−1].
func (r *rhythm) inverse(x float64) policy.Time {
	i := sort.Search(len(r.cum)-1, func(i int) bool { return r.cum[i+1] > x })
	part := (x - r.cum[i]) / (r.cum[i+1] - r.cum[i])
	return r.begin + policy.Time(i)*hour + policy.Time(float64(part*float64(hour)))
}

// offsets are the hours by which the standard time of regions is ahead of UTC, by prefix of the
// region's name. The first matching prefix applies.
var offsets = []struct {
	prefix string
	hours  int64
}{
	{"us-east", -5}, {"us-west", -8}, {"us-central", -6}, {"us-south", -6}, {"us-gov-west", -8}, {"us-gov-east", -5},
	{"ca-west", -7}, {"ca-", -5}, {"northamerica-", -5}, {"mx-", -6}, {"sa-", -3}, {"southamerica-", -3},
	{"eu-west", 0}, {"europe-west2", 0}, {"eu-", 1}, {"europe-", 1}, {"af-", 2}, {"africa-", 2}, {"il-", 2},
	{"me-south", 3}, {"me-", 4}, {"ap-southeast-1", 8}, {"ap-southeast-2", 10}, {"ap-southeast-3", 7},
	{"ap-southeast-4", 10}, {"ap-southeast", 7}, {"ap-south", 5}, {"ap-northeast", 9}, {"ap-east", 8}, {"cn-", 8},
	{"asia-northeast", 9}, {"asia-southeast", 8}, {"asia-south", 5}, {"asia-", 8}, {"australia-", 10},
	{"eastus", -5}, {"westus", -8}, {"centralus", -6}, {"westeurope", 1}, {"northeurope", 0}, {"uk", 0},
}

// LocalTime returns the hour and the weekday (0 for Sunday) at t in the standard time of a region.
func LocalTime(t policy.Time, region string) (hourOfDay, weekday int) {
	return localTime(t, utcOffset(region))
}

// localTime returns the hour and the weekday at t in a time zone that is ahead hours ahead of UTC.
func localTime(t policy.Time, ahead int64) (hourOfDay, weekday int) {
	h := int64(t/hour) + ahead
	// 1970-01-01 was a Thursday.
	return int(h % 24), int((h/24 + 4) % 7)
}

// utcOffset returns the hours by which the local time of a region is ahead of UTC; 0 if its
// location is unknown.
func utcOffset(region string) int64 {
	for i := range offsets {
		if strings.HasPrefix(region, offsets[i].prefix) {
			return offsets[i].hours
		}
	}
	return 0
}
