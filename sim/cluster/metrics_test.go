package cluster

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim/result"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// TestGauge follows a workload that wants 4, of which 3 are required.
func TestGauge(t *testing.T) {
	window := billing.Span{From: simtest.Start, To: simtest.Start.Add(time.Hour)}
	g := Readiness{since: simtest.Start.Add(-time.Hour), desired: 4, required: 3, ready: 4}
	set := func(minute int, ready int32) {
		g.advance(simtest.Start.Add(time.Duration(minute)*time.Minute), window)
		g.ready = ready
	}
	set(-10, 2) // before the window: 10 minutes below that do not count
	set(2, 4)   // 2 minutes below
	set(5, 1)   // a gap of 3 minutes joins
	set(8, 3)   // 3 minutes below by two; then at required, yet one missing
	set(20, 2)  // a gap of 12 minutes parts
	set(21, 4)
	g.advance(window.To, window)
	g.close()
	longest := result.Incident{Began: simtest.Start, Outage: 5 * time.Minute, Pods: 2, Cause: result.CauseGrowth}
	if o := g.outages; o.Incidents != 2 || o.Outage != 6*time.Minute || o.OutageMinutes != 6 || o.PodsAffected != 2+1 || o.Longest != longest {
		t.Errorf("%+v; want 2 incidents, 6 minutes, 3 pods and the longest %+v", o, longest)
	}
	// Missing: 2 for 2 min, 3 for 3, 1 for 12, 2 for 1.
	if want := int64(2*2+3*3+1*12+2*1) * 60_000; g.missingMS != want {
		t.Errorf("missing %d pod-ms, want %d", g.missingMS, want)
	}
	if want := int64(60-2-3-12-1) * 60_000; g.fullMS != want {
		t.Errorf("full for %d ms, want %d", g.fullMS, want)
	}
	// $0.06 an hour: 27 pod-minutes are $0.027; 3 pods short at 4 h are $0.72.
	unserved, incidents := g.outage(60_000, 4, 0)
	if unserved != 27_000 || incidents != 720_000 {
		t.Errorf("unserved %v, incidents %v; want $0.027 and $0.72", unserved, incidents)
	}
	// At $10 an hour of incident 6 minutes are $1.
	if _, incidents := g.outage(60_000, 4, 10*policy.Dollar); incidents != policy.Dollar {
		t.Errorf("incidents at an hourly cost: %v, want $1", incidents)
	}
}

func TestPercentile(t *testing.T) {
	list := []int64{10, 20, 30, 40}
	if p := percentile(list, 50); p != 20*time.Millisecond {
		t.Errorf("median %v, want 20ms", p)
	}
	if p := percentile(list, 95); p != 40*time.Millisecond {
		t.Errorf("95th %v, want 40ms", p)
	}
}

// Three incidents of 20 s are a minute, though none of them is; half a minute is one too.
func TestOutagesRoundOnce(t *testing.T) {
	window := billing.Span{From: simtest.Start, To: simtest.Start.Add(time.Hour)}
	g := Readiness{since: simtest.Start, desired: 1, required: 1, ready: 1}
	for i, want := range []int64{0, 1, 1, 1, 2} { // 20, 40, 60, 80, 100 s
		for k, ready := range []int32{0, 1} {
			g.advance(simtest.Start.Add(time.Duration(10*i)*time.Minute+time.Duration(20*k)*time.Second), window)
			g.ready = ready
		}
		past := g // the incident in hand stays open
		past.advance(simtest.Start.Add(time.Duration(10*i+9)*time.Minute), window)
		past.close()
		if o := past.outages; o.OutageMinutes != want || o.Incidents != int64(i+1) || o.Outage != time.Duration(20*(i+1))*time.Second {
			t.Errorf("%d incidents of 20 s are %+v, want %d min", i+1, o, want)
		}
	}
	for outage, want := range map[time.Duration]int64{0: 0, 29_999 * time.Millisecond: 0, 30 * time.Second: 1,
		89_999 * time.Millisecond: 1, 90 * time.Second: 2} {
		if got := result.OutageMinutes(outage); got != want {
			t.Errorf("%v are %d min, want %d", outage, got, want)
		}
	}
}

// A time below what is required comes of Spot where it would not be without Spot.
func TestCauseOfMissingPods(t *testing.T) {
	for name, c := range map[string]struct {
		ready, required int32
		missing         [result.OutageCauses]int32
		want            result.OutageCause
		early           int32 // pods wanted and not yet desired
	}{
		"one moved and one reclaimed, one to spare": {2, 3, [result.OutageCauses]int32{result.CauseReclaim: 1,
			result.CauseMove: 1}, result.CauseReclaim, 0},
		"two moved and one reclaimed": {1, 3, [result.OutageCauses]int32{result.CauseReclaim: 1,
			result.CauseMove: 2}, result.CauseMove, 0},
		"one of each, none to spare": {1, 3, [result.OutageCauses]int32{result.CauseReclaim: 1,
			result.CauseProvisioner: 1}, result.CauseProvisioner, 0},
		"both of Spot": {0, 3, [result.OutageCauses]int32{result.CauseReclaim: 1,
			result.CauseRefused: 2}, result.CauseRefused, 0},
		"as many moved as new": {1, 3, [result.OutageCauses]int32{result.CauseMove: 1,
			result.CauseGrowth: 1}, result.CauseMove, 0},
		"not made yet": {1, 3, [result.OutageCauses]int32{}, result.CauseGrowth, 0},
		"five more are not due yet": {2, 3, [result.OutageCauses]int32{result.CauseProvisioner: 1,
			result.CauseGrowth: 5}, result.CauseProvisioner, 5},
		"four of five are not due yet": {0, 3, [result.OutageCauses]int32{result.CauseProvisioner: 2,
			result.CauseGrowth: 5}, result.CauseProvisioner, 4},
		"refused ones are not due yet": {2, 3, [result.OutageCauses]int32{result.CauseMove: 1,
			result.CauseRefused: 2, result.CauseGrowth: 1}, result.CauseMove, 3},
	} {
		g := Readiness{ready: c.ready, required: c.required, desired: c.required, wanted: c.required + c.early, Missing: c.missing}
		if got := g.cause(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
