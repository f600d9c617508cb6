package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Trace is the record of some markets. It is not changed after it was made
// and may be read by any number of runs at once.
type Trace struct {
	// Name is the file or folder it was read from, or that of an embedded trace.
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

	// Scripted says that the prices were written in advance, as a script.
	Scripted bool

	// Unmarked says that the files do not say whether their prices were
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
	t := &Trace{Name: name, Series: series, From: TimeMax}
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

const day = policy.Time(24 * time.Hour / time.Millisecond)

// dayOf returns the start of the UTC day that contains t.
func dayOf(t policy.Time) policy.Time { return t - (t%day+day)%day }

// seal puts t in order, drops intervals that repeat the one before, sets slices
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
	err := t.sort()
	if err == nil {
		t.Digest = digest(t.Series)
	}
	return err
}

// sort sorts the series and fails if a market is listed twice.
func (t *Trace) sort() error {
	slices.SortFunc(t.Series, func(a, b Series) int { return compareSeries(&a, &b) })
	for i := range t.Series {
		s := &t.Series[i]
		if i > 0 && compareSeries(&t.Series[i-1], s) == 0 {
			return fmt.Errorf("market %s: %w: it is listed twice", s.Name(), ErrValue)
		}
	}
	return nil
}
