package placement_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

func drawOffer(t *rapid.T, id int) placement.Offer {
	n := drawNode(t, 900+id)
	return placement.Offer{
		Pool: policy.PoolID(rapid.IntRange(0, 1).Draw(t, "pool")), Market: policy.MarketID(id),
		Price:       policy.Money(rapid.IntRange(1, 4).Draw(t, "price")) * 100_000,
		Allocatable: n.Allocatable, VolumesMax: n.VolumesMax, GPUResource: n.GPUResource, Taints: n.Taints,
		Labels: slices.DeleteFunc(n.Labels, func(l policy.Label) bool { return l.Key == hostKey }),
	}
}

// pending returns the pending pods and their indices in w.pods.
func (w *checkedCluster) pending() (pods []policy.Pod, at []int) {
	for i := range w.pods {
		if w.pods[i].Node < 0 && !w.templates[w.pods[i].Template].DaemonSet {
			pods, at = append(pods, w.pods[i]), append(at, i)
		}
	}
	return pods, at
}

// accounted checks that every pod is in one bin or unplaced and that offers are of one pool, in order
// of price. It returns the price of the bins.
func accounted(t *rapid.T, n int, bins []placement.Bin, unplaced []int, offers []placement.Offer) policy.Money {
	seen := slices.Clone(unplaced)
	total := policy.Money(0)
	for i, b := range bins {
		seen = append(seen, b.Pods...)
		if len(b.Pods) == 0 || len(b.Offers) == 0 {
			t.Fatalf("bin %d is %+v", i, b)
		}
		for k, o := range b.Offers {
			if offers[o].Pool != offers[b.Offers[0]].Pool {
				t.Fatalf("bin %d mixes pools", i)
			}
			if k > 0 && offers[o].Price < offers[b.Offers[k-1]].Price {
				t.Fatalf("bin %d: offers are not in order of price", i)
			}
		}
		total += offers[b.Offers[0]].Price
	}
	slices.Sort(seen)
	for i := range n {
		if len(seen) != n || seen[i] != i {
			t.Fatalf("pods in bins and unplaced are %v, want each of %d once", seen, n)
		}
	}
	return total
}

// TestPack packs the pods of random clusters: each pod is in one bin or unplaced, the nodes of a bin
// hold its pods and are tolerated by them, and Provision finds nothing cheaper.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawCluster(t)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			w.change(t)
		}
		var offers []placement.Offer
		for i := range rapid.IntRange(0, 6).Draw(t, "offers") {
			offers = append(offers, drawOffer(t, i))
		}
		pods, _ := w.pending()
		p := placement.Pack(w.space, pods, offers)
		if want := accounted(t, len(pods), p.Bins, p.Unplaced, offers); p.Total != want {
			t.Fatalf("total is %v, the bins cost %v", p.Total, want)
		}
		w.compare(t, "after", w.space)
		for _, b := range p.Bins {
			for _, o := range b.Offers {
				w.held(t, pods, b.Pods, &offers[o])
			}
		}
		x := placement.Provision(w.space, pods, offers)
		if cost := accounted(t, len(pods), x.Bins, x.Unplaced, offers); cost != x.Total {
			t.Fatalf("total is %v, the bins cost %v", x.Total, cost)
		}
		if len(x.Unplaced) < len(p.Unplaced) || len(x.Unplaced) == len(p.Unplaced) && x.Total < p.Total {
			t.Fatalf("%v with %d unplaced, one way to fill nodes %v with %d", p.Total, len(p.Unplaced), x.Total, len(x.Unplaced))
		}
	})
}

