package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// TestGauge follows a workload that wants 4, of which 3 are required.
func TestGauge(t *testing.T) {
	window := billing.Span{From: testStart, To: testStart.Add(time.Hour)}
	g := gauge{since: testStart.Add(-time.Hour), desired: 4, required: 3, ready: 4}
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

// TestQueue holds that events come in the order of time, kind and adding.
func TestQueue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var q queue
	var want []event
	for i := range 3000 {
		at, kind := policy.Time(rnd.IntN(300)), eventKind(rnd.IntN(int(evStep)+1))
		q.add(at, kind, int32(i), 0, 0)
		want = append(want, event{at: at, rank: uint64(kind)<<56 | uint64(i+1), a: int32(i)})
	}
	slices.SortFunc(want, func(x, y event) int {
		if x.before(&y) {
			return -1
		}
		return 1
	})
	for i := range want {
		e, ok := q.next(1000)
		if !ok || e != want[i] {
			t.Fatalf("event %d is %+v, want %+v", i, e, want[i])
		}
	}
	if _, ok := q.next(1000); ok || q.now != 1000 {
		t.Errorf("an empty queue gives an event, or leaves the clock at %v", q.now)
	}
}

func TestQueueRefusesThePast(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an event in the past is taken")
		}
	}()
	q := queue{now: 10}
	q.add(9, evStep, 0, 0, 0)
}

func BenchmarkQueue(b *testing.B) {
	var q queue
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		q.add(policy.Time(rnd.IntN(1_000_000)), evStep, 0, 0, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		e, _ := q.next(1 << 60)
		q.add(e.at+policy.Time(rnd.IntN(1_000_000)), evStep, 0, 0, 0)
	}
}
