package placement_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
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
		Max:    max(0, rapid.IntRange(-3, 2).Draw(t, "max")),
	}
}

// buy puts a node for every bin into w, of its cheapest offer, with the room
// that DaemonSet pods will need taken off.
func (w *checkedCluster) buy(bins []placement.Bin, offers []placement.Offer) []policy.NodeID {
	var ids []policy.NodeID
	for i, b := range bins {
		o := &offers[b.Offers[0]]
		n := policy.Node{
			ID: policy.NodeID(len(w.nodes)), Name: fmt.Sprint("new", i), Pool: o.Pool, Market: o.Market,
			Phase: policy.NodeInitialized, Allocatable: o.Allocatable.Minus(w.space.Daemons(o.Labels, o.Taints)),
			VolumesMax: o.VolumesMax, GPUResource: o.GPUResource, Labels: o.Labels, Taints: o.Taints,
		}
		w.nodes = append(w.nodes, n)
		w.space.SetNode(&n)
		ids = append(ids, n.ID)
	}
	return ids
}

// A placing is a pod and the node that was bought for it.
type placing struct {
	pod  *policy.Pod
	node policy.NodeID
}

// replay binds the pods of each bin to its node as the plain cluster lets it,
// the largest pods first as they were placed: pods that come earlier than they
// were meant to may take what others need. Those that have to wait for others are
// tried again at once, or when all have been tried. It fails when some cannot be
// bound either way. Nodes on their way are there before those that were bought.
func (w *checkedCluster) replay(t *rapid.T, pods []int, bins []placement.Bin, offers []placement.Offer) {
	for i := range w.nodes {
		if w.nodes[i].Phase == policy.NodeLaunching {
			w.nodes[i].Phase = policy.NodeRegistered
		}
	}
	ids := w.buy(bins, offers)
	var order []placing
	for i := range bins {
		for _, k := range bins[i].Pods {
			order = append(order, placing{&w.pods[pods[k]], ids[i]})
		}
	}
	compare := func(a, b placing) int {
		x, y := &w.templates[a.pod.Template], &w.templates[b.pod.Template]
		return cmp.Or(cmp.Compare(y.Requests.CPU, x.Requests.CPU), cmp.Compare(y.Requests.Memory, x.Requests.Memory),
			cmp.Compare(y.Requests.GPU, x.Requests.GPU), cmp.Compare(x.ID, y.ID))
	}
	slices.SortStableFunc(order, compare)
	var stuck *placing
	for _, atOnce := range []bool{true, false} {
		for i := range order {
			order[i].pod.Node, order[i].pod.Phase = policy.None, policy.PodPending
		}
		for begin, end := 0, 1; end <= len(order); end++ {
			if end < len(order) && compare(order[end-1], order[end]) == 0 {
				continue
			}
			if atOnce {
				begin = 0
			}
			w.bindAll(order[begin:end])
			begin = end
		}
		w.bindAll(order)
		at := slices.IndexFunc(order, func(o placing) bool { return o.pod.Node < 0 })
		if at < 0 {
			return
		}
		stuck = &order[at]
	}
	t.Fatalf("pod %d does not fit node %d after the others: %v\n%+v", stuck.pod.ID, stuck.node, w.check(stuck.pod, stuck.node), bins)
}

// bindAll binds those of list that can be, again and again until none can.
func (w *checkedCluster) bindAll(list []placing) {
	for again := true; again; {
		again = false
		for _, o := range list {
			if o.pod.Node < 0 && w.check(o.pod, o.node) == placement.OK {
				o.pod.Node, o.pod.Phase = o.node, policy.PodReady
				again = true
			}
		}
	}
}

// pending returns the pending pods and where they stand in w.pods.
func (w *checkedCluster) pending() (pods []policy.Pod, at []int) {
	for i := range w.pods {
		if w.pods[i].Node < 0 && !w.templates[w.pods[i].Template].DaemonSet {
			pods, at = append(pods, w.pods[i]), append(at, i)
		}
	}
	return pods, at
}

