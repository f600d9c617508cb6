package measure

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Depth are the figures of how many of the nodes requested at once came up.
type Depth struct {
	// None, Some and All are the shares of time in which none, some and all of
	// them did, over all markets.
	None, Some, All float64

	// Hour is the mean over markets of the correlation of depth with itself an
	// hour later.
	Hour float64

	// Zones are the markets with recorded depth, in the order of the trace.
	Zones []ZoneDepth

	// Classes are those of [DepthClasses].
	Classes [len(DepthClasses)]DepthClass

	// Within is the mean correlation of the depths of one type in two zones of a
	// region, Across that in two regions.
	Within, Across           float64
	WithinPairs, AcrossPairs int
}

// DepthClasses are the classes of zones by the share of time in which some but not all of the
// requested nodes launch: below 1%, up to half, and more than half.
var DepthClasses = [...]string{"never", "seldom", "mostly"}

// classOf returns the class of a share of time.
func classOf(some float64) int {
	switch {
	case some < 0.01:
		return 0
	case some <= 0.5:
		return 1
	}
	return 2
}

// ZoneDepth is the depth of one market.
type ZoneDepth struct {
	Market string

	// Class is its place in DepthClasses: its own, or in a comparison that of the
	// market of the same name in the trace that is compared with.
	Class int

	// None, Some and All are shares of time, Mean is the mean share of the nodes
	// requested that came up, Hour as in [Depth], NaN where depth never moves.
	None, Some, All, Mean, Hour float64

	// Changes of depth within Hours of market time.
	Changes int
	Hours   float64

	looks []float64 // at every depthStep, -1 where unknown
}

// A DepthClass is the mean over the markets of a class.
type DepthClass struct {
	Markets, Changes             int
	None, Some, All, Hour, Hours float64
}

// depthStep is how often depth is looked at for correlations, and depthLag an hour
// of such looks.
const (
	depthStep = policy.Time(10 * 60 * 1000)
	depthLag  = 6
)

func measureDepth(t *trace.Trace, classes map[string]int) *Depth {
	d := &Depth{}
	var kins []kin
	for i := range t.Series {
		s := &t.Series[i]
		if s.Launched == nil {
			continue
		}
		z := zoneDepth(s, t.From, t.To)
		if class, ok := classes[z.Market]; ok {
			z.Class = class
		}
		d.Zones = append(d.Zones, z)
		kins = append(kins, kin{s.Provider, s.Region, s.Type, s.Product})
	}
	if len(d.Zones) == 0 {
		return nil
	}
	d.average()
	d.correlate(kins)
	return d
}

// zoneDepth measures the depth of s up to the end of its trace.
func zoneDepth(s *trace.Series, from, end policy.Time) ZoneDepth {
	z := ZoneDepth{Market: s.Name()}
	last := math.NaN()
	for i, at := range s.At {
		until := end
		if i+1 < len(s.At) {
			until = s.At[i+1]
		}
		if s.Launched[i] < 0 {
			last = math.NaN()
			continue
		}
		share, hours := float64(s.Launched[i])/float64(s.Requested[i]), hoursOf(at, until)
		switch share {
		case 0:
			z.None += hours
		case 1:
			z.All += hours
		default:
			z.Some += hours
		}
		z.Mean += float64(share * hours)
		z.Hours += hours
		if share != last && last >= 0 {
			z.Changes++
		}
		last = share
	}
	z.None, z.Some, z.All, z.Mean = z.None/z.Hours, z.Some/z.Hours, z.All/z.Hours, z.Mean/z.Hours
	z.Class = classOf(z.Some)
	z.look(s, from, end)
	z.Hour = DepthCorrelation(z.looks[:max(0, len(z.looks)-depthLag)], z.looks[min(depthLag, len(z.looks)):])
	return z
}

// stillFrom is the share of time in one of none, some and all from which a market
// moves too seldom for a correlation of its own.
const stillFrom = 0.98

// look notes the depth at every step.
func (z *ZoneDepth) look(s *trace.Series, from, end policy.Time) {
	i := -1
	for at := from; at < end; at += depthStep {
		for i+1 < len(s.At) && s.At[i+1] <= at {
			i++
		}
		share := -1.0
		if i >= 0 && s.Launched[i] >= 0 {
			share = float64(s.Launched[i]) / float64(s.Requested[i])
		}
		z.looks = append(z.looks, share)
	}
}

// DepthCorrelation is Pearson's correlation of two depths at the same observations, where both are
// known; −1 means unknown. It is NaN if either does not vary.
func DepthCorrelation(a, b []float64) float64 {
	var n, sa, sb, saa, sbb, sab float64
	for i, x := range a {
		if y := b[i]; x >= 0 && y >= 0 {
			n++
			sa, sb = sa+x, sb+y
			saa, sbb, sab = saa+float64(x*x), sbb+float64(y*y), sab+float64(x*y)
		}
	}
	va, vb := saa-float64(sa*sa)/n, sbb-float64(sb*sb)/n
	if !(va > 1e-9 && vb > 1e-9) {
		return math.NaN()
	}
	return (sab - float64(sa*sb)/n) / math.Sqrt(float64(va*vb))
}

// average fills in the figures of classes and of all.
func (d *Depth) average() {
	hours, hour, moving := 0.0, 0.0, 0
	var classMoving [len(DepthClasses)]int
	for i := range d.Zones {
		z := &d.Zones[i]
		c := &d.Classes[z.Class]
		c.Markets++
		c.Changes += z.Changes
		c.Hours += z.Hours
		c.None, c.Some, c.All = c.None+float64(z.None*z.Hours), c.Some+float64(z.Some*z.Hours), c.All+float64(z.All*z.Hours)
		if max(z.None, z.Some, z.All) < stillFrom && !math.IsNaN(z.Hour) {
			c.Hour += z.Hour
			hour += z.Hour
			classMoving[z.Class]++
			moving++
		}
	}
	for k := range d.Classes {
		c := &d.Classes[k]
		hours += c.Hours
		d.None, d.Some, d.All = d.None+c.None, d.Some+c.Some, d.All+c.All
		c.None, c.Some, c.All, c.Hour = c.None/c.Hours, c.Some/c.Hours, c.All/c.Hours, per(c.Hour, classMoving[k])
	}
	d.None, d.Some, d.All, d.Hour = d.None/hours, d.Some/hours, d.All/hours, per(hour, moving)
}

// correlate fills in the correlations between zones of a type.
func (d *Depth) correlate(kins []kin) {
	within, across := 0.0, 0.0
	for i := range d.Zones {
		for j := range d.Zones[:i] {
			a, b := kins[i], kins[j]
			same := a == b
			if b.region = a.region; a != b {
				continue
			}
			r := DepthCorrelation(d.Zones[i].looks, d.Zones[j].looks)
			switch {
			case math.IsNaN(r):
			case same:
				within += r
				d.WithinPairs++
			default:
				across += r
				d.AcrossPairs++
			}
		}
	}
	d.Within, d.Across = per(within, d.WithinPairs), per(across, d.AcrossPairs)
}
