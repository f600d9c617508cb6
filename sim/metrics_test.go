package sim

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// TestGauge follows a workload that wants 4, of which 3 are required.
func TestGauge(t *testing.T) {
	window := billing.Span{From: testStart, To: testStart.Add(time.Hour)}
	g := readiness{since: testStart.Add(-time.Hour), desired: 4, required: 3, ready: 4}
	set := func(minute int, ready int32) {
		g.advance(testStart.Add(time.Duration(minute)*time.Minute), window)
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
	longest := Incident{Began: testStart, Outage: 5 * time.Minute, Pods: 2, Cause: CauseGrowth}
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
