package trace

import (
	"errors"
	"reflect"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

func market(zone string, at []policy.Time, spot []policy.Money, change func(*Series)) Series {
	s := Series{Provider: "aws", Region: "r", Zone: zone, Type: "t", At: at, Spot: spot}
	if change != nil {
		change(&s)
	}
	return s
}

func traceOf(t testing.TB, series ...Series) *Trace {
	t.Helper()
	tr, err := New("x", series)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// An older recording has a score and prices to day 3, a newer one prices from
// day 2 on, of which one corrects the older; and each has a market of its own.
func TestMerge(t *testing.T) {
	a := traceOf(t,
		market("a", []policy.Time{at(1, 0), at(2, 0), at(3, 0)}, cents(10, 20, 30), func(s *Series) { s.Score = []int8{3, -1, 4} }),
		market("b", []policy.Time{at(1, 0)}, cents(1), nil))
	b := traceOf(t,
		market("a", []policy.Time{at(2, 0), at(2, 12), at(4, 0)}, cents(21, 30, -1), func(s *Series) {
			s.OnDemand, s.Available, s.ProbeGap = cents(0, 90, 90), []int8{-1, 1, 1}, []int32{0, 60, 0}
			s.Bids[1] = cents(0, 0, 5)
		}),
		market("c", []policy.Time{at(5, 0)}, cents(7), nil))
	b.About, b.Meta = "newer", map[string]string{"k": "b"}
	a.About, a.Meta = "older", map[string]string{"k": "a", "l": "a"}
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	const want = `aws/r/a/t 01T00:00:00 spot=0.1 score=3
aws/r/a/t 02T00:00:00 spot=0.21 score=3
aws/r/a/t 02T12:00:00 spot=0.3 od=0.9 up=1 gap=60 score=3
aws/r/a/t 03T00:00:00 spot=0.3 od=0.9 up=1 score=4
aws/r/a/t 04T00:00:00 gone od=0.9 up=1 score=4 bids=0 0.05 0
aws/r/b/t 01T00:00:00 spot=0.01
aws/r/c/t 05T00:00:00 spot=0.07`
	if got := told(m); got != want {
		t.Errorf("merged\n%s\nwant\n%s", got, want)
	}
	if m.From != at(1, 0) || m.To != at(5, 0) || m.About != "newer" || !reflect.DeepEqual(m.Meta, map[string]string{"k": "b", "l": "a"}) {
		t.Errorf("%+v", m)
	}
	if again, err := Merge(m, b); err != nil || again.Digest != m.Digest {
		t.Errorf("once more: %v\n%s", err, told(again))
	}
}

func TestMergeRefuses(t *testing.T) {
	made := traceOf(t, market("a", []policy.Time{1}, cents(1), nil))
	made.Synthetic = true
	if _, err := Merge(made, traceOf(t, market("a", []policy.Time{1}, cents(1), nil))); !errors.Is(err, ErrValue) {
		t.Errorf("generated and recorded: %v", err)
	}
}

// Whatever two traces say: to merge the second again, or a part of it, or to
// merge a trace with itself, changes nothing, and neither of them is changed.
func TestMergeIsIdempotent(t *testing.T) {
	for seed := range uint64(40) {
		a, b := random(t, seed+500), random(t, seed+900)
		before := [2][32]byte{a.Digest, b.Digest}
		m, err := Merge(a, b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for name, second := range map[string]*Trace{"b": b, "first part of b": half(t, b, seed), "itself": m} {
			again, err := Merge(m, second)
			if err != nil || again.Digest != m.Digest {
				t.Errorf("seed %d, %s: %v\n%s\nwas\n%s", seed, name, err, told(again), told(m))
			}
		}
		if digest(a.Series) != before[0] || digest(b.Series) != before[1] {
			t.Errorf("seed %d: a trace was changed", seed)
		}
		checkMerged(t, seed, a, b, m)
	}
}

// half returns the trace of some of the first spells of each series.
func half(t *testing.T, tr *Trace, seed uint64) *Trace {
	t.Helper()
	var series []Series
	for i := range tr.Series {
		s := mergeSeries(&tr.Series[i], new(Series))
		s.cut(0, 1+chance.New(seed, "test", "half").At1(uint64(i)).IntN(len(s.At)))
		series = append(series, s)
	}
	return traceOf(t, series...)
}

// checkMerged holds the merged prices against a plain account of them: at each
// change, that of b if b changes then, else that of a.
func checkMerged(t *testing.T, seed uint64, a, b, m *Trace) {
	t.Helper()
	for i := range m.Series {
		s := &m.Series[i]
		said := map[policy.Time]policy.Money{}
		for _, tr := range []*Trace{a, b} {
			for k := range tr.Series {
				if compareSeries(&tr.Series[k], s) != 0 {
					continue
				}
				for n, at := range tr.Series[k].At {
					if n == 0 || tr.Series[k].Spot[n] != tr.Series[k].Spot[n-1] {
						said[at] = tr.Series[k].Spot[n]
					}
				}
			}
		}
		for at, want := range said {
			if got, _ := s.when(at); got.spot != want {
				t.Errorf("seed %d: %s at %v is %v, want %v", seed, s.Name(), at, got.spot, want)
			}
		}
	}
}
