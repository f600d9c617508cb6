package asg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// Groups are found over all pages, with their twins, and each instance in its
// market.
func TestDiscovery(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3)).overHTTP()
	for i := range 120 {
		w.cloud.AddGroup(fake.Group{Name: fmt.Sprintf("batch-%03d", i), Max: 5, Desired: i % 2, Zones: zones[:1],
			Types: []string{"c5.xlarge"}, OnDemandPercent: 100,
			Tags: map[string]string{"pool": "web", "k8s.io/cluster-autoscaler/node-template/label/team": "batch",
				"k8s.io/cluster-autoscaler/node-template/taint/dedicated": "batch:NoExecute"}})
		w.cloud.AddGroup(fake.Group{Name: fmt.Sprintf("other-%03d", i), Max: 5, Desired: 1, Zones: zones[:1],
			Types: []string{"c5.xlarge"}, Tags: map[string]string{"pool": "other"}})
	}
	w.cloud.SetFaults(fake.Faults{PageMax: 7})
	w.poll()
	if got := len(w.sink.Machines); got != 66 {
		t.Errorf("%d machines, want 6 and 60", got)
	}
	i := w.cloud.Group("web-spot").Instances[0]
	m := w.sink.Machines[i.ID]
	if want := marketName(region, i.Zone, i.Type, policy.Spot); m.Market != want || m.Pool != "web" ||
		m.ProviderID != "aws:///"+i.Zone+"/"+i.ID ||
		m.Node != nodeName(i.ID) || m.Launched != policy.TimeOf(i.Launched) {
		t.Errorf("machine %+v, want it in %s", m, want)
	}
	i = w.cloud.Group("batch-001").Instances[0]
	m = w.sink.Machines[i.ID]
	if m.Market != "aws/us-east-1/us-east-1a/c5.xlarge/on-demand" || m.Phase != policy.NodeLaunching || m.AtGroupMin ||
		!slices.Equal(m.Labels, []policy.Label{{Key: "team", Value: "batch"}}) ||
		!slices.Equal(m.Taints, []policy.Taint{{Key: "dedicated", Value: "batch", Effect: policy.NoExecute}}) {
		t.Errorf("machine %+v", m)
	}
	if c := w.backend.Conditions("web"); len(c) != 1 || c[0].Status != "True" {
		t.Errorf("conditions %+v", c)
	}
}

// A group of both capacity types names the market of each instance by itself.
func TestDiscoveryOfMixedGroups(t *testing.T) {
	w := newFixture(t, mixedGroup())
	w.poll()
	spot := 0
	for _, m := range w.sink.Machines {
		if strings.HasSuffix(m.Market, "/spot") {
			spot++
		}
	}
	if spot != 2 {
		t.Errorf("%d of 4 instances are in spot markets, want 2", spot)
	}
}

// A group that two pools claim belongs to neither.
func TestGroupConflict(t *testing.T) {
	both := spotGroup(3)
	both.Tags["team"] = "a"
	w := newFixture(t, both, fixedGroup(3))
	p := capacityPool("second")
	p.Spec.Backend.AutoScalingGroups.DiscoveryTags = map[string]string{"team": ""}
	w.must(w.kube.Create(w.ctx(), p))
	wantHeld(t, w.launch("t1", policy.Spot), ReasonNoGroup)
	wantHeld(t, w.backend.Prepare(w.ctx(), w.node(w.cloud.Group("web-spot").Instances[0].ID)), ReasonConflict)
	for _, pool := range []string{"web", "second"} {
		if c := w.backend.Conditions(pool); len(c) != 1 || c[0].Reason != ReasonConflict || !strings.Contains(c[0].Message, "web-spot") {
			t.Errorf("conditions of %s: %+v", pool, c)
		}
	}
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// Refusals are reported once per interval for each market of the group, and trigger a step.
func TestRefusalsAreMet(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.poll()
	w.shutSpot(true)
	w.cloud.SetDesired("web-spot", 5)
	for range 4 {
		w.pass(30 * time.Second)
		w.poll()
	}
	if got := len(w.sink.Met(backend.MetRefusal)); got != 2 {
		t.Errorf("%d refusals, want one for each type in the zone that was asked", got)
	}
	if len(w.sink.Wakes) == 0 {
		t.Error("no step was asked for")
	}
	if err := w.launch("t1", policy.Spot); err == nil || !strings.Contains(err.Error(), "no capacity") {
		t.Errorf("a launch in a group that waits for capacity: %v", err)
	}
	w.restart()
	w.poll()
	if got := len(w.sink.Met(backend.MetRefusal)); got != 2 {
		t.Errorf("%d refusals after a restart, which reports old ones again", got)
	}
	w.shutSpot(false)
	w.pass(2 * time.Minute)
	w.poll()
	if got := len(w.sink.Met(backend.MetLaunch)); got != 2 {
		t.Errorf("%d launches, want 2", got)
	}
}

// An old read drops nothing and flaps nothing; what ended is dropped.
func TestOldReads(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.poll()
	w.cloud.SetFaults(fake.Faults{Seed: 5, Stale: .5, Lag: 10 * time.Second})
	w.pass(15 * time.Second)
	w.cloud.SetDesired("web-spot", 4)
	w.pass(40 * time.Second)
	w.poll()
	known := len(w.sink.Machines)
	for range 20 {
		w.cloud.Advance(time.Second)
		w.poll()
		if n := len(w.sink.Machines); n < known {
			t.Fatalf("%d machines after %d", n, known)
		}
		known = len(w.sink.Machines)
	}
	if known != 7 {
		t.Errorf("%d machines, want 7", known)
	}
	id := w.cloud.Group("web-spot").Instances[0].ID
	w.cloud.Terminate(id)
	for range 12 {
		w.pass(10 * time.Second)
		w.poll()
	}
	if _, there := w.sink.Machines[id]; there {
		t.Error("an instance that ended is still reported")
	}
}

// Polls continue during writes.
func TestPollDuringSwap(t *testing.T) {
	for _, spot := range []fake.Group{spotGroup(3), managedGroup(3)} {
		w := newFixtureOn(t, newStore(), spot, fixedGroup(3))
		b, ctx := w.backend, w.ctx()
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					_ = b.Poll(ctx)
					b.Conditions("web")
				}
			}
		}()
		x := &swapper{fixture: w, token: "t1", source: w.cloud.Group("web-od").Instances[0].ID}
		well := x.run()
		close(stop)
		<-ended
		if !well {
			t.Errorf("%s: the swap failed: %v", spot.Name, x.errs)
		}
		w.settles(spot.Name, x, well)
	}
}

