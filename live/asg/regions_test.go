package asg

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

const farRegion = "us-west-2"

var farZones = []string{"us-west-2a", "us-west-2b", "us-west-2c"}

// Two are two regions of one cluster, each with a cloud of its own, and what works
// on both.
type two struct {
	*fixture // the near one
	far      *fixture
	both     *Regions
}

// byRegion takes a request to the cloud of the region that it was signed for.
type byRegion map[string]sdk.HTTPClient

func (b byRegion) Do(r *http.Request) (*http.Response, error) {
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	if len(scope) < 4 || b[scope[2]] == nil {
		return nil, errors.New("no such host")
	}
	return b[scope[2]].Do(r)
}

// farGroup is g in the far region.
func farGroup(g fake.Group) fake.Group {
	g.Zones = farZones
	return g
}

// newTwo returns regions with groups of the same names.
func newTwo(t *testing.T, near, far []fake.Group) *two {
	t.Helper()
	x := &two{fixture: newFixture(t, near...)}
	x.far = &fixture{t: t, cloud: fake.New(farRegion, begin), kube: x.kube, sink: x.sink, join: x.join, service: map[string]time.Time{}}
	for _, g := range far {
		x.far.cloud.AddGroup(ofCluster(farGroup(g)))
	}
	x.far.cloud.SetPolicy(allows(farRegion))
	x.far.joinNodes(0)
	x.base.HTTPClient = byRegion{region: x.cloud, farRegion: x.far.cloud}
	x.cfg.Log = slog.New(slog.DiscardHandler)
	x.anew()
	return x
}

// anew replaces the backend by one that knows nothing.
func (x *two) anew() {
	x.t.Helper()
	both, err := NewRegions(x.cfg, []string{farRegion, region, farRegion}, x.base, x.kube, x.kube, x.sink)
	x.must(err)
	x.both = both
}

func (x *two) look() {
	x.t.Helper()
	for _, b := range x.both.all {
		x.must(b.Poll(x.ctx()))
	}
}

func (x *two) wait(d time.Duration) {
	x.t.Helper()
	for ; d > 0; d -= 5 * time.Second {
		x.pass(5 * time.Second)
		x.far.pass(5 * time.Second)
	}
}

// ask requests a Spot node in the regions, in that order.
func (x *two) ask(token string, regions ...string) error {
	s := &policy.Snapshot{Now: policy.TimeOf(x.cloud.Now()), Pools: []policy.Pool{{Name: "web"}},
		Types: []policy.InstanceType{{Provider: "aws", Name: "m5.large"}}}
	l := &policy.Launch{Token: token, Replaces: 0}
	for _, r := range regions {
		all := zones
		if r == farRegion {
			all = farZones
		}
		for _, zone := range all {
			l.Markets = append(l.Markets, policy.MarketID(len(s.Markets)))
			s.Markets = append(s.Markets, policy.Market{ID: policy.MarketID(len(s.Markets)), Provider: "aws", Region: r,
				Zone: policy.ZoneID(len(s.Zones)), Capacity: policy.Spot})
			s.Zones = append(s.Zones, zone)
		}
	}
	return x.both.Launch(x.ctx(), s, l)
}

// sizes fails the test unless the desired sizes of the Spot groups are near and far.
func (x *two) sizes(near, far int) {
	x.t.Helper()
	if a, b := x.cloud.Group("web-spot").Desired, x.far.cloud.Group("web-spot").Desired; a != near || b != far {
		x.t.Errorf("the groups are to hold %d and %d, want %d and %d", a, b, near, far)
	}
}

func twins() []fake.Group { return []fake.Group{spotGroup(3), fixedGroup(3)} }

// Groups of one name in two regions are two groups, and each instance is in a market
// of its own region.
func TestRegionsAreFoundEach(t *testing.T) {
	x := newTwo(t, twins(), twins())
	x.look()
	if got := len(x.sink.Machines); got != 12 {
		t.Errorf("%d machines, want 12", got)
	}
	i := x.far.cloud.Group("web-spot").Instances[0]
	if m := x.sink.Machines[i.ID]; m.Market != marketName(farRegion, i.Zone, i.Type, policy.Spot) || m.Node != nodeName(i.ID) {
		t.Errorf("machine %+v", m)
	}
	if c := x.both.Conditions("web"); len(c) != 1 || c[0].Status != metav1.ConditionTrue {
		t.Errorf("conditions %+v", c)
	}
}

// A launch goes to the region that the markets name first, or to the next one if the first may not
// grow. It is requested once, even if the first region may grow again and a new process has no
// state.
func TestRegionsLaunchOnce(t *testing.T) {
	x := newTwo(t, twins(), twins())
	x.must(x.ask("t1", farRegion, region))
	x.sizes(3, 4)
	x.far.cloud.Edit("web-spot", func(g *fake.Group) { g.Max = 4 })
	x.must(x.ask("t2", farRegion, region))
	x.sizes(4, 4)
	x.far.cloud.Edit("web-spot", func(g *fake.Group) { g.Max = 20 })
	x.wait(3 * time.Minute)
	for range 2 {
		x.must(x.ask("t1", farRegion, region))
		x.must(x.ask("t2", farRegion, region))
		x.sizes(4, 4)
		x.anew()
	}
}

