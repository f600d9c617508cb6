package fit

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// recordedZones reads a folder of availability files.
func recordedZones(t *testing.T, folder string, start time.Time) *trace.Trace {
	t.Helper()
	var series []trace.Series
	var end policy.Time
	files, err := filepath.Glob(policytest.Recording(t, folder) + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s: %v", len(files), folder, err)
	}
	for _, file := range files {
		var in struct {
			Metadata struct {
				Gap int32 `json:"gap_seconds"`
			}
			Data []int8
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &in); err != nil {
			t.Fatal(err)
		}
		zone, _, _ := strings.Cut(filepath.Base(file), "_")
		s := trace.Series{Provider: "aws", Region: zone[:len(zone)-1], Zone: zone, Type: "p3.2xlarge"}
		for i, up := range in.Data {
			at := policy.TimeOf(start) + policy.Time(i)*policy.Time(in.Metadata.Gap)*1000
			end = max(end, at)
			if i > 0 && in.Data[i-1] == up {
				continue
			}
			s.At, s.Available, s.ProbeGap = append(s.At, at), append(s.Available, up), append(s.ProbeGap, in.Metadata.Gap)
			s.Spot = append(s.Spot, policy.Dollar)
		}
		s.ProbeGap[0] = 0
		series = append(series, s)
	}
	tr, err := trace.New(folder, series)
	if err != nil {
		t.Fatal(err)
	}
	tr.To = end
	return tr
}

// nineZones reads 45 days of V100 in nine zones of three regions.
func nineZones(t *testing.T) *trace.Trace {
	t.Helper()
	return recordedZones(t, "availability/skypilot/availability/1-node/aws-02-15-2023", time.Date(2023, 2, 15, 0, 0, 0, 0, time.UTC))
}

// fitOnce is the law of the nine zones, which takes seconds to find.
var fitOnce struct {
	sync.Once
	law AvailabilityLaw
	err error
}

func nineZonesLaw(t *testing.T, tr *trace.Trace) AvailabilityLaw {
	t.Helper()
	fitOnce.Do(func() { fitOnce.law, fitOnce.err = Estimate(tr) })
	if fitOnce.err != nil {
		t.Fatal(fitOnce.err)
	}
	return fitOnce.law
}

// drawn returns the availability of a law for the markets of a trace, and its
// end.
func drawn(t *testing.T, law AvailabilityLaw, series []trace.Series, o AvailabilityOptions) *trace.Trace {
	t.Helper()
	got, err := Availability(law, series, o)
	if err != nil {
		t.Fatal(err)
	}
	return &trace.Trace{Series: got, From: o.From, To: o.From + policy.Time(o.Days)*day - 1}
}

// byRegion returns the behaviour of each region, ascending by name, as probes
// see it, and the ages of intervals in all of them.
func byRegion(tr *trace.Trace, gap policy.Time) (regions []behaviour, ups ages) {
	for i := 0; i < len(tr.Series); {
		var zones []*trace.Series
		for region := tr.Series[i].Region; i < len(tr.Series) && tr.Series[i].Region == region; i++ {
			zones = append(zones, &tr.Series[i])
		}
		p := probe(zones, tr.To, gap)
		b := p.behaviour()
		for k := range ageBuckets {
			ups.ends[k] += b.ups.ends[k]
			ups.hours[k] += b.ups.hours[k]
		}
		regions = append(regions, b)
	}
	return regions, ups
}

