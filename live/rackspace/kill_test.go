package rackspace_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

var errKilled = errors.New("the process is dead")

// A killer ends a process at its n-th call of anything: before the call or, where
// late, when it was carried out and before the answer is seen. From then on the
// process reaches nothing.
type killer struct {
	left int
	late bool
	dead bool
	send http.RoundTripper
}

// call counts one call. It reports whether the call is still made.
func (k *killer) call() (made bool, err error) {
	if k.dead {
		return false, errKilled
	}
	if k.left--; k.left > 0 {
		return true, nil
	}
	k.dead = true
	return k.late, errKilled
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	made, err := k.call()
	if !made {
		return nil, err
	}
	answer, failed := k.send.RoundTrip(r)
	if err != nil {
		if failed == nil {
			answer.Body.Close()
		}
		return nil, err
	}
	return answer, failed
}

// A crew is a policy that keeps want nodes, and drains one when it has to.
type crew struct {
	*fixture
	want  int
	spent int // tokens
	drain string
}

// step is what a controller does each interval.
func (c *crew) step() error {
	if err := c.b.Poll(c.ctx); err != nil {
		return err
	}
	if err := c.b.Pass(c.ctx); err != nil {
		return err
	}
	for c.sink.Alive() < c.want {
		c.spent++
		token := fmt.Sprintf("token-%d", c.spent)
		if err := c.launch(token, 40_000, "gp.vs1.medium-iad"); err != nil {
			return err
		}
	}
	return c.give()
}

// give drains and releases the node named by drain, if any.
func (c *crew) give() error {
	if c.drain == "" {
		return nil
	}
	var n corev1.Node
	if err := c.store.Get(c.ctx, client.ObjectKey{Name: c.drain}, &n); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.drain = ""
		}
		return client.IgnoreNotFound(err)
	}
	if err := c.b.Prepare(c.ctx, &n); err != nil {
		return err
	}
	if err := c.b.Release(c.ctx, &n); err != nil {
		return err
	}
	c.drain = ""
	return nil
}

// story runs for an hour: nodes are bought, one is released, all are outbid, and their replacements
// come up.
func (c *crew) story(alive func() bool) {
	for i := range 60 {
		c.clock.Step(c.config.Poll)
		hook := c.kube
		c.kube = nil
		if err := c.server.Step(context.Background(), c.store); err != nil {
			c.t.Fatal(err)
		}
		c.kube = hook
		switch i {
		case 14:
			if names := c.nodes2(); len(names) > 0 {
				c.drain = names[0]
			}
		case 30:
			c.server.SetPrice("gp.vs1.medium-iad", 41_000)
		case 38:
			c.server.SetPrice("gp.vs1.medium-iad", 12_000)
		}
		if alive() {
			_ = c.step() // what fails is tried again in the next round
		}
	}
}

// nodes2 is nodes without the hooks.
func (c *crew) nodes2() []string {
	hook := c.kube
	c.kube = nil
	defer func() { c.kube = hook }()
	return c.nodes()
}

// calm runs for half an hour in which nothing fails, and returns what is wrong then.
func (c *crew) calm() (wrong []string) {
	last := error(nil)
	for range 30 {
		c.clock.Step(c.config.Poll)
		if err := c.server.Step(c.ctx, c.store); err != nil {
			c.t.Fatal(err)
		}
		last = c.step()
	}
	if wrong = c.settled(); last != nil {
		wrong = append(wrong, last.Error())
	}
	return wrong
}

// settled returns what is wrong in a fixture that has settled.
func (c *crew) settled() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	machines, ledger := c.server.Machines(), c.ledger()
	if len(machines) != c.want || len(c.server.Pools()) != c.want || len(c.nodes()) != c.want || len(ledger) != c.want ||
		c.sink.Alive() != c.want {
		say("%d machines run in %d node pools as %d nodes, the ledger has %d and the sink %d, want %d of each",
			len(machines), len(c.server.Pools()), len(c.nodes()), len(ledger), c.sink.Alive(), c.want)
	}
	tokens := map[string]bool{}
	for _, n := range ledger {
		if n.Status.Phase != v1alpha1.SpotNodeRunning {
			say("SpotNode %s is %s", n.Name, n.Status.Phase)
		}
		if tokens[n.Spec.Token] {
			say("token %s was bought twice", n.Spec.Token)
		}
		tokens[n.Spec.Token] = true
		if !slices.Contains(c.server.Pools(), n.Annotations["spotter.dev/node-pool"]) {
			say("SpotNode %s has no node pool", n.Name)
		}
	}
	return wrong
}

