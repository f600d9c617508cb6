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

	// ProbeGap is how many seconds before At the market was last looked at, so
	// that what changed did so at one instant in (At − ProbeGap, At]. 0 means
	// that the instant is exact, or that nothing says how exact it is. It is
	// nil when no row says.
	ProbeGap []int32

	// Requested is how many nodes a probe asked for at once and Launched how
	// many of them came up: the depth of the market, known up to Requested. -1
	// means unknown, of both at once. Where they are known, Available is 1 when
	// Launched is above 0 and else 0. They are nil when no row says.
	Requested, Launched []int32

	// Band is the published interruption band and Score the placement score;
	// -1 means unknown. Each is nil when no row has one.
	Band, Score []int8

	// Hazard is a forecast of reclaims per node-hour made from data before its
	// time; TrueHazard is what a generator knows. -1 means unknown, nil that
	// no row has one.
	Hazard, TrueHazard []float64

	// Bids are the bids at the 20th, 50th and 80th percentile of an auction; 0
	// means unknown. Each is nil when no row has one.
	Bids [3][]policy.Money
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

	// Scripted says that somebody wrote the prices down in advance.
	Scripted bool

	// Unmarked says that the files do not tell whether their prices were
	// recorded or generated, as when another program has rewritten them.
	Unmarked bool

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

// A sample is all that a series says of one spell. How exactly its begin is
// known is no part of it: to have looked again changes nothing.
type sample struct {
	spot, onDemand         policy.Money
	available, band, score int8
	hazard, trueHazard     float64
	bids                   [3]policy.Money
	requested, launched    int32
}

// blank is the sample that says nothing.
var blank = sample{spot: policy.NoPrice, available: -1, band: -1, score: -1, hazard: -1, trueHazard: -1, requested: -1, launched: -1}

func (s *Series) sample(i int) sample {
	v := blank
	v.spot = s.Spot[i]
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
	for k, col := range s.Bids {
		if col != nil {
			v.bids[k] = col[i]
		}
	}
	if s.Launched != nil {
		v.requested, v.launched = s.Requested[i], s.Launched[i]
	}
	return v
}

// probeGap returns how long before spell i the market was last looked at.
func (s *Series) probeGap(i int) int32 {
	if s.ProbeGap == nil {
		return 0
	}
	return s.ProbeGap[i]
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
	if err := s.checkLengths(); err != nil {
		return err
	}
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
		case slices.Min(v.bids[:]) < 0 || slices.Max(v.bids[:]) > priceMax:
			return fmt.Errorf("%w: bids %v at %v", ErrValue, v.bids, at)
		case !v.depthFits():
			return fmt.Errorf("%w: %d of %d nodes launched, available %d, at %v", ErrValue, v.launched, v.requested, v.available, at)
		case s.probeGap(i) < 0 || s.probeGap(i) > probeGapMax:
			return fmt.Errorf("%w: %d s since the market was looked at before %v", ErrValue, s.probeGap(i), at)
		}
	}
	return nil
}

// depthFits reports whether the depth is unknown, or possible and said of the
// same as whether a node could be had.
func (v *sample) depthFits() bool {
	if v.requested == -1 && v.launched == -1 {
		return true
	}
	return v.requested >= 1 && v.requested <= requestedMax && v.launched >= 0 && v.launched <= v.requested &&
		v.available == int8(min(v.launched, 1))
}

