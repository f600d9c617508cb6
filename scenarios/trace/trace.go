package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Trace contains the prices and other recorded data of markets. It is immutable after its
// creation and may be read by concurrent runs.
type Trace struct {
	// Name is the file or folder that it was read from, or the name of an embedded trace.
	Name string

	// Series are ascending by (provider, region, zone, type, product).
	Series []Series

	// From and To are the span of the series. WholeFrom and WholeTo are the span of the stored
	// trace, of which only a window may have been read.
	From, To           policy.Time
	WholeFrom, WholeTo policy.Time

	// Synthetic reports that the prices were generated and not recorded.
	Synthetic bool

	// Scripted reports that the prices were written in advance, as a script.
	Scripted bool

	// Unmarked reports that the files do not state whether their prices were recorded or generated,
	// for example because another program has rewritten them.
	Unmarked bool

	// About describes in one line how the trace was made or where it was recorded.
	About string

	// Meta contains further metadata, such as the parameters of a generator.
	Meta map[string]string

	// Digest is the SHA-256 of names, times and values of all series. It does not depend on the
	// storage format.
	Digest [32]byte

	// Warnings describe properties of the content that may be unexpected.
	Warnings []string
}

// New returns a trace of series, which it owns, sorts and modifies. The span is that of their
// times.
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

// seal sorts t, removes intervals that repeat the one before, sets columns without known values to
// nil, and computes the digest. It returns an error if t is invalid.
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