// Drawn from the law of the nine recorded zones and seen through the probes of
// the recording, intervals end as the recorded ones do at every age, and zones go
// down together as they did.
func TestAvailabilityLikeRecorded(t *testing.T) {
	tr := nineZones(t)
	law := nineZonesLaw(t, tr)
	if law.Gap != 195*time.Second || len(law.Regions) != 3 {
		t.Fatalf("probes every %v in %d regions, want 195 s in 3", law.Gap, len(law.Regions))
	}
	want, wantUps := byRegion(tr, 195_000)
	for seed := range uint64(3) {
		// Of 45 days chance alone moves the rarer figures by as much as is
		// tolerated; of 460 it does not.
		got, gotUps := byRegion(drawn(t, law, tr.Series, AvailabilityOptions{Seed: seed, From: tr.From, Days: 460, Gap: law.Gap}), 195_000)
		for b := 1; b < ageBuckets; b++ { // of the first half hour the probes see too little
			tolerance := 0.25
			if b == ageBuckets-1 {
				tolerance = 0.35
			}
			if off := gotUps.hazard(b)/wantUps.hazard(b) - 1; math.Abs(off) > tolerance {
				t.Errorf("seed %d: the hazard of spells up to %v h is %+.0f %% off, tolerated are %.0f %%", seed, ageEnds[b], 100*off, 100*tolerance)
			}
		}
		for r := range want {
			tolerance := 0.3
			if want[r].noneUp < 0.1 {
				tolerance = 0.5
			}
			if off := got[r].noneUp/want[r].noneUp - 1; math.Abs(off) > tolerance {
				t.Errorf("seed %d: no zone of region %d is up %.3f of the time, recorded are %.3f", seed, r, got[r].noneUp, want[r].noneUp)
			}
			if math.Abs(got[r].alike-want[r].alike) > 0.1 {
				t.Errorf("seed %d: zones of region %d are correlated %.2f, recorded are %.2f", seed, r, got[r].alike, want[r].alike)
			}
			for z := range want[r].shares {
				if math.Abs(got[r].shares[z]-want[r].shares[z]) > 0.07 {
					t.Errorf("seed %d: zone %d of region %d is available %.2f of the time, recorded are %.2f", seed, z, r,
						got[r].shares[z], want[r].shares[z])
				}
			}
		}
	}
}

// The one of many draws that is kept is nearer to the recording than the first.
func TestAlike(t *testing.T) {
	tr := nineZones(t)
	law := nineZonesLaw(t, tr)
	want, _ := byRegion(tr, 195_000)
	o := AvailabilityOptions{Seed: 5, From: tr.From, Days: 45, Gap: law.Gap}
	plain, _ := byRegion(drawn(t, law, tr.Series, o), 195_000)
	o.Alike = 16
	chosen, _ := byRegion(drawn(t, law, tr.Series, o), 195_000)
	for r := range want {
		first := distance(&want[r], &plain[r]) + sharesDistance(&want[r], &plain[r])
		best := distance(&want[r], &chosen[r]) + sharesDistance(&want[r], &chosen[r])
		if best > first {
			t.Errorf("region %d: the draw kept is %.1f away, the first %.1f", r, best, first)
		}
	}
}

// smallLaw covers p3.2xlarge in one region, and nothing else.
func smallLaw() AvailabilityLaw {
	law := DefaultAvailability()
	law.Regions[0].Region, law.Regions[0].Type = "us-east-1", "p3.2xlarge"
	law.Regions[0].Zones = []ZoneLaw{{Zone: "us-east-1a", Mean: 0.3}}
	return law
}

// priced returns a series with a price every six hours.
func priced(region, zone, kind string, from policy.Time, days int) trace.Series {
	s := trace.Series{Provider: "aws", Region: region, Zone: zone, Type: kind}
	for i := range 4 * days {
		s.At = append(s.At, from+policy.Time(i)*6*hourLong+77_000)
		s.Spot = append(s.Spot, policy.Dollar+policy.Money(i))
		s.OnDemand = append(s.OnDemand, 3*policy.Dollar)
	}
	return s
}

var spring = policy.TimeOf(time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC))

// Columns are added to what the law covers and the prices stay in force; other
// series are left alone.
func TestAvailabilityColumns(t *testing.T) {
	a := priced("us-east-1", "us-east-1a", "p3.2xlarge", spring, 10)
	other := priced("us-east-1", "us-east-1a", "m5.large", spring, 10)
	tr := drawn(t, smallLaw(), []trace.Series{a, other}, AvailabilityOptions{Seed: 1, From: spring, Days: 10, Gap: 3 * time.Minute})
	if !reflect.DeepEqual(tr.Series[1], other) {
		t.Error("a series that the law does not cover was changed")
	}
	got, price, changes := &tr.Series[0], -1, 0
	for i, at := range got.At {
		for price+1 < len(a.At) && a.At[price+1] <= at {
			price++
		}
		if want := policy.NoPrice; price < 0 && got.Spot[i] != want || price >= 0 && got.Spot[i] != a.Spot[price] {
			t.Fatalf("row %d at %v: price %v", i, at, got.Spot[i])
		}
		if i == 0 {
			continue
		}
		if at <= got.At[i-1] {
			t.Fatalf("row %d at %v is not later than the one before", i, at)
		}
		if got.Available[i] != got.Available[i-1] {
			changes++
			if (at-spring)%180_000 != 0 || got.ProbeGap[i] != 180 {
				t.Errorf("a change at %v with gap %d was not seen by a probe", at, got.ProbeGap[i])
			}
		}
		if (got.TrueHazard[i] > 0) != (got.Available[i] == 1) {
			t.Errorf("row %d: available %d with true hazard %v", i, got.Available[i], got.TrueHazard[i])
		}
	}
	if changes < 10 || price != len(a.At)-1 {
		t.Errorf("%d changes and the price of row %d, want more than 10 and the last", changes, price)
	}
	if _, err := trace.New("joined", tr.Series); err != nil {
		t.Error(err)
	}
}