// checkLengths fails when a column that is there has not one value for each
// spell.
func (s *Series) checkLengths() error {
	lengths := [...]int{
		len(s.OnDemand), len(s.Available), len(s.ProbeGap), len(s.Band), len(s.Score), len(s.Hazard),
		len(s.TrueHazard), len(s.Bids[0]), len(s.Bids[1]), len(s.Bids[2]), len(s.Requested), len(s.Launched),
	}
	for _, n := range lengths {
		if n != 0 && n != len(s.At) || len(s.Spot) != len(s.At) || len(s.Requested) != len(s.Launched) {
			return fmt.Errorf("%w: columns of %d and %v values for %d times", ErrValue, len(s.Spot), lengths, len(s.At))
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
	s.Cut(0, n)
}

// move copies spell i to place n.
func (s *Series) move(n, i int) {
	s.At[n], s.Spot[n] = s.At[i], s.Spot[i]
	for _, col := range [...][]int32{s.ProbeGap, s.Requested, s.Launched} {
		if col != nil {
			col[n] = col[i]
		}
	}
	for _, col := range [...][]policy.Money{s.OnDemand, s.Bids[0], s.Bids[1], s.Bids[2]} {
		if col != nil {
			col[n] = col[i]
		}
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

// Cut keeps the spells from i up to n.
func (s *Series) Cut(i, n int) {
	s.At, s.Spot = s.At[i:n], s.Spot[i:n]
	for _, col := range [...]*[]int32{&s.ProbeGap, &s.Requested, &s.Launched} {
		if *col != nil {
			*col = (*col)[i:n]
		}
	}
	for _, col := range [...]*[]policy.Money{&s.OnDemand, &s.Bids[0], &s.Bids[1], &s.Bids[2]} {
		if *col != nil {
			*col = (*col)[i:n]
		}
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
	for _, col := range [...]*[]policy.Money{&s.OnDemand, &s.Bids[0], &s.Bids[1], &s.Bids[2]} {
		if !slices.ContainsFunc(*col, func(m policy.Money) bool { return m != 0 }) {
			*col = nil
		}
	}
	if !slices.ContainsFunc(s.ProbeGap, func(gap int32) bool { return gap != 0 }) {
		s.ProbeGap = nil
	}
	if !slices.ContainsFunc(s.Launched, func(n int32) bool { return n >= 0 }) {
		s.Requested, s.Launched = nil, nil
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
		words(&d, s.At)
		words(&d, s.Spot)
		words(&d, s.OnDemand)
		for _, col := range [...][]int8{s.Available, s.Band, s.Score} {
			words(&d, col)
		}
		for _, col := range [...][]float64{s.Hazard, s.TrueHazard} {
			d.word(uint64(len(col)))
			for _, v := range col {
				d.word(math.Float64bits(v))
			}
		}
		d.later(s)
	}
	d.flush()
	return [32]byte(d.hash.Sum(nil))
}

// later takes in the columns that came to be after the first digests were
// printed. They count only where they are, so that a trace without them keeps
// its digest. What stands before each can be no length.
func (d *digester) later(s *Series) {
	const mark = 1 << 63
	if s.ProbeGap != nil {
		d.word(mark)
		words(d, s.ProbeGap)
	}
	for k, col := range s.Bids {
		if col != nil {
			d.word(mark + 1 + uint64(k))
			words(d, col)
		}
	}
	if s.Launched != nil {
		d.word(mark + 4)
		words(d, s.Requested)
		words(d, s.Launched)
	}
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
	if len(d.buf)+len(s) > cap(d.buf) {
		d.flush()
	}
	if len(s) > cap(d.buf) {
		io.WriteString(d.hash, s)
		return
	}
	d.buf = append(d.buf, s...)
}

// words takes in a column of whole numbers. Nearly all of what is hashed comes
// through here.
func words[T ~int8 | ~int32 | ~int64](d *digester, col []T) {
	d.word(uint64(len(col)))
	for len(col) > 0 {
		begin, n := len(d.buf), min(len(col), (cap(d.buf)-len(d.buf))/8)
		d.buf = d.buf[:begin+8*n]
		buf := d.buf[begin:]
		for _, v := range col[:n] {
			binary.LittleEndian.PutUint64(buf, uint64(v))
			buf = buf[8:]
		}
		if col = col[n:]; len(col) > 0 {
			d.flush()
		}
	}
}
