package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy"
)

// bids is how many pods the machines that Spotter bids for are to run.
const bids = 4

// boughtClasses are those that Spotter may bid for.
var boughtClasses = slices.DeleteFunc(slices.Clone(soldClasses), func(c string) bool { return c == strangeClass })

// tokenSecret names the Secret with the token for the auction.
const tokenSecret = "rackspace-spot"

// token makes the Secret with the token for the auction, as an administrator does.
func (w *fixture) token(t *testing.T) {
	t.Helper()
	if err := w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tokenSecret}, StringData: map[string]string{"refresh-token": refreshToken},
	}); err != nil {
		t.Fatal(err)
	}
}

// won waits until all pods run on machines that were bid for, and that nothing is half
// done: each machine is of use, and none is cordoned or marked.
func (w *fixture) won(t *testing.T) {
	t.Helper()
	w.runs(t, "default", tasks, bids)
	var all []fake.Machine
	w.until(t, "all machines that were won are of use", func(ctx context.Context) error {
		used := map[string]bool{}
		var pods corev1.PodList
		if err := w.client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"app": tasks}); err != nil {
			return err
		}
		for i := range pods.Items {
			used[pods.Items[i].Spec.NodeName] = true
		}
		if all = w.auction.machines(tasks); len(all) == 0 {
			return errors.New("there are none")
		}
		for _, m := range all {
			var n corev1.Node
			if err := w.client.Get(ctx, client.ObjectKey{Name: m.Node}, &n); err != nil {
				return err
			}
			if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || n.Annotations[drain.AnnotationDrain] != "" || !used[m.Node] {
				return fmt.Errorf("node %s of %s: of use %t, cordoned %t, taints %v", m.Node, m.Class, used[m.Node],
					n.Spec.Unschedulable, n.Spec.Taints)
			}
			delete(used, m.Node)
		}
		if len(used) > 0 {
			return fmt.Errorf("pods run on nodes %v, of no machine that was won", used)
		}
		return nil
	})
	for _, m := range all {
		if price := w.auction.price(m.Class); m.Bid <= price || m.Bid%policy.BidStep != 0 {
			t.Errorf("machine %s of %s was bid for at %v, where the market stands at %v", m.Node, m.Class, m.Bid, price)
		}
	}
	t.Logf("%s  %d machines of %s are won in %d classes", w.market.clock(), len(all), tasks, len(classesOf(all)))
}

func classesOf(all []fake.Machine) []string {
	var names []string
	for _, m := range all {
		names = append(names, m.Class)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// price returns at what the market of a class stands.
func (a *auction) price(class string) policy.Money {
	now, price := policy.TimeOf(time.Now()), policy.Money(0)
	a.server.Change(func(s *fake.State) {
		for i := range s.Classes {
			if s.Classes[i].Name != class {
				continue
			}
			for _, p := range s.Classes[i].Prices {
				if p.At <= now {
					price = p.Price
				}
			}
		}
	})
	return price
}

// aClass returns one of the classes of which Spotter has machines, and one of them.
func (w *fixture) aClass(t *testing.T) fake.Machine {
	t.Helper()
	all := w.auction.machines(tasks)
	if len(all) == 0 {
		t.Fatalf("%s has no machine", tasks)
	}
	return all[w.draw.IntN(len(all))]
}

// dearer raises the market price of a class half way to the bid: no machine is lost, and
// all cost more.
func (w *fixture) dearer(t *testing.T) {
	t.Helper()
	m := w.aClass(t)
	w.auction.put(t, m.Class, (w.auction.price(m.Class)+m.Bid)/2, 2)
}

// outbid has another customer bid twice as much for a class: its machines are drained and
// released before they are taken, and their pods run elsewhere.
func (w *fixture) outbid(t *testing.T) {
	t.Helper()
	m := w.aClass(t)
	lost := slices.DeleteFunc(w.auction.machines(tasks), func(x fake.Machine) bool { return x.Class != m.Class })
	w.auction.put(t, m.Class, 2*m.Bid, 3)
	slowest, last := time.Duration(0), time.Now()
	w.until(t, fmt.Sprintf("%d machines that were outbid are gone", len(lost)), func(ctx context.Context) error {
		slowest, last = max(slowest, time.Since(last)), time.Now()
		for _, x := range lost {
			if err := w.client.Get(ctx, client.ObjectKey{Name: x.Node}, &corev1.Node{}); client.IgnoreNotFound(err) != nil || err == nil {
				return errors.Join(fmt.Errorf("node %s is there", x.Node), err)
			}
		}
		return nil
	})
	for _, l := range w.auction.server.Lives() {
		if !slices.ContainsFunc(lost, func(x fake.Machine) bool { return x.Node == l.Node }) {
			continue
		}
		early := l.Taken.Sub(l.Gone)
		t.Logf("%s  machine %s was given back %v before it was to be taken", w.market.clock(), l.Node, early.Round(time.Second))
		switch {
		case l.Taken == 0:
			t.Errorf("machine %s of %s was given back, and nobody had outbid it", l.Node, l.Class)
		case l.Gone == 0 || early <= 0 && slowest < time.Second:
			t.Errorf("machine %s was not given back in time", l.Node)
		}
		if slices.Contains(w.auction.server.Pools(), l.Pool) {
			t.Errorf("the bid of %s stands, and would win again", l.Node)
		}
	}
	w.won(t)
}

// stands checks that Spotter leaves what it bought and its bids unchanged when it is
// removed, as it does those of the users: since then the auction has only received reads.
func (w *fixture) stands(t *testing.T, sent, pools []string) {
	t.Helper()
	if now := w.auction.writes(); len(now) != len(sent) {
		t.Errorf("leaving it asked of the auction: %v", now[len(sent):])
	}
	if now := w.auction.server.Pools(); !slices.Equal(now, pools) || !slices.Contains(pools, "strangers") || len(pools) < 2 {
		t.Errorf("before it left there were the node pools %v, and now %v", pools, now)
	}
	for _, what := range w.auction.writes() {
		if strings.Contains(what, "strangers") {
			t.Errorf("it asked of what is the users' own: %s", what)
		}
	}
}
