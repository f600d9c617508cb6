package cluster_test

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A priceList is a feed that reports the prices of one type in two zones.
type priceList struct{ price policy.Money }

func (f *priceList) Name() string         { return "prices" }
func (f *priceList) Every() time.Duration { return time.Minute }
func (f *priceList) Prices() bool         { return true }

func (f *priceList) Read(_ context.Context, ask market.Ask) (*market.Update, error) {
	u := &market.Update{AsOf: ask.Now}
	for _, zone := range []string{"us-east-1a", "us-east-1b"} {
		u.Spot = append(u.Spot, market.Price{Provider: "aws", Region: "us-east-1", Zone: zone, Type: "m5.xlarge", At: ask.Now, Price: f.price})
	}
	return u, nil
}

// TestWithBook observes with a real book: its markets are those of pools and nodes,
// what is met is counted in it, and it may learn of new markets at any time.
func TestWithBook(t *testing.T) {
	clock := clocktesting.NewFakeClock(epoch)
	feed := &priceList{price: policy.Dollar / 20}
	bc := market.DefaultConfig()
	bc.Clock, bc.Feeds = clock, []market.Feed{feed}
	book, err := market.New(bc)
	if err != nil {
		t.Fatal(err)
	}
	cfg := cluster.DefaultConfig()
	cfg.Clock = clock
	l := newLab(t)
	if l.observer, err = cluster.New(cfg, book); err != nil {
		t.Fatal(err)
	}
	l.informer = &informertest.FakeInformers{Scheme: l.informer.Scheme}
	if err := l.observer.Follow(t.Context(), l.informer); err != nil {
		t.Fatal(err)
	}
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Spec.Markets.InstanceTypes = []string{"m5.xlarge"} }), node("n"), pod("w", "n"))
	observe := func() *policy.Snapshot {
		s, err := l.observer.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := observe(); len(s.Pools) != 1 || nodeIn(t, s, "n").Pool != 0 {
		t.Errorf("before prices are known: %+v", s.Pools)
	}
	if err := book.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Minute)
	s := observe()
	n := nodeIn(t, s, "n")
	if len(s.Pools[0].Markets) != 4 || n.Market == policy.None || s.Markets[n.Market].Price != policy.Dollar/20 ||
		s.Markets[n.Market].Capacity != policy.Spot {
		t.Fatalf("markets %v, node %+v of %+v", s.Pools[0].Markets, n, s.Markets)
	}
	name := s.Markets[n.Market].Name
	clock.Step(time.Hour)
	l.observer.Notice(backend.Notice{Machine: "n", At: policy.TimeOf(clock.Now()), ReclaimAt: policy.TimeOf(clock.Now().Add(2 * time.Minute))})
	l.observer.Meet(backend.Event{Kind: backend.MetRefusal, Pool: "p", Market: name, At: policy.TimeOf(clock.Now())})
	observe()
	clock.Step(time.Second)
	if e := observe().Markets[n.Market].Experience; e.Reclaims < 0.99 || e.Refusals < 0.99 || e.NodeHours < 0.9 {
		t.Errorf("the book has met %+v", e)
	}
	for _, x := range s.Sources {
		if x.Name == "prices" && x.At != at(0) {
			t.Errorf("prices are of %v", x.At)
		}
	}
}
