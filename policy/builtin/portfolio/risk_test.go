package portfolio

import (
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

const sixteen = `
type a.4 4
type b.4 4
type c.4 4
market z a.4 on-demand 0.20
market z a.4 spot 0.06
market z b.4 spot 0.06
market z c.4 spot 0.06
pool web steer=1
app api 1 pdb=8 replicas=16
node n1 web z a.4 spot
node n2 web z a.4 spot
node n3 web z b.4 spot
node n4 web z b.4 spot
pod api n1 4
pod api n2 4
pod api n3 4
pod api n4 4`

// TestShockIsBridged loses all Spot nodes twice within a day: a service for which half of its pods
// suffice is then kept nearly half on demand, and returns to Spot after days without a loss.
func TestShockIsBridged(t *testing.T) {
	s, m, err := policytest.Parse(sixteen)
	if err != nil {
		t.Fatal(err)
	}
	s.Templates[0].OutagePenalty = 24
	p, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	step := func(d time.Duration) float64 {
		for end := s.Now.Add(d); s.Now < end; {
			s.Now = s.Now.Add(10 * time.Minute)
			for i := range s.Markets {
				s.Markets[i].Experience.At = s.Now
			}
			_, m = p.Decide(s, m)
		}
		return m.Pool("web").Target
	}
	if got := step(time.Hour); got != 1 {
		t.Fatalf("before any shock the share is %v", got)
	}
	for range 2 {
		s.Markets[1].Experience.Reclaims += 2
		s.Markets[2].Experience.Reclaims += 2
		step(6 * time.Hour)
	}
	if got := m.Pool("web").Target; !(got > 0.2 && got <= 0.5) {
		t.Errorf("after two shocks the share is %v", got)
	}
	if got := step(96 * time.Hour); got != 1 {
		t.Errorf("after four quiet days the share is %v", got)
	}
}

// TestShockCounts: two losses within an hour are one shock, and half a day later it
// counts half.
func TestShockCounts(t *testing.T) {
	d := planStateOf(t, sixteen)
	d.memory.Shocks = policy.Shocks{}
	d.reclaims.meetShock(0.5)
	d.s.Now = d.s.Now.Add(30 * time.Minute)
	d.reclaims.meetShock(0.75)
	if x := d.memory.Shocks; x.Count != 1 || x.Depth != 0.75 {
		t.Errorf("within an hour there are %v shocks as deep as %v", x.Count, x.Depth)
	}
	d.s.Now = d.memory.Shocks.At.Add(12 * time.Hour)
	if got, want := d.reclaims.shockRate(), 0.5*math.Ln2/12; math.Abs(got-want) > 1e-12 {
		t.Errorf("half a day later %v shocks an hour are expected, not %v", got, want)
	}
}

// TestShockLoss: a pod is worth $0.05 an hour and serves again after 2.5 minutes. Of
// 16 pods 8 may miss, so that the loss of all costs the penalty of four hours for 8.
func TestShockLoss(t *testing.T) {
	d := planStateOf(t, sixteen)
	late := 16 * 0.05 * 2.5 / 30
	if got, want := d.losses.shock(1, 1), late+8*0.05*4; math.Abs(got-want) > 1e-9 {
		t.Errorf("the loss of all costs %v, not %v", got, want)
	}
	if got := d.losses.shock(1, 0.25); got >= late {
		t.Errorf("the loss of a quarter, which can be spared, costs %v", got)
	}
	if d.losses.shock(1, 0) != 0 {
		t.Errorf("the loss of nothing costs %v", d.losses.shock(1, 0))
	}
}

// again is what passes until a pod of the tests serves elsewhere, in hours: 2.5 minutes.
const again = 2.5 / 60

// TestJobLoss: the work of a job that is lost at an unknown instant is half of it at a
// small hazard, and more at a large one; a checkpoint bounds it.
func TestJobLoss(t *testing.T) {
	d := planStateOf(t, sixteen)
	w := &d.s.Workloads[0]
	w.Kind = policy.KindJob
	tmpl := &d.s.Templates[0]
	tmpl.Duration = 20 * time.Hour
	p := &d.s.Pods[0]
	p.ReadySince = d.s.Now
	d.reclaims.hazard = 1e-6
	if got := lossOf(d, p); math.Abs(got-0.05*(10+again)) > 1e-3 {
		t.Errorf("at a small hazard the loss costs %v", got)
	}
	d.reclaims.hazard = 0.1
	if got := lossOf(d, p); got < 0.05*20 {
		t.Errorf("at a large hazard the loss costs %v", got)
	}
	tmpl.Checkpoint = time.Hour
	if got := lossOf(d, p); got > 0.05*0.6 {
		t.Errorf("with a checkpoint every hour the loss costs %v", got)
	}
	tmpl.Checkpoint, d.reclaims.hazard = 0, 1e-6
	w.Deadline = d.s.Now.Add(23 * time.Hour)
	if got, most := lossOf(d, p), 0.05*10.0; got <= most {
		t.Errorf("a job that would be late loses %v only", got)
	}
}

func lossOf(d *planState, p *policy.Pod) float64 {
	work, late := d.jobs.loss(p)
	return work + late
}

// TestGangLoss: with a node of a gang all of the gang is lost, once. Of 16 pods that
// all work only together, four to a node, one is taken from each of two markets where four
// nodes are lost, so that a node costs half of the work of 16; half of all pods costs all of
// it, while 16 pods on their own lose the work of 4 and of 8.
func TestGangLoss(t *testing.T) {
	sums := map[int32][3]float64{}
	for _, gang := range []int32{0, 16} {
		d := planStateOf(t, sixteen)
		d.s.Workloads[0].Kind = policy.KindJob
		d.s.Templates[0].Duration, d.s.Templates[0].Gang = 20*time.Hour, gang
		nodes := map[policy.NodeID]bool{}
		for i := range d.s.Pods {
			d.s.Pods[i].ReadySince = d.s.Now.Add(-3 * time.Hour)
			nodes[d.s.Pods[i].Node] = true
		}
		d.e.gangs.read(d.s)
		d.reclaims.hazard = 1e-9
		j := readJobs(readProgress(d.poolContext), d.perPod, d.reclaims)
		sums[gang] = [3]float64{j.all / float64(len(nodes)), j.shock(.5), j.redone(d.s.Pods[:1])}
		if per := float64(len(d.s.Pods)) / float64(len(nodes)); len(d.s.Pods) != 16 ||
			gang == 0 && math.Abs(sums[0][0]-per*0.05*(10+again)) > 1e-3 {
			t.Fatalf("%d pods on %d nodes lose %v a node on their own", len(d.s.Pods), len(nodes), sums[0][0])
		}
		if gang == 16 {
			mates := float64(len(d.s.Pods)) / float64(len(nodes))
			if math.Abs(sums[16][0]-8*0.05*(10+again)) > 1e-3 || math.Abs(sums[16][1]-16*0.05*(10+again)) > 1e-3 ||
				math.Abs(sums[16][2]-sums[0][2]*16/mates) > 1e-9 {
				t.Errorf("a node of the gang costs %v, half of it %v and the eviction of one pod %v; on their own %v",
					sums[16][0], sums[16][1], sums[16][2], sums[0])
			}
		}
	}
	if math.Abs(sums[0][1]-8*0.05*(10+again)) > 1e-3 {
		t.Errorf("half of the pods on their own lose %v", sums[0][1])
	}
}

// TestSingleMoves: the only pod of a service leaves an expensive node if it is back within a
// minute, according to its stated or its last startup time, and stays if it would not be.
func TestSingleMoves(t *testing.T) {
	for _, x := range []struct {
		startup, took time.Duration
		want          int
	}{{startup: 30 * time.Second, took: time.Hour, want: 1}, {startup: time.Minute}, {took: 30 * time.Second, want: 1}, {took: time.Minute}} {
		s, m, err := policytest.Parse(`
type a.4 4
market y a.4 spot 0.03
market z a.4 on-demand 0.20
market z a.4 spot 0.03
pool web steer=1
app queue 1 replicas=1
node n1 web z a.4 on-demand
pod queue n1`)
		if err != nil {
			t.Fatal(err)
		}
		s.Templates[0].Startup = x.startup
		s.Pods[0].ReadySince = s.Pods[0].Bound.Add(x.took)
		p, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := p.Decide(s, m)
		if len(plan.Drains) != x.want {
			t.Errorf("with a start-up of %v that took %v there are %d moves:\n%s", x.startup, x.took, len(plan.Drains), plan.Format(s))
		}
	}
}

// TestUnlike: what a pool met in all its markets together counts for those that it
// does not know: ten reclaims in 100 node-hours where one in 30,000 was foretold.
func TestUnlike(t *testing.T) {
	d := planStateOf(t, sixteen)
	for _, id := range []policy.MarketID{1, 2, 3} {
		d.s.Markets[id].Forecast.Hazard = 3e-5
	}
	d.s.Markets[1].Experience.Reclaims, d.s.Markets[1].Experience.NodeHours = 10, 100
	d.reclaims = readReclaims(d.poolContext)
	if want := (unlike + 10) / (unlike/3e-5 + 100); math.Abs(d.reclaims.hazard-want) > 1e-12 {
		t.Errorf("the hazard is %v, not %v", d.reclaims.hazard, want)
	}
	if d.prices.price(1, d.reclaims.hazard); d.prices.costs[3] < 0.06+0.012*4 {
		t.Errorf("the market that is not known costs %v", d.prices.costs[3])
	}
}

// TestAnchored: the single pod on demand is never taken to spot, so no shock costs
// its penalty; on spot it does.
func TestAnchored(t *testing.T) {
	for market, want := range map[string]int{"on-demand": 0, "spot": 1} {
		d := planStateOf(t, `
type a.4 4
market z a.4 on-demand 0.20
market z a.4 spot 0.03
pool web steer=1
app queue 1 replicas=1
node n1 web z a.4 `+market+`
pod queue n1`)
		if len(d.losses.services) != want {
			t.Errorf("on %s %d services can be lost, not %d", market, len(d.losses.services), want)
		}
	}
}

// TestJobsRest: a job that has worked for ten of twelve hours stays where a reclaim
// is unlikely, and one that has just begun is moved.
func TestJobsRest(t *testing.T) {
	d := planStateOf(t, sixteen)
	d.s.Workloads[0].Kind = policy.KindJob
	d.s.Templates[0].Duration = 12 * time.Hour
	for i := range d.s.Pods {
		d.s.Pods[i].ReadySince = d.s.Now.Add(-10 * time.Hour)
		if d.s.Pods[i].Node == 0 {
			d.s.Pods[i].ReadySince = d.s.Now
		}
	}
	d.reclaims.hazard = 0.1
	if got := d.resting(); len(got) != 3 || got[0] != "n2" {
		t.Errorf("the nodes %v rest", got)
	}
}
