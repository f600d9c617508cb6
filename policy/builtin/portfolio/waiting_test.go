package portfolio

import (
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// jobsOf makes the pods of [sixteen] those of a job that is due in so many hours: each works
// ten hours, with a checkpoint every hour, and has worked for three and a half.
func jobsOf(t *testing.T, due float64, change func(s *policy.Snapshot)) *planState {
	t.Helper()
	d := planStateOf(t, sixteen)
	s := d.s
	s.Workloads[0].Kind = policy.KindJob
	s.Workloads[0].Work = 160 * time.Hour
	s.Workloads[0].Deadline = s.Now.Add(time.Duration(due * float64(time.Hour)))
	s.Templates[0].Duration, s.Templates[0].Checkpoint = 10*time.Hour, time.Hour
	for i := range s.Pods {
		s.Pods[i].ReadySince = s.Now.Add(-210 * time.Minute)
	}
	if change != nil {
		change(s)
	}
	plan := &policy.Plan{}
	d.e.read(s)
	d = newPlanState(d.e, s, d.pool, plan, policy.PoolMemory{})
	d.look()
	return d
}

// TestSlack: three of the ten hours are safe, so that 7 are left of pods that work side by
// side, and at most 15/16 of 10 more where others may have to wait for a node.
func TestSlack(t *testing.T) {
	d := jobsOf(t, 20, nil)
	if got, want := d.jobs.slack(&d.s.Templates[0]), 20-7-10*15./16; math.Abs(got-want) > 1e-9 {
		t.Errorf("the slack is %v, not %v", got, want)
	}
	d = jobsOf(t, 20, func(s *policy.Snapshot) { s.Templates[0].Gang = 16 })
	if got := d.jobs.slack(&d.s.Templates[0]); math.Abs(got-13) > 1e-9 {
		t.Errorf("the slack of a gang is %v", got)
	}
	d = jobsOf(t, 20, func(s *policy.Snapshot) { s.Templates[0].Gang, s.Pods[3].Phase = 16, policy.PodStarting })
	if got := d.jobs.slack(&d.s.Templates[0]); math.Abs(got-10) > 1e-9 {
		t.Errorf("the slack of a gang of which one pod is missing is %v", got)
	}
	d = jobsOf(t, 20, func(s *policy.Snapshot) { s.Templates[0].Duration = 0 })
	if got := d.jobs.slack(&d.s.Templates[0]); !math.IsInf(got, -1) {
		t.Errorf("a job of which nobody says how long it takes has a slack of %v", got)
	}
}

// TestWaits: a gang is set back by 62.5 minutes at most. It waits for spot while one loss
// leaves it twice that and ten minutes, 2.25 hours, else no more spot is bought. Where it may
// be moved and three nodes were lost in six hours, what it then loses in the seven that are
// left, 3.1 hours, comes on top of what it keeps.
func TestWaits(t *testing.T) {
	for _, x := range []struct {
		due           float64
		stays, lost   bool
		service       bool
		waits, urgent bool
	}{
		{due: 20, waits: true},
		{due: 10.3, waits: true},
		{due: 10.2, urgent: true},
		{due: 13.4, lost: true},
		{due: 13.5, lost: true, waits: true},
		{due: 10.3, lost: true, stays: true, waits: true},
		{due: 20, service: true},
	} {
		d := jobsOf(t, x.due, func(s *policy.Snapshot) {
			s.Templates[0].Gang, s.Pools[0].OnDemandFallback = 16, true
			for i := range s.Pods {
				s.Pods[i].DoNotDisrupt = x.stays
			}
			if x.lost {
				s.Markets[1].Experience.Reclaims, s.Markets[1].Experience.NodeHours = 3, 6
			}
			if x.service {
				s.Workloads[0].Kind = policy.KindDeployment
			}
		})
		if d.waiting.waits != x.waits || d.waiting.urgent != x.urgent {
			t.Errorf("%+v: it waits: %v, and is urgent: %v", x, d.waiting.waits, d.waiting.urgent)
		}
		d.e.exposure.Read(d.s)
		d.steering.steer()
		if len(d.out.Steers) != 1 {
			t.Fatalf("%+v: %d steers", x, len(d.out.Steers))
		}
		st := &d.out.Steers[0]
		spot := false
		for _, id := range st.Markets {
			spot = spot || d.s.Markets[id].Capacity == policy.Spot
		}
		if st.Fallback == x.waits || spot == x.urgent {
			t.Errorf("%+v: falls back: %v, spot: %v", x, st.Fallback, spot)
		}
		if s := withheld(d.s, []*planState{d}); s.Pools[0].OnDemandFallback == x.waits {
			t.Errorf("%+v: what we buy for it falls back: %v", x, s.Pools[0].OnDemandFallback)
		}
	}
}