// accounted checks that every pod is in one bin or unplaced, that offers are of
// one pool in order of price, and that no offer is bought beyond its bound.
func accounted(t *rapid.T, n int, bins []placement.Bin, unplaced []int, offers []placement.Offer) policy.Money {
	seen := slices.Clone(unplaced)
	bought := make([]int, len(offers))
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
		bought[b.Offers[0]]++
		total += offers[b.Offers[0]].Price
	}
	slices.Sort(seen)
	for i := range n {
		if len(seen) != n || seen[i] != i {
			t.Fatalf("pods in bins and unplaced are %v, want each of %d once", seen, n)
		}
	}
	for i, k := range bought {
		if offers[i].Max > 0 && k > offers[i].Max {
			t.Fatalf("offer %d is bought %d times, at most %d", i, k, offers[i].Max)
		}
	}
	return total
}

// TestBinsHoldTheirPods buys what Provision and Pack propose in random
// clusters, and binds the pods under all filters.
func TestBinsHoldTheirPods(t *testing.T) {
	for _, pack := range []bool{false, true} {
		t.Run(fmt.Sprintf("pack=%v", pack), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawCluster(t)
				for range rapid.IntRange(0, 8).Draw(t, "changes") {
					w.change(t)
				}
				var offers []placement.Offer
				for i := range rapid.IntRange(0, 6).Draw(t, "offers") {
					offers = append(offers, drawOffer(t, i))
				}
				pods, at := w.pending()
				var bins []placement.Bin
				var unplaced []int
				if pack {
					var total policy.Money
					bins, unplaced, total = placement.Pack(w.space, pods, offers)
					if want := accounted(t, len(pods), bins, unplaced, offers); total != want {
						t.Fatalf("total is %v, the bins cost %v", total, want)
					}
				} else {
					bins, unplaced = placement.Provision(w.space, pods, offers)
					accounted(t, len(pods), bins, unplaced, offers)
				}
				w.compare(t, "after", w.space)
				w.replay(t, at, bins, offers)
			})
		})
	}
}

// TestOffersAreReadAgain packs with one space at prices and bounds that change in
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
			offers[i].Max = (round + i) % 3
			if round%4 == 3 {
				offers[i].Allocatable.CPU -= 300
			}
		}
		fresh := placement.New(snapshot.Templates, snapshot.Zones)
		for range 2 { // the second time the offers are known
			bins, unplaced, total := placement.Pack(kept, snapshot.Pods, offers)
			want, wantLeft, wantTotal := placement.Pack(fresh, snapshot.Pods, offers)
			if total != wantTotal || !reflect.DeepEqual(bins, want) || !slices.Equal(unplaced, wantLeft) {
				t.Fatalf("round %d: %v for %v, want %v for %v", round, bins, total, want, wantTotal)
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

func BenchmarkProvision(b *testing.B) { benchmarkBuying(b, false) }
func BenchmarkPack(b *testing.B)      { benchmarkBuying(b, true) }

func benchmarkBuying(b *testing.B, pack bool) {
	for _, topology := range []bool{false, true} {
		for _, pods := range []int{20, 8000} {
			b.Run(fmt.Sprintf("topology=%v/pods=%d", topology, pods), func(b *testing.B) {
				sp, list := pendingFleet(pods, topology)
				offers := market(84)
				b.ReportAllocs()
				var total policy.Money
				bins := 0
				for b.Loop() {
					if pack {
						var x []placement.Bin
						x, _, total = placement.Pack(sp, list, offers)
						bins = len(x)
						continue
					}
					x, _ := placement.Provision(sp, list, offers)
					bins, total = len(x), 0
					for i := range x {
						total += offers[x[i].Offers[0]].Price
					}
				}
				b.ReportMetric(total.Float(), "$/h")
				b.ReportMetric(float64(bins), "bins")
			})
		}
	}
}