// In shadow mode only read calls are made, whatever happens.
func TestRule13ShadowOnlyReads(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3), managedGroup(2), mixedGroup())
	w.cloud.SetFaults(fake.Faults{Seed: 3, Throttle: .1, Internal: .1, Stale: .1, Lag: 5 * time.Second})
	w.cloud.SetDesired("web-spot", 6)
	for i := range 60 {
		if i == 20 {
			w.shutSpot(true)
			w.cloud.SetDesired("web-spot", 9)
		}
		w.pass(10 * time.Second)
		_ = w.backend.Poll(w.ctx())
		w.backend.Notice(backend.Notice{Machine: w.cloud.Group("managed").Instances[0].ID})
		w.backend.Conditions("web")
	}
	for _, c := range w.cloud.Calls() {
		if c.Write() || !slices.Contains(ReadActions, c.Action) {
			t.Errorf("%s was called", c.Action)
		}
	}
}

// While AWS throttles the polls come further apart, and nearer again afterwards.
func TestPollsGiveWay(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	ctx, stop := context.WithCancel(w.ctx())
	waits := &waitClock{serverClock: serverClock{s: w.cloud}}
	waits.each = func(n int) {
		switch n {
		case 2:
			w.cloud.SetFaults(fake.Faults{Deny: map[string]string{"autoscaling:DescribeAutoScalingGroups": "Throttling"}})
		case 8:
			w.cloud.SetFaults(fake.Faults{})
		case 16:
			stop()
		}
	}
	w.cfg.Clock = waits
	w.restart()
	w.must(w.backend.Run(ctx))
	for i, d := range waits.waits {
		low, high := w.cfg.Poll*4/5, w.cfg.Poll*6/5
		if i == 6 || i == 7 {
			low, high = w.cfg.PollMax*4/5, w.cfg.PollMax*6/5
		}
		if (i < 2 || i == 6 || i == 7 || i > 13) && (d < low || d > high) {
			t.Errorf("wait %d is %v, want it within %v and %v", i, d, low, high)
		}
	}
	if waits.waits[0] == waits.waits[1] {
		t.Error("two waits in a row are equal: there is no jitter")
	}
}

// A waitClock has timers that are over at once, and remembers how long they were.
type waitClock struct {
	serverClock
	waits []time.Duration
	each  func(n int)
}

func (c *waitClock) NewTimer(d time.Duration) clock.Timer {
	c.waits = append(c.waits, d)
	c.each(len(c.waits))
	return c.RealClock.NewTimer(0)
}

func TestConfig(t *testing.T) {
	for name, wrong := range map[string]func(*Config){
		"region":             func(c *Config) { c.Region = "" },
		"endpoint":           func(c *Config) { c.Endpoint = "cloud" },
		"poll":               func(c *Config) { c.Poll = 0 },
		"time to a Node":     func(c *Config) { c.JoinMax = time.Second },
		"launches in flight": func(c *Config) { c.InFlightMax = 0 },
	} {
		c := DefaultConfig()
		c.Region = region
		wrong(&c)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is written down of a launch is read as it was.
func TestLaunchTag(t *testing.T) {
	for _, l := range []launch{
		{token: "18c-00ff-0", at: 1_700_000_000_000, from: 3, after: noActivity},
		{token: "x", at: 1_700_000_000_000, from: 99, after: "8f3c21d0-1111-4222-8333-0123456789ab", instance: "i-0123456789abcdef0",
			replaces: true, protected: true, abandoned: true},
	} {
		got, ok := decodeLaunch(TagLaunch+l.token, l.encode())
		if !ok || got != l {
			t.Errorf("%q is read as %+v", l.encode(), got)
		}
		if n := len(l.encode()); n > 256 {
			t.Errorf("%d characters do not fit into a tag", n)
		}
	}
	for _, key := range []string{"pool", TagLaunch} {
		if _, ok := decodeLaunch(key, "at=1"); ok {
			t.Errorf("%q is read as a launch", key)
		}
	}
	if _, ok := decodeLaunch(TagLaunch+"x", "at=yesterday"); ok {
		t.Error("a launch without a time is read")
	}
}
