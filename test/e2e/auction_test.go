package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/test/e2e/bill"
)

// An auction is an imitation of Rackspace Spot. Its prices are those of the embedded trace
// of an auction, which hardly changes within a day: the whole trace is played in one day.
type auction struct {
	server *fake.Server
	street *street
	market *market
}

// What the auction sells: two classes on which two pods of a workload fit, whose prices
// move in the trace, three on which one does, and one that only strangers buy.
var soldClasses = []string{"ch.vs1.large-iad", "mh.vs1.large-iad", "ch.vs1.medium-iad", "gp.vs1.medium-iad",
	"mh.vs1.medium-iad", strangeClass}

const (
	auctionRegion = "us-east-iad-1"
	cloudspace    = "production"
	refreshToken  = "played-refresh-token"
	strangeClass  = "gp.vs1.2xlarge-iad"

	// reserve is the least that an hour costs, more than the trace has of some classes.
	reserve = policy.Money(2_000)

	// joining is how long after it was won a machine joins: minutes, really. The notice of
	// those that were outbid is the real one.
	joining = 15 * time.Second
)

// openAuction starts the auction and lets the servers that are won join the cluster until
// the test ends.
func (w *fixture) openAuction(t *testing.T) *auction {
	t.Helper()
	all, _, err := trace.EmbeddedNamed("embedded:rackspace")
	if err != nil {
		t.Fatal(err)
	}
	s := fake.DefaultState()
	s.Regions, s.Refresh, s.Join, s.Classes = map[string]string{cloudspace: auctionRegion}, refreshToken, joining, nil
	for i := range all.Series {
		x := &all.Series[i]
		if !slices.Contains(soldClasses, x.Type) {
			continue
		}
		size, known := catalog.Lookup(catalog.Rackspace, x.Type)
		if !known {
			t.Fatalf("the catalog does not know %s", x.Type)
		}
		c := fake.Class{
			Name: x.Type, Region: x.Region, Category: "General Purpose", MinBid: fmt.Sprint(reserve.Float()),
			CPU: fmt.Sprint(size.VCPU), Memory: fmt.Sprintf("%dGB", size.Capacity.Memory>>30),
		}
		for k, at := range x.At {
			passed := int64(at-all.From) * int64(24*time.Hour/time.Millisecond) / (int64(all.To-all.From) * w.market.k)
			c.Prices = append(c.Prices, fake.Price{At: policy.Time(w.market.begin.UnixMilli() + max(0, passed)), Price: x.Spot[k]})
		}
		c.Prices[0].At = 0 // it stood so before
		s.Classes = append(s.Classes, c)
	}
	if len(s.Classes) != len(soldClasses) {
		t.Fatalf("the trace has %d of %d classes", len(s.Classes), len(soldClasses))
	}
	a := &auction{server: fake.New(s, clock.RealClock{}), market: w.market}
	a.street = openStreet(t, a.server)
	a.server.AddPool("strangers", cloudspace, strangeClass, 1, policy.Dollar, map[string]string{"team": "strangers"})
	go func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-t.Context().Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			if err := a.server.Step(t.Context(), joiner{w.client}); err != nil && t.Context().Err() == nil {
				t.Errorf("the auction: %v", err)
			}
		}
	}()
	return a
}

// A joiner is the cluster that machines join: their kubelets are played by kwok, and
// they are as large as the catalog says of their class.
type joiner struct{ client.Client }

func (j joiner) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	n, is := o.(*corev1.Node)
	if !is {
		return fmt.Errorf("a machine joins as %T", o)
	}
	size, _ := catalog.Lookup(catalog.Rackspace, n.Labels["servers.ngpc.rxt.io/class"])
	n.Labels[corev1.LabelHostname], n.Labels[corev1.LabelOSStable], n.Labels[corev1.LabelArchStable] = n.Name, "linux", size.Arch
	n.Annotations = maps.Clone(n.Annotations)
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations["kwok.x-k8s.io/node"] = "fake"
	n.Status = corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(size.Allocatable.CPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(size.Allocatable.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(size.Allocatable.Pods, resource.DecimalSI),
	}}
	n.Status.Capacity = n.Status.Allocatable
	return j.Client.Create(ctx, n, opts...)
}

// machines returns the running servers of a CapacityPool that were not outbid.
func (a *auction) machines(pool string) []fake.Machine {
	return slices.DeleteFunc(a.server.Machines(), func(m fake.Machine) bool { return m.Labels[poolLabel] != pool })
}

// poolLabel is on all that Spotter buys, and orderLabel names what it wrote the order
// down in.
const (
	poolLabel  = "spotter.dev/pool"
	orderLabel = "spotter.dev/spotnode"
)

