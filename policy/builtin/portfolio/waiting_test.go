package portfolio

import (
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// jobsOf makes the pods of [sixteen] those of a job whose deadline is in due hours: each works ten
// hours, with a checkpoint every hour, and has worked for three and a half.
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

// TestWaits: a loss sets a gang back by 62.5 minutes at most. Spot is bought while, after one loss,
// twice that and ten minutes are left to spare, 2.25 hours. A gang that may not be moved waits for
// Spot from there on. Any other gang also reserves what it loses in the seven hours of work that
// are left, twice 62.5 minutes for each loss. Its four nodes are lost two at a time, each pair once
// in 2.7 hours if nothing is known: 10.80 hours. After three losses in six hours the reserve is
// 13.41 hours.
func TestWaits(t *testing.T) {
	for _, x := range []struct {
		due           float64
		stays, lost   bool
		service       bool
		waits, urgent bool
	}{
		{due: 21.2, waits: true},
		{due: 21.0},
		{due: 10.3},
		{due: 10.2, urgent: true},
		{due: 23.6, lost: true},
		{due: 23.8, lost: true, waits: true},
		{due: 10.3, lost: true, stays: true, waits: true},
		{due: 30, service: true},
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

// TestGangIdles: while a gang waits for some of its pods the others do nothing on nodes that
// are paid for, at $0.015 an hour for a pod, where each of those costs $0.035 more on demand
// than on spot. It waits for 5 of 16, and buys 4 on demand.
func TestGangIdles(t *testing.T) {
	for missing, want := range map[int]bool{1: false, 4: false, 5: true, 16: true} {
		d := jobsOf(t, 30, func(s *policy.Snapshot) {
			s.Templates[0].Gang, s.Pools[0].OnDemandFallback = 16, true
			for i := range s.Pods {
				s.Pods[i].DoNotDisrupt = true
				if i < missing {
					s.Pods[i].Node, s.Pods[i].Nominated, s.Pods[i].Phase = policy.None, policy.None, policy.PodPending
				}
			}
		})
		if d.waiting.waits != want {
			t.Errorf("with %d pods missing it waits: %v", missing, d.waiting.waits)
		}
	}
}

// TestGangTogether: of a gang on two nodes in each of two markets, two at a time are taken to
// be lost until more is known, and after three losses of one (2+3)/4 of them.
func TestGangTogether(t *testing.T) {
	d := jobsOf(t, 30, func(s *policy.Snapshot) { s.Templates[0].Gang = 16 })
	if got := d.jobs.losses(&d.s.Templates[0]); got != 2 {
		t.Errorf("at first it is lost %v times as often as a node", got)
	}
	d.memory.Shocks.Spans, d.memory.Shocks.Taken = 3, 3
	if got := d.jobs.losses(&d.s.Templates[0]); math.Abs(got-4/1.25) > 1e-9 {
		t.Errorf("after three losses of one node it is lost %v times as often as a node", got)
	}
}

// TestRedo: the work of a job that has time is done again at what spot costs, and else at what
// the pod costs on demand.
func TestRedo(t *testing.T) {
	for due, want := range map[float64]float64{30: 0.015, 9: 0.05} {
		d := jobsOf(t, due, func(s *policy.Snapshot) { s.Templates[0].Gang = 16 })
		if got := d.perPod.redo[0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("an hour of the work of a job that is due in %v costs %v, not %v", due, got, want)
		}
	}
}

// TestPace: a job of one pod has 7 of its hours left and may be set back by 62.5 minutes. Due
// in 18.25 hours it can spare 9, so that it moves at most every 1.62 hours, and not within a
// quarter of that since it began: 24.3 minutes.
func TestPace(t *testing.T) {
	for _, x := range []struct {
		ago   time.Duration
		tight bool
	}{{24 * time.Minute, true}, {25 * time.Minute, false}} {
		d := jobsOf(t, 18.25, func(s *policy.Snapshot) { s.Templates[0].Gang = 16 })
		pod := d.s.Pods[0]
		pod.ReadySince = d.s.Now.Add(-x.ago)
		if got := d.jobs.tight([]policy.Pod{pod}); got != x.tight {
			t.Errorf("%v after it began a move is refused: %v", x.ago, got)
		}
	}
}

// TestForgetsRefused: a node is left alone for longer each time that its drain did not end it,
// but not for the spot that was refused in its place.
func TestForgetsRefused(t *testing.T) {
	for _, x := range []struct {
		refused time.Duration // ago; the move was ten minutes ago
		left    int
	}{{10 * time.Minute, 0}, {11 * time.Minute, 1}} {
		d := jobsOf(t, 30, func(s *policy.Snapshot) { s.Markets[1].Experience.Refused = s.Now.Add(-x.refused) })
		d.memory.Moved = d.s.Now.Add(-10 * time.Minute)
		d.memory.Backoff = []policy.Backoff{{Node: "n1", Until: d.s.Now.Add(time.Hour), Tries: 2}}
		if d.jobs.forgetRefused(); len(d.memory.Backoff) != x.left {
			t.Errorf("refused %v ago: %d nodes are left alone", x.refused, len(d.memory.Backoff))
		}
	}
}
