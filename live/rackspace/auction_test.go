package rackspace_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A node that is outbid is warned of once, with the time that is left, then
// reclaimed, and its bid does not win again when the price falls.
func TestOutbid(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustRun(10 * time.Minute)
	name := w.nodes()[0]
	at := policy.TimeOf(w.clock.Now())
	w.server.SetPrice("gp.vs1.medium-iad", 41_000)
	w.mustRun(time.Minute)
	if len(w.sink.Notices) != 1 {
		t.Fatalf("there are notices %v, want one", w.sink.Notices)
	}
	n := w.sink.Notices[0]
	if n.Machine != name || n.At.Sub(at) > w.config.Poll || n.ReclaimAt.Sub(n.At) != 6*time.Minute {
		t.Errorf("the notice is %+v, the price rose at %v", n, at)
	}
	if len(w.sink.Met(backend.MetReclaim)) != 0 || w.sink.Alive() != 1 {
		t.Error("the node counts as reclaimed while it runs")
	}
	w.mustRun(2 * time.Minute)
	w.restart() // a new process gives the notice with its own time
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if len(w.sink.Notices) != 1 || w.sink.Notices[0].At.Sub(n.At).Abs() >= time.Second {
		t.Errorf("after a restart the notices are %v, want that of %v", w.sink.Notices, n.At)
	}
	w.mustRun(5 * time.Minute)
	if len(w.sink.Met(backend.MetReclaim)) != 1 || len(w.sink.Met(backend.MetRefusal)) != 0 || len(w.sink.Met(backend.MetLaunch)) != 0 {
		t.Errorf("met %v, want one reclaim", w.sink.Events)
	}
	w.server.SetPrice("gp.vs1.medium-iad", 10_000)
	w.mustRun(20 * time.Minute)
	if len(w.nodes()) != 0 || len(w.ledger()) != 0 || len(w.server.Pools()) != 0 || len(w.sink.Machines) != 0 {
		t.Errorf("left are nodes %v, %d entries, pools %v, machines %v", w.nodes(), len(w.ledger()), w.server.Pools(), w.sink.Machines)
	}
	w.restart() // and a reclaim is met once
	w.mustRun(time.Minute)
	if len(w.sink.Events) != 0 {
		t.Errorf("after a restart were met %v", w.sink.Events)
	}
}

// A price that moves below the bid takes nothing, and a bid is never changed.
func TestBidIsForLife(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	for _, p := range []policy.Money{40_000, 1_000, 39_999, 40_000} {
		w.server.SetPrice("gp.vs1.medium-iad", p)
		w.mustRun(10 * time.Minute)
	}
	if len(w.sink.Notices) != 0 || len(w.nodes()) != 1 {
		t.Errorf("notices %v, nodes %v", w.sink.Notices, w.nodes())
	}
	if got := w.cloudWrites(); len(got) != 1 {
		t.Errorf("the writes are %v, want the order alone", got)
	}
}

// The API loses the machine while its price says nothing: believed at the second
// reading.
func TestLostWithoutAPrice(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustRun(10 * time.Minute)
	w.server.SetPrice("gp.vs1.medium-iad", 900_000)
	if err := w.server.Step(w.ctx, w.store); err != nil {
		t.Fatal(err)
	}
	w.server.SetPrice("gp.vs1.medium-iad", 10_000)
	w.server.Change(func(s *fake.State) { s.Classes[0].Slots = 1 }) // and no other is free
	for i, want := range []int{0, 1, 1} {
		if err := w.b.Poll(w.ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(w.sink.Notices); got != want {
			t.Errorf("after reading %d there are %d notices, want %d", i+1, got, want)
		}
	}
}

// The prior art knew another message than the real one: the floor of every answer
// that was recorded is found, becomes the price, and no binary fraction moves it.
func TestFaultFloorOfTheRealMessage(t *testing.T) {
	var golden struct {
		Discovered map[string]struct {
			Result, Kind, Message string
			Floor                 *float64
		}
	}
	if err := json.Unmarshal(goldenFile(t, "rackspace_min_bid_prices.json"), &golden); err != nil {
		t.Fatal(err)
	}
	w := newFixture(t)
	w.mustRun(time.Minute)
	priced, unpriced := 0, 0
	for _, class := range keys(golden.Discovered) {
		x := golden.Discovered[class]
		if x.Result != "rejected" {
			continue
		}
		w.server.SetFaults(fake.Faults{Hook: func(r *http.Request) (int, string) {
			if r.Method != http.MethodPost || r.URL.Path == "/oauth/token" {
				return 0, ""
			}
			text, err := json.Marshal(map[string]any{"message": x.Message, "reason": "Forbidden"})
			if err != nil {
				t.Error(err)
			}
			return http.StatusForbidden, string(text)
		}})
		err := w.launch(class, 40_000, "gp.vs1.medium-iad")
		if !errors.Is(err, driver.ErrNoCapacity) {
			t.Fatalf("%s: %q gives %v, want ErrNoCapacity", class, x.Message, err)
		}
		u, err := w.b.Feed().Read(w.ctx, market.Ask{Now: policy.TimeOf(w.clock.Now())})
		if err != nil {
			t.Fatal(err)
		}
		want := policy.Money(10_000)
		if x.Kind == "market_price" {
			priced++
			want = max(want, policy.Dollars(*x.Floor))
		} else {
			unpriced++
		}
		if got := spotPrice(u, "gp.vs1.medium-iad"); got != want {
			t.Errorf("%s: the price is then %v, want %v", class, got, want)
		}
		w.clock.Step(11 * time.Minute) // a floor does not hold for ever
	}
	if priced != 75 || unpriced == 0 {
		t.Errorf("%d answers named a floor and %d none, want 75 and some", priced, unpriced)
	}
	if got := len(w.sink.Met(backend.MetRefusal)); got != priced+unpriced {
		t.Errorf("%d refusals were met, want %d", got, priced+unpriced)
	}
}

// goldenFile returns a file of recorded answers, or skips the test without them.
func goldenFile(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("SPOTTER_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "golden")
	}
	body, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("no golden files: %v", err)
	}
	return body
}

