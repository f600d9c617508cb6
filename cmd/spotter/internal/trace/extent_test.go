package trace

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Of a compact trace that is too large to be described the index tells what there is, and a
// part that is small enough is described.
func TestTooLarge(t *testing.T) {
	var series []trace.Series
	begin := policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, region := range []string{"eu-west-1", "us-east-1"} {
		s := trace.Series{Provider: "aws", Region: region, Zone: region + "a", Type: "m5.large"}
		for i := range 1000 {
			s.At = append(s.At, begin+policy.Time(i)*3_600_000)
			s.Spot = append(s.Spot, policy.Money(10_000+i%7))
		}
		series = append(series, s)
	}
	tr, err := trace.New("two", series)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder, compact := filepath.Join(dir, "folder"), filepath.Join(dir, "compact")
	if err := trace.Write(folder, tr); err != nil {
		t.Fatal(err)
	}
	index, err := trace.Compact(t.Context(), folder, nil, compact)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		path    string
		o       trace.ReadOptions
		most    int64
		regions string // empty: it is described
	}{
		{compact, trace.ReadOptions{}, 10_000, ""},
		{compact, trace.ReadOptions{}, 1500, "eu-west-1 us-east-1"},
		{compact, trace.ReadOptions{Regions: []string{"us-east-1"}}, 1500, ""},
		{compact, trace.ReadOptions{Regions: []string{"us-east-1"}}, 500, "us-east-1"},
		{compact, trace.ReadOptions{From: begin.Add(35 * 24 * time.Hour)}, 1500, ""},
		{compact, trace.ReadOptions{Types: []string{"m5.large"}}, 1, ""},
		{folder, trace.ReadOptions{}, 1, ""},
		{"", trace.ReadOptions{}, 1, ""},
		{"embedded:rackspace", trace.ReadOptions{}, 1, ""},
	} {
		e, err := tooLarge(x.path, x.o, x.most)
		if err != nil || (e != nil) != (x.regions != "") {
			t.Errorf("%s, %+v, %d: %+v, %v", x.path, x.o, x.most, e, err)
		}
		if e == nil {
			continue
		}
		var b strings.Builder
		if err := e.write(&b, false); err != nil || strings.Join(e.Regions, " ") != x.regions || e.Rows != index.Rows || e.Markets != 2 {
			t.Errorf("%+v, %v", e, err)
		}
		for _, want := range []string{"compact", "41.", "(41.6 days)", "too many", e.Digest[:16]} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	}
}