// TestProbesSeeLess: without probes every change is recorded at its instant; with probes
// fewer changes are recorded, each of them late by less than the probe gap.
func TestProbesSeeLess(t *testing.T) {
	series := []trace.Series{priced("us-east-1", "us-east-1a", "p3.2xlarge", spring, 60)}
	exact := drawn(t, smallLaw(), series, AvailabilityOptions{Seed: 2, From: spring, Days: 60})
	probed := drawn(t, smallLaw(), series, AvailabilityOptions{Seed: 2, From: spring, Days: 60, Gap: 10 * time.Minute})
	x, y := changesOf(&exact.Series[0]), changesOf(&probed.Series[0])
	if len(y) == 0 || len(y) >= len(x) {
		t.Fatalf("%d changes and %d of them seen", len(x), len(y))
	}
	for at, up := range y {
		found := false
		for when, to := range x {
			found = found || to == up && when <= at && at-when < 600_000
		}
		if !found {
			t.Errorf("the change at %v has none within ten minutes before it", at)
		}
	}
}

func changesOf(s *trace.Series) map[policy.Time]int8 {
	out := map[policy.Time]int8{}
	for i := 1; i < len(s.At); i++ {
		if s.Available[i] != s.Available[i-1] {
			out[s.At[i]] = s.Available[i]
		}
	}
	return out
}

// A draw depends on its seed, and neither on other series nor, in its begin, on
// its length.
func TestAvailabilityKeys(t *testing.T) {
	law := DefaultAvailability()
	a, b := priced("us-east-1", "us-east-1a", "p3.2xlarge", spring, 20), priced("us-east-1", "us-east-1b", "g5.xlarge", spring, 20)
	o := AvailabilityOptions{Seed: 3, From: spring, Days: 20, Gap: 3 * time.Minute}
	both, alone := drawn(t, law, []trace.Series{a, b}, o), drawn(t, law, []trace.Series{b}, o)
	if !reflect.DeepEqual(both.Series[1], alone.Series[0]) {
		t.Error("a market depends on the others")
	}
	o.Days = 8
	short := drawn(t, law, []trace.Series{b}, o).Series[0]
	n := 0
	for n < len(short.At) && short.At[n] < spring+8*day {
		n++
	}
	if !reflect.DeepEqual(short.Available[:n], alone.Series[0].Available[:n]) ||
		!reflect.DeepEqual(short.TrueHazard[:n], alone.Series[0].TrueHazard[:n]) {
		t.Error("a longer draw does not begin as a shorter one")
	}
	o.Seed = 4
	if reflect.DeepEqual(drawn(t, law, []trace.Series{b}, o).Series[0].Available, short.Available) {
		t.Error("the seed changes nothing")
	}
}

func TestAvailabilityRefused(t *testing.T) {
	good := AvailabilityOptions{From: spring, Days: 1}
	for want, change := range map[string]func(*AvailabilityOptions){
		"From is": func(o *AvailabilityOptions) { o.From = 0 }, "Days is 0": func(o *AvailabilityOptions) { o.Days = 0 },
		"Gap is -1s": func(o *AvailabilityOptions) { o.Gap = -time.Second }, "Gap is 1.5s": func(o *AvailabilityOptions) { o.Gap = 1500 * time.Millisecond },
		"Alike is -1": func(o *AvailabilityOptions) { o.Alike = -1 },
	} {
		o := good
		change(&o)
		if _, err := Availability(DefaultAvailability(), nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	tr := &trace.Trace{Name: "prices", Series: []trace.Series{priced("us-east-1", "a", "p3.2xlarge", spring, 3)}}
	if _, err := Estimate(tr); !errors.Is(err, ErrNoAvailability) || !strings.Contains(err.Error(), "prices") {
		t.Errorf("fitting prices: error %v", err)
	}
}