func spotPrice(u *market.Update, class string) policy.Money {
	for _, p := range u.Spot {
		if p.Type == class {
			return p.Price
		}
	}
	return policy.NoPrice
}

// A refusal is the answer to the same token again, without another call; the next
// market is asked at once.
func TestRefusedThenNextMarket(t *testing.T) {
	w := newFixture(t)
	s := w.snapshot()
	w.server.SetPrice("gp.vs1.medium-iad", 50_000) // the snapshot does not know yet
	l := w.launchOf(s, "t1", 40_000, "gp.vs1.medium-iad", "ch.vs1.large-iad")
	if err := w.b.Launch(w.ctx, s, l); err != nil {
		t.Fatal(err)
	}
	if got := len(w.cloudWrites()); got != 2 || len(w.sink.Met(backend.MetRefusal)) != 1 {
		t.Errorf("%d orders and events %v, want one refused and one taken", got, w.sink.Events)
	}
	one := w.launchOf(s, "t2", 40_000, "gp.vs1.medium-iad")
	for range 2 {
		if err := w.b.Launch(w.ctx, s, one); !errors.Is(err, driver.ErrNoCapacity) {
			t.Errorf("a refused launch gives %v", err)
		}
	}
	if got := len(w.cloudWrites()); got != 3 {
		t.Errorf("%d orders, want 3: the second call has its answer in the ledger", got)
	}
	w.mustRun(20 * time.Minute)
	if n := w.only(); n.Status.Phase != v1alpha1.SpotNodeRunning {
		t.Errorf("the entry left is %s", n.Status.Phase)
	}
}

// A pool that is neither won nor lost for ever is withdrawn after a while and
// counts as refused, as does one whose price went past the bid while it waited.
func TestFaultNeitherWonNorLost(t *testing.T) {
	w := newFixture(t)
	w.server.Change(func(s *fake.State) { s.Classes[0].Slots = 1 })
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustLaunch("t2", 40_000, "gp.vs1.medium-iad")
	w.mustRun(9 * time.Minute)
	if w.sink.Alive() != 2 || len(w.sink.Met(backend.MetRefusal)) != 0 {
		t.Errorf("before its time %d machines are alive and %v were met", w.sink.Alive(), w.sink.Events)
	}
	w.mustRun(3 * time.Minute)
	if w.sink.Alive() != 1 || len(w.sink.Met(backend.MetRefusal)) != 1 || len(w.server.Pools()) != 1 {
		t.Errorf("after it %d machines are alive, %v were met, pools %v", w.sink.Alive(), w.sink.Events, w.server.Pools())
	}
	w.server.Change(func(s *fake.State) { s.Classes[2].Slots = -1 })
	w.mustLaunch("t3", 40_000, "ch.vs1.large-iad")
	w.server.SetPrice("ch.vs1.large-iad", 41_000)
	w.mustRun(time.Minute)
	if len(w.sink.Met(backend.MetRefusal)) != 2 || len(w.server.Pools()) != 1 {
		t.Errorf("a bid that the price passed: %v were met, pools %v", w.sink.Events, w.server.Pools())
	}
}

// Nodes in flight for minutes are counted at every step, so that a policy that
// looks every few seconds buys one node and not twenty.
func TestFaultInFlightIsCounted(t *testing.T) {
	w := newFixture(t)
	for i := range 20 {
		if w.sink.Alive() < 1 {
			w.mustLaunch(policy.Token(policy.TimeOf(w.clock.Now()), poolName, "m", i), 40_000, "gp.vs1.medium-iad")
		}
		w.mustRun(30 * time.Second)
	}
	if got := len(w.server.Machines()); got != 1 {
		t.Errorf("%d machines run, want 1", got)
	}
}