// Where all may not grow the reason of one is reported, and a lack of capacity only where
// nothing else is in the way.
func TestRegionsLaunchHeld(t *testing.T) {
	x := newTwo(t, twins(), []fake.Group{fixedGroup(3)})
	wantHeld(t, x.ask("t1", farRegion), ReasonNoGroup)
	x.cloud.Edit("web-spot", func(g *fake.Group) { g.Max = 3 })
	err := x.ask("t1", farRegion, region)
	wantHeld(t, err, ReasonAtMax)
	if err == nil || !strings.Contains(err.Error(), region) {
		t.Errorf("%v does not name the region", err)
	}
	x.cloud.Edit("web-spot", func(g *fake.Group) { g.Max, g.Desired = 20, 4 })
	for _, zone := range zones {
		for _, kind := range spotGroup(0).Types {
			x.cloud.Shut(fake.Market(zone, kind, true))
		}
	}
	x.wait(2 * time.Minute)
	if err := x.ask("t1", farRegion, region); !errors.Is(err, driver.ErrNoCapacity) {
		t.Errorf("without capacity: %v", err)
	}
}

// A region that does not answer holds up no launch in the other; only a launch that may have been
// requested there waits.
func TestRegionsThatDoNotAnswer(t *testing.T) {
	x := newTwo(t, twins(), twins())
	gone := errors.New("no route to host")
	x.far.cloud.SetBefore(func(fake.Call) error { return gone })
	if err := x.ask("t1", farRegion, region); err == nil || !strings.Contains(err.Error(), farRegion) {
		t.Errorf("a launch that names the region which is away: %v", err)
	}
	x.sizes(3, 3)
	x.must(x.ask("t2", region))
	x.sizes(4, 3)
	s := x.snapshot()
	if err := x.both.Steer(x.ctx(), s, &policy.Steer{Share: 0.5}); err == nil || !strings.Contains(err.Error(), farRegion) {
		t.Errorf("a steer reports the region which is away: %v", err)
	}
	if got := x.cloud.Group("web-od").Tags[TagSteer]; got == "" {
		t.Error("the region that answers was not steered")
	}
	c := x.both.Conditions("web")
	if len(c) != 1 || c[0].Status != metav1.ConditionFalse || !strings.HasPrefix(c[0].Message, farRegion+": ") {
		t.Errorf("conditions %+v", c)
	}
	if _, err := x.both.Replaced(x.ctx(), []string{"unknown"}); err == nil {
		t.Error("a launch that nobody knows failed though a region was not asked")
	}
	x.far.cloud.SetBefore(nil)
	x.must(x.ask("t1", farRegion, region))
	x.sizes(4, 4)
}

// A swap may span regions: while it lasts nothing of it is tidied away, and
// afterwards nothing is left in either.
func TestRegionsSwapAcross(t *testing.T) {
	x := newTwo(t, twins(), twins())
	source := x.node(x.cloud.Group("web-od").Instances[0].ID)
	x.must(x.ask("t1", farRegion))
	x.must(x.both.Prepare(x.ctx(), source))
	how := backend.ReplacementWaiting
	for range 60 {
		var err error
		how, err = x.both.Replaced(x.ctx(), []string{"t1"})
		x.must(err)
		x.must(x.both.Cleanup(x.ctx(), []string{source.Name}, []string{"t1"}))
		if how == backend.ReplacementReady {
			break
		}
		x.wait(5 * time.Second)
	}
	if how != backend.ReplacementReady {
		t.Fatalf("the replacement is %v after five minutes", how)
	}
	came := x.far.node(x.both.all[1].groups.get("web-spot").launch("t1").instance)
	if came.Annotations[AnnotationSwap] != swapReplacement {
		t.Errorf("the other region has tidied the replacement away: %v", came.Annotations)
	}
	x.must(x.both.Release(x.ctx(), source))
	x.must(x.both.Settle(x.ctx(), []string{"t1"}))
	x.wait(3 * time.Minute)
	x.clean()
	x.far.clean()
	if got := x.cloud.Group("web-od").Desired; got != 2 {
		t.Errorf("the group of the node that went is to hold %d, want 2", got)
	}
	x.sizes(3, 4)
}

