package rackspace_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A launch is a ledger entry, a node pool of one with the pool's labels and taints,
// and after some minutes a node.
func TestLaunchToNode(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 42_000, "gp.vs1.medium-iad")
	n := w.only()
	if n.Spec.Pool != poolName || n.Spec.Token != "t1" || n.Spec.BidPerHour != "0.045" || n.Status.Phase != v1alpha1.SpotNodeProvisioning {
		t.Errorf("the ledger has %+v, phase %s", n.Spec, n.Status.Phase)
	}
	if m := w.sink.Machines[n.Name]; m.Phase != policy.NodeLaunching || m.Token != "t1" || m.Bid != 45_000 || m.Pool != poolName {
		t.Errorf("the sink has %+v", m)
	}
	w.mustRun(9 * time.Minute)
	names := w.nodes()
	if len(names) != 1 {
		t.Fatalf("there are nodes %v, want one", names)
	}
	node := w.node(names[0])
	if node.Labels["team"] != "web" || len(node.Spec.Taints) != 1 || node.Labels["spotter.dev/spotnode"] != n.Name {
		t.Errorf("the node has labels %v and taints %v", node.Labels, node.Spec.Taints)
	}
	n = w.only()
	if n.Status.Phase != v1alpha1.SpotNodeRunning || n.Status.NodeName != node.Name || n.Status.ProviderID != node.Spec.ProviderID {
		t.Errorf("the ledger has status %+v", n.Status)
	}
	if m := w.sink.Machines[n.Name]; m.Node != node.Name || m.Phase != policy.NodeRegistered || m.ProviderID == "" {
		t.Errorf("the sink has %+v", m)
	}
	if got := len(w.sink.Met(backend.MetLaunch)); got != 1 {
		t.Errorf("%d launches were met, want 1", got)
	}
}

func TestLaunchOnDemand(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 0, "gp.vs1.medium-iad")
	w.server.SetPrice("gp.vs1.medium-iad", 900_000)
	w.mustRun(30 * time.Minute)
	if len(w.nodes()) != 1 || len(w.sink.Notices) != 0 || w.only().Spec.BidPerHour != "" {
		t.Errorf("nodes %v, notices %v, bid %q: want one node that no auction takes", w.nodes(), w.sink.Notices, w.only().Spec.BidPerHour)
	}
	if err := w.launch("t2", 0, "ch.vs1.large-iad"); !errors.Is(err, driver.ErrNoCapacity) {
		t.Errorf("a class that is not sold on demand gives %v, want ErrNoCapacity", err)
	}
}

// The cheapest market that takes the bid is asked; those that cost more than the bid
// are not.
func TestLaunchChoosesCheapest(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 25_000, "gp.vs1.large-iad", "ch.vs1.large-iad", "gp.vs1.medium-iad")
	if got := w.only().Spec.Market; !strings.Contains(got, "gp.vs1.medium-iad") {
		t.Errorf("bought in %s, want the cheapest", got)
	}
	if err := w.launch("t2", 25_000, "gp.vs1.large-iad"); !errors.Is(err, driver.ErrNoCapacity) {
		t.Errorf("a bid below the price gives %v, want ErrNoCapacity", err)
	}
}

func TestLaunchWrong(t *testing.T) {
	w := newFixture(t)
	s := w.snapshot()
	good := *w.launchOf(s, "t", 40_000, "gp.vs1.medium-iad")
	for name, change := range map[string]func(*policy.Launch){
		"no token":   func(l *policy.Launch) { l.Token = "" },
		"no market":  func(l *policy.Launch) { l.Markets = nil },
		"no bid":     func(l *policy.Launch) { l.Bid = 0 },
		"two kinds":  func(l *policy.Launch) { l.Markets = append(l.Markets, good.Markets[0]+1) },
		"not in it":  func(l *policy.Launch) { s.Pools[0].Markets = s.Pools[0].Markets[4:] },
		"other pool": func(l *policy.Launch) { s.Pools[0].Name = "nobody" },
	} {
		t.Run(name, func(t *testing.T) {
			s = w.snapshot()
			l := good
			change(&l)
			if err := w.b.Launch(w.ctx, s, &l); err == nil {
				t.Error("it was taken")
			}
		})
	}
	if writes := w.cloudWrites(); len(writes) != 0 || len(w.ledger()) != 0 {
		t.Errorf("a wrong launch wrote %v and left %d entries", writes, len(w.ledger()))
	}
}

// Limits count what was bought upon the same snapshot.
func TestLaunchLimits(t *testing.T) {
	w := newFixture(t)
	s := w.snapshot()
	s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 10_000, 6_000
	var errs []error
	for _, token := range []string{"t1", "t2", "t3"} {
		errs = append(errs, w.b.Launch(w.ctx, s, w.launchOf(s, token, 40_000, "gp.vs1.medium-iad")))
	}
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], driver.ErrNoCapacity) {
		t.Errorf("three launches of 2 CPUs with room for 4 give %v", errs)
	}
}