// A process that dies at any call leaves nothing that its successor does not bring
// to rest: no node is doubled, none runs unseen, none is lost, and none stays marked
// as draining.
func TestKilledAtRandomPoints(t *testing.T) {
	calls := func() int { // how many calls the story makes without a death
		w := newFixture(t)
		w.config.Poll = time.Minute
		k := &killer{left: 1 << 30, send: w.config.Transport}
		w.config.Transport = k
		w.kube = func(string, client.Object) error { _, err := k.call(); return err }
		w.restart()
		c := &crew{fixture: w, want: 3}
		c.story(func() bool { return true })
		if wrong := c.settled(); len(wrong) != 0 {
			t.Fatalf("without a death: %v", wrong)
		}
		return 1<<30 - k.left
	}()
	points := killPoints
	if testing.Short() {
		points = 10
	}
	seed := testenv.Seed(t)
	for i := range points {
		draw := chance.New(seed, "kill", "").At1(uint64(i))
		at, late := 1+draw.IntN(calls), draw.At1(1).IntN(2) == 1
		w := newFixture(t)
		w.config.Poll = time.Minute
		send := w.config.Transport
		k := &killer{left: at, late: late, send: send}
		w.config.Transport = k
		w.kube = func(string, client.Object) error { _, err := k.call(); return err }
		w.restart()
		c := &crew{fixture: w, want: 3}
		c.story(func() bool {
			if k.dead && w.kube != nil { // the next leader takes over
				w.kube, w.config.Transport = nil, send
				w.restart()
			}
			return true
		})
		w.kube, w.config.Transport = nil, send
		if wrong := c.calm(); len(wrong) != 0 {
			t.Errorf("killed at call %d of %d (late: %v): %v; repeat with seed %d", at, calls, late, wrong, seed)
		}
	}
}

// A backend withstands an API that throttles, fails, loses answers, truncates them and lags behind
// its requests: once the API recovers, the cluster has the nodes that are wanted. A bid that was
// outbid and cannot be withdrawn, since the API fails, wins a machine when the price falls: that
// machine is released at one of the next polls.
func TestUnreliableAPI(t *testing.T) {
	fixtures := nightly.Count(4, 12)
	if testing.Short() {
		fixtures = 2
	}
	seed := testenv.Seed(t)
	for i := range fixtures {
		w := newFixture(t)
		w.config.Poll = time.Minute
		w.restart()
		share := 0.02 + 0.06*chance.New(seed, "share", "").At1(uint64(i)).Float()
		w.server.SetFaults(fake.Faults{
			Seed: seed + uint64(i), Throttle: share, Internal: share, Unavailable: share, Conflict: share, Expire: share,
			Reset: share, Lose: share, Truncate: share, RetryAfter: time.Second,
		})
		w.server.Change(func(s *fake.State) { s.Lag, s.PageMax = time.Duration(i%4)*25*time.Second, 2 })
		c := &crew{fixture: w, want: 3}
		excess, longest := 0, 0
		c.story(func() bool {
			switch {
			case len(w.server.Machines()) <= c.want:
				excess = 0
			case meta.IsStatusConditionTrue(w.b.Conditions(poolName), rackspace.CloudspaceReachable):
				excess++ // a poll that read nothing found no machine to release
			}
			longest = max(longest, excess)
			return true
		})
		w.server.SetFaults(fake.Faults{})
		if wrong := c.calm(); len(wrong) != 0 || longest > 5 {
			t.Errorf("scenario %d of seed %d: %v; too many machines ran for %d polls that succeeded", i, seed, wrong, longest)
		}
	}
}