// put sets the market price of a class from now on, for the given hours of the compressed day.
func (a *auction) put(t *testing.T, class string, price policy.Money, hours float64) {
	t.Helper()
	now := time.Now()
	until := a.market.at(now.Sub(a.market.begin).Hours()*float64(a.market.k) + hours)
	if slow := now.Add(slowest); until.Before(slow) {
		until = slow // or Spotter would not read it
	}
	from, to := policy.TimeOf(now), policy.TimeOf(until)
	a.server.Change(func(s *fake.State) {
		i := slices.IndexFunc(s.Classes, func(c fake.Class) bool { return c.Name == class })
		c := &s.Classes[i]
		k := slices.IndexFunc(c.Prices, func(p fake.Price) bool { return p.At > to })
		if k < 0 {
			k = len(c.Prices)
		}
		then := c.Prices[k-1].Price
		c.Prices = slices.DeleteFunc(c.Prices, func(p fake.Price) bool { return p.At >= from && p.At <= to })
		k = slices.IndexFunc(c.Prices, func(p fake.Price) bool { return p.At > to })
		if k < 0 {
			k = len(c.Prices)
		}
		c.Prices = slices.Insert(c.Prices, k, fake.Price{At: from, Price: price}, fake.Price{At: to, Price: then})
	})
	t.Logf("%s  the market of %s stands at %v", a.market.clock(), class, price)
}

// slowest is how late a change of a price may be heard of, on a busy machine.
const slowest = 75 * time.Second

// prices returns what the auction sold at, and what the same machines cost on demand.
func (a *auction) prices(t *testing.T) bill.Prices {
	t.Helper()
	all := bill.Prices{}
	a.server.Change(func(s *fake.State) {
		for _, c := range s.Classes {
			var spot []bill.Price
			for _, p := range c.Prices {
				spot = append(spot, bill.Price{From: int64(p.At), MicroDollars: int64(p.Price)})
			}
			all[c.Name+"/"+c.Region+"/"+bill.Spot] = bill.WithReserve(spot, int64(reserve))
			onDemand, _, known := catalog.OnDemandModelled(catalog.Rackspace, c.Region, c.Name)
			if !known {
				t.Errorf("the catalog knows no price on demand of %s", c.Name)
			}
			all[c.Name+"/"+c.Region+"/"+bill.OnDemand] = []bill.Price{{MicroDollars: int64(onDemand)}}
		}
	})
	return all
}

// told returns the prices as Spotter could know them, since Rackspace does not publish
// since when a price is in force: at each request to the public feed, the prices at the
// latest request to the API, which is ahead of the feed. A process that starts logs in
// first and knows no prices yet.
func (a *auction) told(t *testing.T) bill.Prices {
	t.Helper()
	truth, all := a.prices(t), bill.Prices{}
	read := int64(0)
	for _, c := range a.server.Calls() {
		switch path, _, _ := strings.Cut(c.Path, "?"); {
		case c.Status/100 != 2:
		case strings.HasPrefix(path, "/oauth/"):
			read = 0
		case strings.HasSuffix(path, "/serverclasses"):
			read = int64(c.At)
		case path == fake.PricesPath && read != 0:
			for market, prices := range truth {
				k, _ := slices.BinarySearchFunc(prices, read+1, func(p bill.Price, at int64) int { return int(p.From - at) })
				price, before := prices[max(0, k-1)].MicroDollars, all[market]
				if len(before) == 0 || before[len(before)-1].MicroDollars != price {
					all[market] = append(before, bill.Price{From: int64(c.At), MicroDollars: price})
				}
			}
		}
	}
	return all
}

// unread returns the longest time between two instants for which Spotter did not read the
// prices of the auction, and the path that it did not read.
func (a *auction) unread(from, to int64) (most time.Duration, what string) {
	for _, path := range []string{fake.PricesPath, "/serverclasses"} {
		last := from
		look := func(at int64) {
			if gap := time.Duration(at-last) * time.Millisecond; gap > most {
				most, what = gap, path
			}
			last = at
		}
		for _, c := range a.server.Calls() {
			if where, _, _ := strings.Cut(c.Path, "?"); c.Status/100 == 2 && strings.HasSuffix(where, path) &&
				int64(c.At) > last && int64(c.At) < to {
				look(int64(c.At))
			}
		}
		look(to)
	}
	return most, what
}

// writes returns the requests to the auction that are not reads.
func (a *auction) writes() (all []string) {
	for _, c := range a.server.Calls() {
		if c.Method != http.MethodGet && !strings.HasPrefix(c.Path, "/oauth/") {
			all = append(all, fmt.Sprint(c.Method, " ", c.Path, " ", c.Status))
		}
	}
	return all
}

// serve has the server of a cloud answer until the test ends.
func serve(t *testing.T, web *httptest.Server) {
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
}