// held checks that a node of o holds pods of a bin, by position in all, and that they tolerate it.
func (w *checkedCluster) held(t *rapid.T, all []policy.Pod, pods []int, o *placement.Offer) {
	var need policy.Resources
	for _, k := range pods {
		x := &w.templates[all[k].Template]
		need = need.Plus(x.Requests)
		if x.Requests.GPU > 0 && x.GPUResource != o.GPUResource {
			t.Fatalf("%s requests %s of a node with %q", x.Name, x.GPUResource, o.GPUResource)
		}
		for i := range o.Taints {
			if o.Taints[i].Effect != policy.PreferNoSchedule && !policy.Tolerates(x.Tolerations, &o.Taints[i]) {
				t.Fatalf("%s does not tolerate %+v", x.Name, o.Taints[i])
			}
		}
	}
	free := o.Allocatable.Minus(w.space.Daemons(o.Labels, o.Taints))
	for _, r := range [...][2]int64{
		{need.CPU, free.CPU}, {need.Memory, free.Memory}, {need.Storage, free.Storage}, {need.GPU, free.GPU}, {need.Pods, free.Pods},
	} {
		if r[0] > 0 && r[0] > r[1] {
			t.Fatalf("a bin requests %+v of %+v", need, free)
		}
	}
}

// TestOffersAreReadAgain packs with one space at prices and sizes that change in
// place, and with a new space at each.
func TestOffersAreReadAgain(t *testing.T) {
	snapshot := fleetSnapshot(1, 20, false)
	for i := range snapshot.Pods {
		snapshot.Pods[i].Node, snapshot.Pods[i].Phase = policy.None, policy.PodPending
	}
	kept, offers := placement.New(snapshot.Templates, snapshot.Zones), market(6)
	for round := range 12 {
		for i := range offers {
			offers[i].Price += policy.Money(round*(i*37%11)) * 1000
			if round%4 == 3 {
				offers[i].Allocatable.CPU -= 300
			}
		}
		fresh := placement.New(snapshot.Templates, snapshot.Zones)
		for range 2 { // the second time the offers are known
			got, want := placement.Pack(kept, snapshot.Pods, offers), placement.Pack(fresh, snapshot.Pods, offers)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d: %+v, want %+v", round, got, want)
			}
		}
	}
}

// market returns offers of types in three zones and two capacity types.
func market(types int) []placement.Offer {
	var offers []placement.Offer
	for i := range types {
		cpu := int64(2) << (i % 6)
		perCPU := []int64{2, 4, 8}[i%3]
		for zone := range zoneNames {
			for capacity, name := range []string{"on-demand", "spot"} {
				offers = append(offers, placement.Offer{
					Market: policy.MarketID(len(offers)),
					Price:  policy.Money((cpu*40_000 + cpu*perCPU*3_000) * int64(100-capacity*60+i+zone) / 100),
					Allocatable: policy.Resources{
						CPU: cpu*1000 - 100 - int64(i), Memory: (cpu*perCPU)<<30 - 600<<20, Storage: 20 << 30, Pods: 29 + 10*cpu,
					},
					VolumesMax: 27,
					Labels: []policy.Label{
						{Key: "karpenter.sh/capacity-type", Value: name},
						{Key: "node.kubernetes.io/instance-type", Value: fmt.Sprint("type", i)},
						{Key: "topology.kubernetes.io/zone", Value: zoneNames[zone]},
					},
				})
			}
		}
	}
	return offers
}

func pendingFleet(pods int, topology bool) (*placement.Space, []policy.Pod) {
	s := fleetSnapshot(1, pods, topology)
	for i := range s.Pods {
		s.Pods[i].Node, s.Pods[i].Phase = policy.None, policy.PodPending
	}
	return placement.New(s.Templates, s.Zones), s.Pods
}

func BenchmarkPack(b *testing.B) {
	for _, topology := range []bool{false, true} {
		for _, pods := range []int{20, 8000} {
			b.Run(fmt.Sprintf("topology=%v/pods=%d", topology, pods), func(b *testing.B) {
				sp, list := pendingFleet(pods, topology)
				offers := market(84)
				b.ReportAllocs()
				var p placement.Packing
				for b.Loop() {
					p = placement.Pack(sp, list, offers)
				}
				b.ReportMetric(p.Total.Float(), "$/h")
				b.ReportMetric(float64(len(p.Bins)), "bins")
			})
		}
	}
}

// A crate is a small packing problem with resources alone.
type crate struct {
	pods   []policy.Resources
	offers []placement.Offer
}

