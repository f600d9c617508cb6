package trace

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Series is what one market did over time: At[i] begins a spell in which the
// i-th value of every other slice holds. Two neighbouring spells differ in at
// least one value.
type Series struct {
	// Product is what runs on the node; an empty one becomes ProductLinux.
	Provider, Region, Zone, Type, Product string

	// At is strictly ascending.
	At []policy.Time

	// Spot is the price of a node-hour; policy.NoPrice means not offered.
	Spot []policy.Money

	// OnDemand is the on-demand price of the same type in the same region; 0
	// means unknown. It is nil when no row has one.
	OnDemand []policy.Money

	// Available is 1 when a node could be had, 0 when not, -1 when unknown.
	// It is nil when no row says.
	Available []int8

	// Band is the published interruption band and Score the placement score;
	// -1 means unknown. Each is nil when no row has one.
	Band, Score []int8

	// Hazard is a forecast of reclaims per node-hour made from data before its
	// time; TrueHazard is what a generator knows. -1 means unknown, nil that
	// no row has one.
	Hazard, TrueHazard []float64
}

// A Trace is the record of some markets. It is not changed after it was made
// and may be read by any number of runs at once.
type Trace struct {
	// Name is the file or folder it was read from, or "embedded".
	Name string

	// Series are ascending by (provider, region, zone, type, product).
	Series []Series

	// From and To are the span that the series cover. WholeFrom and WholeTo
	// are the span of all that is stored, of which a window may have been
	// read.
	From, To           policy.Time
	WholeFrom, WholeTo policy.Time

	// Synthetic says that the prices were generated and not recorded.
	Synthetic bool

	// About is one line that says how it was made or where it was recorded.
	About string

	// Meta holds further facts, such as the parameters of a generator.
	Meta map[string]string

	// Digest is the SHA-256 of names, times and values of all series, the same
	// however they are stored.
	Digest [32]byte

	// Warnings say what about the content may surprise.
	Warnings []string
}

