package fit

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// depthLaw is a law of depth for two zones of a region.
func depthLaw() AvailabilityLaw {
	law := DefaultAvailability()
	law.Gap = 10 * 60 * 1e9
	r := &law.Regions[0]
	r.Provider, r.Region, r.Type = "gcp", "us-central1", "a3-highgpu-1g"
	r.Law = weather.Law{
		Paces: []float64{0.05, 0.25, 1, 4, 16, 100}, Mean: 0.5, Spread: 0.5, Width: 1, WidthSpread: 1,
		Common: []float64{0, 0, 0.1, 0.3, 0.1, 0}, Own: []float64{0.2, 0, 0.1, 0.2, 0, 0},
	}
	r.Zones = []ZoneLaw{{Zone: "us-central1-a", Mean: 1, Width: 0.5}, {Zone: "us-central1-b", Mean: 0.7, Width: 2}}
	return law
}

// depthSeries are the markets of depthLaw and one more zone, with a price only.
func depthSeries(from policy.Time) []trace.Series {
	var out []trace.Series
	for _, zone := range []string{"us-central1-a", "us-central1-b", "us-central1-c"} {
		out = append(out, trace.Series{
			Provider: "gcp", Region: "us-central1", Zone: zone, Type: "a3-highgpu-1g", Product: trace.ProductLinux,
			At: []policy.Time{from}, Spot: []policy.Money{policy.Dollar},
		})
	}
	return out
}

const depthFrom = policy.Time(1_767_571_200_000) // Monday, 2026-01-05

// A fit finds the law that a recording was drawn from again: shares of time in the
// zones and correlations over time and between zones.
func TestFitDepthFindsTheLaw(t *testing.T) {
	law := depthLaw()
	o := AvailabilityOptions{Seed: 3, From: depthFrom, Days: 200, Gap: law.Gap}
	series, err := Availability(law, depthSeries(depthFrom)[:2], o)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.New("drawn", series)
	if err != nil {
		t.Fatal(err)
	}
	tr.To = depthFrom + 200*day
	found, err := Estimate(tr)
	if err != nil {
		t.Fatal(err)
	}
	r := &found.Regions[0]
	for i, want := range law.Regions[0].Zones {
		if got := r.Zones[i]; math.Abs(got.Mean-want.Mean) > 0.15 || math.Abs(got.Width/want.Width-1) > 0.15 || got.Opposed {
			t.Errorf("zone %+v, want %+v", got, want)
		}
	}
	for _, hours := range []float64{0, 1, 4, 16} {
		for _, common := range []bool{false, true} {
			want, got := 0.0, 0.0
			for i, pace := range depthPaces {
				keep := math.Exp(-hours / pace)
				w, g := law.Regions[0].Law.Common[i], r.Law.Common[i]
				if !common {
					w, g = w+law.Regions[0].Law.Own[i], g+r.Law.Own[i]
				}
				want, got = want+w*keep, got+g*keep
			}
			if math.Abs(got-want) > 0.1 {
				t.Errorf("slacks %v h apart, common %v: correlation %.3f, want %.3f", hours, common, got, want)
			}
		}
	}
}

// Zones that have capacity by turns are found and drawn as such.
func TestOpposedZones(t *testing.T) {
	law := depthLaw()
	law.Regions[0].Zones[1].Opposed = true
	o := AvailabilityOptions{Seed: 5, From: depthFrom, Days: 120, Gap: law.Gap}
	series, err := Availability(law, depthSeries(depthFrom)[:2], o)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.New("drawn", series)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Estimate(tr)
	if err != nil {
		t.Fatal(err)
	}
	if z := found.Regions[0].Zones; z[0].Opposed == z[1].Opposed {
		t.Errorf("%+v: neither is opposed to the other", z)
	}
	if got := found.Regions[0].depth.pairs[0]; got > -0.3 {
		t.Errorf("the depths correlate by %.3f", got)
	}
}

// The covariance of two depths in closed form is that of draws.
func TestHermite(t *testing.T) {
	for _, c := range []struct{ meanX, widthX, meanY, widthY, rho float64 }{
		{1, 0.5, 1, 0.5, 0.8}, {0, 0.01, 0, 3, 0.5}, {0.7, 2, 1, 0.5, -0.6}, {-1, 1, 0.3, 0.3, 0.3}, {0, 1, 0, 1, 0},
	} {
		depth := func(slack, width float64) float64 {
			switch {
			case slack <= 0:
				return 0
			case slack >= width:
				return 1
			}
			return (1 + math.Floor((weather.DepthMax-1)*slack/width)) / weather.DepthMax
		}
		const n = 200_000
		var sx, sy, sxy float64
		key := chance.New(1, "test hermite", "")
		for i := range uint64(n) {
			u, v := key.At2(i, 0).Normal(), key.At2(i, 1).Normal()
			x := depth(c.meanX+u, c.widthX)
			y := depth(c.meanY+c.rho*u+math.Sqrt(1-c.rho*c.rho)*v, c.widthY)
			sx, sy, sxy = sx+x, sy+y, sxy+x*y
		}
		want := sxy/n - sx/n*sy/n
		if got := covariance(hermite(c.meanX, c.widthX), hermite(c.meanY, c.widthY), c.rho); math.Abs(got-want) > 0.002 {
			t.Errorf("%+v: covariance %.4f, of draws %.4f", c, got, want)
		}
	}
}

// What is drawn of depth is a possible trace; a later end and a market more change
// nothing of it, and probes see what is there without.
func TestDrawnDepthHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		law := depthLaw()
		seed, days := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 5).Draw(t, "days")
		draw := func(markets, days int, gap bool) []trace.Series {
			o := AvailabilityOptions{Seed: seed, From: depthFrom, Days: days}
			if gap {
				o.Gap = law.Gap
			}
			series, err := Availability(law, depthSeries(depthFrom)[:markets], o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := trace.New("drawn", append([]trace.Series(nil), series...)); err != nil {
				t.Fatal(err)
			}
			return series
		}
		probed, exact := draw(3, days, true), draw(3, days, false)
		if one := draw(1, days, true); !reflect.DeepEqual(one[0], probed[0]) {
			t.Fatal("markets more change the first")
		}
		longer := draw(1, days+2, true)[0]
		longer.Cut(0, len(probed[0].At))
		if !reflect.DeepEqual(longer.Launched, probed[0].Launched) || !reflect.DeepEqual(longer.At, probed[0].At) {
			t.Fatal("a later end changes what was before")
		}
		for m := range probed {
			for i, at := range probed[m].At {
				k := 0
				for k+1 < len(exact[m].At) && exact[m].At[k+1] <= at {
					k++
				}
				if exact[m].Launched[k] != probed[m].Launched[i] || probed[m].Requested[i] != weather.DepthMax {
					t.Fatalf("market %d at %v: a probe finds %d, there are %d", m, at, probed[m].Launched[i], exact[m].Launched[k])
				}
			}
		}
	})
}