func drawCrate(t *rapid.T) (c crate) {
	amount := func(name string, values ...int64) int64 { return rapid.SampledFrom(values).Draw(t, name) }
	for range rapid.IntRange(1, 6).Draw(t, "pods") {
		c.pods = append(c.pods, policy.Resources{
			CPU: 100 * amount("cpu", 0, 3, 5, 7, 11), Memory: gib * amount("memory", 0, 1, 2, 3), GPU: amount("gpu", 0, 0, 0, 1), Pods: 1,
		})
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "offers") {
		o := placement.Offer{
			Market: policy.MarketID(i), Price: policy.Money(amount("price", 1, 2, 3, 5)) * 100_000,
			Allocatable: policy.Resources{
				CPU: 100 * amount("cores", 5, 8, 12, 20), Memory: gib * amount("memory", 2, 4, 8), Pods: amount("podsMax", 2, 3, 50),
			},
		}
		if amount("gpus", 0, 0, 1) == 1 {
			o.GPUResource, o.Allocatable.GPU = "nvidia.com/gpu", 2
		}
		c.offers = append(c.offers, o)
	}
	return c
}

func (c *crate) space() (*placement.Space, []policy.Pod) {
	var templates []policy.Template
	var pods []policy.Pod
	for i, r := range c.pods {
		x := policy.Template{ID: policy.TemplateID(i), Workload: policy.None, Name: fmt.Sprint("pod-", i), Requests: r}
		if r.GPU > 0 {
			x.GPUResource = "nvidia.com/gpu"
		}
		templates = append(templates, x)
		pods = append(pods, policy.Pod{ID: policy.PodID(i), Template: x.ID, VolumeZone: policy.None})
	}
	return placement.New(templates, nil), pods
}

// least returns the lowest price of nodes for the pods from next on, with nodes that are open and
// what is used of them, or -1.
func (c *crate) least(next int, used []policy.Resources, of []int) policy.Money {
	if next == len(c.pods) {
		return 0
	}
	best := policy.Money(-1)
	keep := func(cost, more policy.Money) {
		if cost >= 0 && (best < 0 || cost+more < best) {
			best = cost + more
		}
	}
	for i := range used {
		if sum := used[i].Plus(c.pods[next]); sum.Within(c.offers[of[i]].Allocatable) {
			now := slices.Clone(used)
			now[i] = sum
			keep(c.least(next+1, now, of), 0)
		}
	}
	for k := range c.offers {
		if c.pods[next].Within(c.offers[k].Allocatable) {
			keep(c.least(next+1, append(slices.Clone(used), c.pods[next]), append(slices.Clone(of), k)), c.offers[k].Price)
		}
	}
	return best
}

// TestQuality compares what is said of packings with the best ones, found by a search of all: none
// is below the bound, and Pack finds the best of most.
func TestQuality(t *testing.T) {
	packed, best, proven := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrate(t)
		sp, pods := c.space()
		p := placement.Pack(sp, pods, c.offers)
		least := c.least(0, nil, nil)
		if (least < 0) != (len(p.Unplaced) > 0) || len(p.Unplaced) == 0 && p.Total < least {
			t.Fatalf("%d unplaced, %v; the least is %v", len(p.Unplaced), p.Total, least)
		}
		if least < 0 {
			return
		}
		packed++
		if p.Total == least {
			best++
		}
		quality := p.Quality(sp, pods, c.offers)
		text, stated := strings.CutPrefix(quality, "no packing costs less than $")
		switch bound, err := strconv.ParseFloat(text, 64); {
		case !stated && p.Total > least:
			t.Fatalf("%q of %v; the least is %v", quality, p.Total, least)
		case !stated:
			proven++
		case err != nil || bound > least.Float()+0.01:
			t.Fatalf("%q of %v; the least is %v: %v", quality, p.Total, least, err)
		}
	})
	t.Logf("%d of %d packings are the best, %d are known to be", best, packed, proven)
	if 10*best < 9*packed || proven == 0 || proven == packed {
		t.Errorf("%d of %d packings are the best, %d are known to be", best, packed, proven)
	}
}