// New returns a trace of series, which become its own and are put in order.
// The span is that of their times.
func New(name string, series []Series) (*Trace, error) {
	series = slices.DeleteFunc(series, func(s Series) bool { return len(s.At) == 0 })
	t := &Trace{Name: name, Series: series, From: timeMax}
	for i := range series {
		at := series[i].At
		t.From, t.To = min(t.From, at[0]), max(t.To, at[len(at)-1])
	}
	if len(series) == 0 {
		return nil, fmt.Errorf("%s: %w: no prices", name, ErrEmpty)
	}
	t.WholeFrom, t.WholeTo = t.From, t.To
	if err := t.seal(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Name returns "provider/region/zone/type", followed by the product where that
// is not Linux.
func (s *Series) Name() string {
	name := s.Provider + "/" + s.Region + "/" + s.Zone + "/" + s.Type
	if s.Product != "" && s.Product != ProductLinux {
		name += "/" + s.Product
	}
	return name
}

// ProductLinux is the product that prices without one are taken to be of, as
// AWS writes it.
const ProductLinux = "Linux/UNIX"

const day = policy.Time(24 * time.Hour / time.Millisecond)

// dayOf returns the begin of the UTC day that holds t.
func dayOf(t policy.Time) policy.Time { return t - (t%day+day)%day }

func compareSeries(a, b *Series) int {
	return cmp.Or(
		cmp.Compare(a.Provider, b.Provider),
		cmp.Compare(a.Region, b.Region),
		cmp.Compare(a.Zone, b.Zone),
		cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Product, b.Product),
	)
}

// A sample is all that a series says of one spell.
type sample struct {
	spot, onDemand         policy.Money
	available, band, score int8
	hazard, trueHazard     float64
}

// blank is the sample that says nothing.
var blank = sample{spot: policy.NoPrice, available: -1, band: -1, score: -1, hazard: -1, trueHazard: -1}

func (s *Series) sample(i int) sample {
	v := sample{spot: s.Spot[i], available: -1, band: -1, score: -1, hazard: -1, trueHazard: -1}
	if s.OnDemand != nil {
		v.onDemand = s.OnDemand[i]
	}
	if s.Available != nil {
		v.available = s.Available[i]
	}
	if s.Band != nil {
		v.band = s.Band[i]
	}
	if s.Score != nil {
		v.score = s.Score[i]
	}
	if s.Hazard != nil {
		v.hazard = s.Hazard[i]
	}
	if s.TrueHazard != nil {
		v.trueHazard = s.TrueHazard[i]
	}
	return v
}

// seal puts t in order, drops spells that repeat the one before, sets slices
// that say nothing to nil, and computes the digest. It fails when t breaks a
// rule of its fields.
func (t *Trace) seal() error {
	for i := range t.Series {
		s := &t.Series[i]
		s.Product = cmp.Or(s.Product, ProductLinux)
		if err := s.check(); err != nil {
			return fmt.Errorf("market %s: %w", s.Name(), err)
		}
		s.collapse()
		s.dropUnknown()
	}
	return t.order()
}

// order sorts the series and computes the digest.
func (t *Trace) order() error {
	slices.SortFunc(t.Series, func(a, b Series) int { return compareSeries(&a, &b) })
	for i := range t.Series {
		s := &t.Series[i]
		if i > 0 && compareSeries(&t.Series[i-1], s) == 0 {
			return fmt.Errorf("market %s: %w: it stands twice", s.Name(), ErrValue)
		}
	}
	t.Digest = digest(t.Series)
	return nil
}

func (s *Series) check() error {
	for i, at := range s.At {
		if i > 0 && at <= s.At[i-1] {
			return fmt.Errorf("%w: %v after %v", ErrOrder, at, s.At[i-1])
		}
		v := s.sample(i)
		switch {
		case at < timeMin || at > timeMax:
			return fmt.Errorf("%w: time %d", ErrValue, int64(at))
		case v.spot < policy.NoPrice || v.spot > priceMax:
			return fmt.Errorf("%w: spot price %v at %v", ErrValue, v.spot, at)
		case v.onDemand < 0 || v.onDemand > priceMax:
			return fmt.Errorf("%w: on-demand price %v at %v", ErrValue, v.onDemand, at)
		case !(v.hazard >= 0 || v.hazard == -1) || !(v.trueHazard >= 0 || v.trueHazard == -1):
			return fmt.Errorf("%w: hazard %v, %v at %v", ErrValue, v.hazard, v.trueHazard, at)
		}
	}
	return nil
}

// collapse drops spells equal to the one before them.
func (s *Series) collapse() {
	n := 0
	for i := range s.At {
		if n > 0 && s.sample(i) == s.sample(n-1) {
			continue
		}
		s.move(n, i)
		n++
	}
	s.cut(0, n)
}

// move copies spell i to place n.
func (s *Series) move(n, i int) {
	s.At[n], s.Spot[n] = s.At[i], s.Spot[i]
	if s.OnDemand != nil {
		s.OnDemand[n] = s.OnDemand[i]
	}
	for _, col := range [...][]int8{s.Available, s.Band, s.Score} {
		if col != nil {
			col[n] = col[i]
		}
	}
	for _, col := range [...][]float64{s.Hazard, s.TrueHazard} {
		if col != nil {
			col[n] = col[i]
		}
	}
}

// cut keeps the spells from i up to n.
func (s *Series) cut(i, n int) {
	s.At, s.Spot = s.At[i:n], s.Spot[i:n]
	if s.OnDemand != nil {
		s.OnDemand = s.OnDemand[i:n]
	}
	for _, col := range [...]*[]int8{&s.Available, &s.Band, &s.Score} {
		if *col != nil {
			*col = (*col)[i:n]
		}
	}
	for _, col := range [...]*[]float64{&s.Hazard, &s.TrueHazard} {
		if *col != nil {
			*col = (*col)[i:n]
		}
	}
}

func (s *Series) dropUnknown() {
	if !slices.ContainsFunc(s.OnDemand, func(m policy.Money) bool { return m != 0 }) {
		s.OnDemand = nil
	}
	for _, col := range [...]*[]int8{&s.Available, &s.Band, &s.Score} {
		if !slices.ContainsFunc(*col, func(v int8) bool { return v >= 0 }) {
			*col = nil
		}
	}
	for _, col := range [...]*[]float64{&s.Hazard, &s.TrueHazard} {
		if !slices.ContainsFunc(*col, func(v float64) bool { return v >= 0 }) {
			*col = nil
		}
	}
}

// digest hashes the names and columns of all series. Each stands behind its
// length, so that no two contents give the same bytes.
func digest(series []Series) [32]byte {
	d := digester{hash: sha256.New(), buf: make([]byte, 0, 1<<13)}
	d.text("spotter trace 1")
	d.word(uint64(len(series)))
	for i := range series {
		s := &series[i]
		for _, name := range [...]string{s.Provider, s.Region, s.Zone, s.Type, s.Product} {
			d.text(name)
		}
		column(&d, s.At, func(v policy.Time) uint64 { return uint64(v) })
		column(&d, s.Spot, func(v policy.Money) uint64 { return uint64(v) })
		column(&d, s.OnDemand, func(v policy.Money) uint64 { return uint64(v) })
		for _, col := range [...][]int8{s.Available, s.Band, s.Score} {
			column(&d, col, func(v int8) uint64 { return uint64(v) })
		}
		for _, col := range [...][]float64{s.Hazard, s.TrueHazard} {
			column(&d, col, math.Float64bits)
		}
	}
	d.flush()
	return [32]byte(d.hash.Sum(nil))
}

// A digester gathers what is hashed, so that the hash is given long pieces.
type digester struct {
	hash hash.Hash
	buf  []byte
}

func (d *digester) flush() {
	d.hash.Write(d.buf)
	d.buf = d.buf[:0]
}

func (d *digester) word(v uint64) {
	if len(d.buf)+8 > cap(d.buf) {
		d.flush()
	}
	d.buf = binary.LittleEndian.AppendUint64(d.buf, v)
}

func (d *digester) text(s string) {
	d.word(uint64(len(s)))
	d.flush()
	io.WriteString(d.hash, s)
}

func column[T any](d *digester, col []T, bits func(T) uint64) {
	d.word(uint64(len(col)))
	for _, v := range col {
		d.word(bits(v))
	}
}