// The same token buys one node, also in another process, and whatever was lost on
// the way.
func TestRule14LaunchIsIdempotentByToken(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.restart()
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	if got := len(w.server.Pools()); got != 1 {
		t.Errorf("three calls made %d node pools, want 1", got)
	}
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	// An order is given and its answer is lost: the call is made again and finds it.
	w.server.SetFaults(fake.Faults{Hook: func(r *http.Request) (int, string) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "spotnodepools") {
			return 500, "once"
		}
		return 0, ""
	}})
	if err := w.launch("t2", 40_000, "gp.vs1.medium-iad"); err == nil {
		t.Fatal("a failing API took an order")
	}
	if got := w.sink.Alive(); got != 2 {
		t.Errorf("%d machines are counted, want 2: an order of which nobody knows is on its way", got)
	}
	w.server.SetFaults(fake.Faults{})
	w.mustLaunch("t2", 40_000, "gp.vs1.medium-iad")
	if got := len(w.server.Pools()); got != 2 || len(w.ledger()) != 2 {
		t.Errorf("%d node pools and %d entries, want 2", got, len(w.ledger()))
	}
}

// Who does not lead any more orders nothing, gives nothing back and withdraws
// nothing.
func TestRule14FenceStopsCloudWrites(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustRun(9 * time.Minute)
	node := w.node(w.nodes()[0])
	before := len(w.cloudWrites())
	lost := errors.New("the lease is another's")
	w.config.Fence = func(context.Context) error { return lost }
	w.restart()
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.launch("t2", 40_000, "gp.vs1.medium-iad"); !errors.Is(err, lost) {
		t.Errorf("launching gives %v", err)
	}
	if err := w.b.Release(w.ctx, node); !errors.Is(err, lost) {
		t.Errorf("releasing gives %v", err)
	}
	w.server.SetPrice("gp.vs1.medium-iad", 900_000)
	w.run(20 * time.Minute)
	if got := w.cloudWrites()[before:]; len(got) != 0 {
		t.Errorf("it wrote %v", got)
	}
}

// The fence is asked before each attempt: a request that is answered with an error is not
// sent again by who has lost the lease meanwhile, and counts as one that may have arrived.
func TestRule14FenceBetweenAttempts(t *testing.T) {
	w := newFixture(t)
	w.mustRun(time.Minute)
	asked, lost := 0, errors.New("the lease is another's")
	w.config.Fence = func(context.Context) error {
		if asked++; asked > 1 {
			return lost
		}
		return nil
	}
	w.restart()
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	before := len(w.cloudWrites())
	w.server.SetFaults(fake.Faults{Hook: func(r *http.Request) (int, string) {
		if r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/oauth/") {
			return 500, "later"
		}
		return 0, ""
	}})
	if err := w.launch("t2", 40_000, "gp.vs1.medium-iad"); !errors.Is(err, lost) {
		t.Errorf("launching gives %v", err)
	}
	if n := len(w.cloudWrites()) - before; n != 1 || asked != 2 {
		t.Errorf("%d requests were sent, the fence was asked %d times, want one and two", n, asked)
	}
	if n := len(w.ledger()); n != 1 {
		t.Errorf("the ledger has %d orders, want the one that may have arrived", n)
	}
}

// A steer changes no node and no bid. It is kept on the CapacityPool for the next
// process, written once, and its limits bound launches.
func TestSteer(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	writes := len(w.cloudWrites())
	s := w.snapshot()
	x := &policy.Steer{Share: 0.7, Bid: 51_000, Markets: []policy.MarketID{0, 2}, Limits: policy.Resources{CPU: 1000}}
	for range 2 {
		if err := w.b.Steer(w.ctx, s, x); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Minute)
		s = w.snapshot()
	}
	patches := 0
	for _, what := range w.wrote {
		if what == "patch *v1alpha1.CapacityPool" {
			patches++
		}
	}
	if patches != 1 || len(w.cloudWrites()) != writes {
		t.Errorf("two equal steers wrote %d patches and %v", patches, w.cloudWrites()[writes:])
	}
	w.restart()
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.sink.Steers[poolName]; !got.Set || got.Share != 0.7 || got.Since != policy.TimeOf(start) {
		t.Errorf("after a restart the steer is %+v", got)
	}
	if err := w.launch("t2", 60_000, "gp.vs1.medium-iad"); !errors.Is(err, driver.ErrNoCapacity) {
		t.Errorf("a launch beyond the limit gives %v", err)
	}
	var p v1alpha1.CapacityPool
	if err := w.store.Get(w.ctx, client.ObjectKey{Name: poolName}, &p); err != nil {
		t.Fatal(err)
	}
	if got := p.Annotations["spotter.dev/steer"]; !strings.Contains(got, `"bidPerHour":"0.055"`) {
		t.Errorf("the annotation is %s", got)
	}
}

// steerTo returns a steer to a share.
func steerTo(share float64) *policy.Steer { return &policy.Steer{Share: share} }
