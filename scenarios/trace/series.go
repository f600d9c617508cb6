package trace

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Series is the history of one market: At[i] is the start of an interval in which element i of
// every other slice applies. Two adjacent intervals differ in at least one value.
type Series struct {
	// Product is the operating system of the node; an empty one becomes ProductLinux.
	Provider, Region, Zone, Type, Product string

	// At is strictly ascending.
	At []policy.Time

	// Spot is the price of a node-hour; policy.NoPrice means not offered.
	Spot []policy.Money

	// OnDemand is the on-demand price of the same type in the same region; 0 means unknown. It is
	// nil if all are unknown.
	OnDemand []policy.Money

	// Available is 1 if a node was available, 0 if not, and -1 if unknown. It is nil if all are
	// unknown.
	Available []int8

	// ProbeGap is the number of seconds between the previous observation of the market and At: the
	// change happened in (At − ProbeGap, At]. 0 means that the time is exact, or that its accuracy
	// is unknown. It is nil if all are 0.
	ProbeGap []int32

	// Requested is the number of nodes that a probe requested at once and Launched the number that
	// launched: the depth of the market, known up to Requested. -1 means unknown, and applies to
	// both. Where they are known, Available is 1 if Launched is above 0, and 0 otherwise. They are
	// nil if no row has them.
	Requested, Launched []int32

	// Band is the published interruption band and Score the placement score; -1 means unknown. Each
	// is nil if all are unknown.
	Band, Score []int8

	// Hazard is a forecast of reclaims per node-hour from earlier data only; TrueHazard is the
	// value that a generator used. -1 means unknown. Each is nil if all are unknown.
	Hazard, TrueHazard []float64

	// Bids are the bids at the 20th, 50th and 80th percentile of an auction; 0 means unknown. Each
	// is nil if all are unknown.
	Bids [3][]policy.Money
}

// ProductLinux is the product of prices without a stated product, as AWS writes it.
const ProductLinux = "Linux/UNIX"

// Name returns "provider/region/zone/type", followed by the product if it is not Linux.
func (s *Series) Name() string {
	name := s.Provider + "/" + s.Region + "/" + s.Zone + "/" + s.Type
	if s.Product != "" && s.Product != ProductLinux {
		name += "/" + s.Product
	}
	return name
}

// names returns the provider, region, zone, type and product.
func (s *Series) names() [5]string {
	return [...]string{s.Provider, s.Region, s.Zone, s.Type, cmp.Or(s.Product, ProductLinux)}
}

func compareSeries(a, b *Series) int {
	x, y := a.names(), b.names()
	return slices.Compare(x[:], y[:])
}

func (s *Series) check() error {
	if err := s.checkLengths(); err != nil {
		return err
	}
	for i, at := range s.At {
		if i > 0 && at <= s.At[i-1] {
			return fmt.Errorf("%w: %v after %v", ErrOrder, at, s.At[i-1])
		}
		v := s.Sample(i)
		switch {
		case at < TimeMin || at > TimeMax:
			return fmt.Errorf("%w: time %d", ErrValue, int64(at))
		case v.Spot < policy.NoPrice || v.Spot > priceMax:
			return fmt.Errorf("%w: Spot price %v at %v", ErrValue, v.Spot, at)
		case v.OnDemand < 0 || v.OnDemand > priceMax:
			return fmt.Errorf("%w: on-demand price %v at %v", ErrValue, v.OnDemand, at)
		case !(v.Hazard >= 0 || v.Hazard == -1) || !(v.TrueHazard >= 0 || v.TrueHazard == -1):
			return fmt.Errorf("%w: hazard %v, %v at %v", ErrValue, v.Hazard, v.TrueHazard, at)
		case slices.Min(v.Bids[:]) < 0 || slices.Max(v.Bids[:]) > priceMax:
			return fmt.Errorf("%w: bids %v at %v", ErrValue, v.Bids, at)
		case !v.depthFits():
			return fmt.Errorf("%w: %d of %d nodes launched, available %d, at %v", ErrValue, v.Launched, v.Requested,
				v.Available, at)
		case s.ProbeGapAt(i) < 0 || s.ProbeGapAt(i) > ProbeGapMax:
			return fmt.Errorf("%w: %d s since the market was looked at before %v", ErrValue, s.ProbeGapAt(i), at)
		}
	}
	return nil
}

// depthFits reports whether the depth is unknown, or is valid and consistent with Available.
func (v *Sample) depthFits() bool {
	if v.Requested == -1 && v.Launched == -1 {
		return true
	}
	return v.Requested >= 1 && v.Requested <= RequestedMax && v.Launched >= 0 && v.Launched <= v.Requested &&
		v.Available == int8(min(v.Launched, 1))
}

// checkLengths returns an error if a non-nil column does not have one value for each interval.
func (s *Series) checkLengths() error {
	var lengths []int
	wrong := len(s.Spot) != len(s.At) || len(s.Requested) != len(s.Launched)
	for _, c := range s.optional() {
		n := c.len()
		lengths = append(lengths, n)
		wrong = wrong || n != 0 && n != len(s.At)
	}
	if wrong {
		return fmt.Errorf("%w: columns of %d and %v values for %d times", ErrValue, len(s.Spot), lengths, len(s.At))
	}
	return nil
}

// restate moves the start of the first interval to start if it is earlier. A market that was not
// offered then starts when it is first offered, so that a window of a folder equals the same window
// of a single file.
func (s *Series) restate(start policy.Time) {
	if len(s.At) == 0 || s.At[0] > start {
		return
	}
	if s.At[0] < start {
		s.At[0] = start
		if s.ProbeGap != nil {
			s.ProbeGap[0] = 0
		}
	}
	if !s.Sample(0).live() {
		s.Cut(1, len(s.At))
	}
}