// A swap across regions is taken back in both.
func TestRegionsUndoAcross(t *testing.T) {
	x := newTwo(t, twins(), twins())
	source := x.node(x.cloud.Group("web-od").Instances[0].ID)
	x.far.unready = true
	x.must(x.ask("t1", farRegion))
	x.must(x.both.Prepare(x.ctx(), source))
	for range 20 {
		if _, err := x.both.Replaced(x.ctx(), []string{"t1"}); err != nil {
			t.Fatal(err)
		}
		x.wait(5 * time.Second)
	}
	x.must(x.both.Undo(x.ctx(), source, []string{"t1", "unknown"}))
	x.wait(3 * time.Minute)
	x.look()
	x.clean()
	x.far.clean()
	x.sizes(3, 3)
	if len(x.far.cloud.Ended()) != 1 || len(x.cloud.Ended()) != 0 {
		t.Errorf("ended %v and %v, want the one that did not become ready", x.cloud.Ended(), x.far.cloud.Ended())
	}
}

// The region of a node is given by its label, else by its zone. A node of another region is held.
func TestRegionsOfNodes(t *testing.T) {
	for _, c := range []struct {
		label, provider string
		want            bool
	}{
		{"", "aws:///us-west-2a/i-1", true}, {"", "aws:///us-west-2-lax-1a/i-1", true}, {"", "aws:///us-east-1a/i-1", false},
		{farRegion, "aws:///somewhere/i-1", true}, {"eu-west-1", "aws:///us-west-2a/i-1", false}, {"", "", true},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Spec: corev1.NodeSpec{ProviderID: c.provider}}
		if c.label != "" {
			n.Labels[corev1.LabelTopologyRegion] = c.label
		}
		if got := within(farRegion, n); got != c.want {
			t.Errorf("a node with label %q and provider ID %q lies in %s: %t", c.label, c.provider, farRegion, got)
		}
	}
	x := newTwo(t, twins(), twins())
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Labels: map[string]string{corev1.LabelTopologyRegion: "eu-west-1"}}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-1"}}
	for name, err := range map[string]error{"Prepare": x.both.Prepare(x.ctx(), n), "Release": x.both.Release(x.ctx(), n)} {
		wantHeld(t, err, ReasonNoGroup)
		if err == nil || !strings.Contains(err.Error(), "eu-west-1") {
			t.Errorf("%s: %v does not name the region", name, err)
		}
	}
	if err := x.both.Undo(x.ctx(), n, nil); err != nil {
		t.Errorf("nothing is to be undone: %v", err)
	}
}

// A pool without a group in one region has a condition only where it has none in any.
func TestRegionsWithoutGroups(t *testing.T) {
	x := newTwo(t, twins(), nil)
	x.look()
	if c := x.both.Conditions("web"); len(c) != 1 || c[0].Status != metav1.ConditionTrue {
		t.Errorf("conditions %+v", c)
	}
	x.must(x.both.Steer(x.ctx(), x.snapshot(), &policy.Steer{Share: 0.5}))
	x.cloud.DropGroup("web-od")
	x.cloud.DropGroup("web-spot")
	x.look()
	if c := x.both.Conditions("web"); len(c) != 1 || c[0].Reason != ReasonNoGroup {
		t.Errorf("conditions %+v", c)
	}
	wantHeld(t, x.both.Steer(x.ctx(), x.snapshot(), &policy.Steer{Share: 0.6}), ReasonNoGroup)
}

// Notices go to the region of the instance; EKS drains its own. What is said of
// instances of others is not kept for ever.
func TestRegionsNotices(t *testing.T) {
	x := newTwo(t, twins(), []fake.Group{managedGroup(3)})
	x.look()
	id := x.far.cloud.Group("managed").Instances[0].ID
	if by := x.both.Notice(backend.Notice{Machine: id, At: policy.TimeOf(x.cloud.Now())}); by != policy.ActorEKS {
		t.Errorf("a recommendation for a managed node group: %v", by)
	}
	stranger := backend.Notice{Machine: "i-0000000000000beef", At: policy.TimeOf(x.cloud.Now())}
	stranger.ReclaimAt = stranger.At.Add(2 * time.Minute)
	if by := x.both.Notice(stranger); by != policy.ActorNone {
		t.Errorf("a notice for an instance of nobody: %v", by)
	}
	x.wait(20 * time.Minute)
	x.look()
	for _, b := range x.both.all {
		if len(b.instances.reclaims) > 0 {
			t.Errorf("%s keeps the notices %v", b.cfg.Region, b.instances.reclaims)
		}
	}
	if got := x.both.all[1].instances.advised; len(got) != 1 {
		t.Errorf("the recommendation for an instance of ours is kept as %v", got)
	}
}

// A configuration without a region is refused.
func TestRegionsConfig(t *testing.T) {
	x := newTwo(t, nil, nil)
	for _, regions := range [][]string{nil, {""}, {region, ""}} {
		if _, err := NewRegions(x.cfg, regions, x.base, x.kube, x.kube, x.sink); err == nil {
			t.Errorf("regions %q are taken", regions)
		}
	}
	if got := x.both.names(); got != region+", "+farRegion {
		t.Errorf("regions %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if slices.ContainsFunc(x.both.all, func(b *Backend) bool { return b.Start(ctx) != nil }) {
		t.Error("the end of the context is an error")
	}
}
