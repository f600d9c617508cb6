package eval

import (
	"testing"

	"github.com/spotter-dev/spotter/eval/stats"
)

// TestUnits: with one window the units of an interval are its seeds, with more
// the windows, each with its median; where they are too few it says how many are
// needed, and never makes do with the runs.
func TestUnits(t *testing.T) {
	seeds := []float64{8, 1, 7, 2, 6, 3, 5, 4}
	var windows [][]float64
	for i := range 8 {
		windows = append(windows, []float64{float64(i), 100, float64(-i)})
	}
	rate := 0.05 / 6
	for _, x := range []struct {
		name    string
		windows [][]float64
		want    *stats.Interval
		need    int
		over    string
	}{
		{"eight seeds", [][]float64{seeds}, &stats.Interval{Low: 1, High: 8}, 0, "seeds"},
		{"seven seeds", [][]float64{seeds[:7]}, nil, 8, "seeds"},
		{"two seeds", [][]float64{seeds[:2]}, nil, 8, "seeds"},
		{"eight windows", windows, &stats.Interval{Low: 0, High: 7}, 0, "windows"},
		{"two windows of eight seeds", [][]float64{seeds, seeds}, nil, 8, "windows"},
		{"eight windows, one without a value", append(windows[:7:7], nil), nil, 8, "windows"},
		{"no value", [][]float64{nil}, nil, 0, ""},
	} {
		s := Summarize(x.windows, rate)
		if (s.MedianInterval == nil) != (x.want == nil) || x.want != nil && *s.MedianInterval != *x.want || s.Need != x.need || s.Over != x.over {
			t.Errorf("%s: %v, need %d %s; want %v, need %d %s", x.name, s.MedianInterval, s.Need, s.Over, x.want, x.need, x.over)
		}
		if low := s.Of(Low); low.Known != (x.want != nil) || low.Known && low.V != x.want.Low {
			t.Errorf("%s: low is %v", x.name, low)
		}
	}
	if s := Summarize([][]float64{seeds}, 0); s.MedianInterval != nil || s.Need != 0 {
		t.Errorf("a metric without intervals has %v and needs %d", s.MedianInterval, s.Need)
	}
}

func TestSummarizeNothing(t *testing.T) {
	if s := summarize(nil); s.N != 0 {
		t.Errorf("summary of nothing is %+v", s)
	}
}
