package placement_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestGoldenBinpackProven packs no case dearer than Pack does or than its own
// bound, and proves the small ones.
func TestGoldenBinpackProven(t *testing.T) {
	var cases []goldenPacking
	if err := json.Unmarshal(policytest.Golden(t, "karpetrack_binpack.json"), &cases); err != nil {
		t.Fatal(err)
	}
	packed, proven, cheaper := 0, 0, 0
	for i := range cases {
		sp, pods, offers := cases[i].space()
		_, _, before := placement.Pack(sp, pods, offers)
		p := placement.PackProven(sp, pods, offers)
		if p.Total > before || p.Bound > p.Total || p.Proven && p.Total == 0 && len(p.Bins) > 0 {
			t.Errorf("case %d: %v after %v, bound %v, proven %v", i, p.Total, before, p.Bound, p.Proven)
		}
		if failed := len(p.Unplaced) > 0; failed != (cases[i].Want.Error != "") {
			t.Errorf("case %d: %d pods unplaced, want error %q", i, len(p.Unplaced), cases[i].Want.Error)
		}
		if cases[i].Want.Error != "" {
			continue
		}
		packed++
		if p.Proven {
			proven++
		}
		if p.Total < before {
			cheaper++
		}
	}
	t.Logf("%d of %d packings are proven to be the cheapest, %d are cheaper than without the search", proven, packed, cheaper)
	if 2*proven < packed {
		t.Errorf("only %d of %d packings are proven", proven, packed)
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

// least returns the least price of nodes for the pods from next on, besides nodes
// that are open with what is used of them, or -1.
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

// TestPackProvenIsLeast compares with looking through everything: what is proven
// is the least, no bound is above it, and the bins hold what they are meant to.
func TestPackProvenIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrate(t)
		sp, pods := c.space()
		p := placement.PackProven(sp, pods, c.offers)
		for _, b := range p.Bins {
			sum := policy.Resources{}
			for _, k := range b.Pods {
				sum = sum.Plus(c.pods[k])
			}
			for _, o := range b.Offers {
				if !sum.Within(c.offers[o].Allocatable) {
					t.Fatalf("a bin holds %+v of %+v", sum, c.offers[o].Allocatable)
				}
			}
		}
		all := c.pods
		c.pods = nil
		for i := range all {
			if !slices.Contains(p.Unplaced, i) {
				c.pods = append(c.pods, all[i])
			}
		}
		want := c.least(0, nil, nil)
		switch {
		case !p.Proven:
			t.Fatalf("six pods are not proven: %+v", p)
		case p.Total != want || p.Bound > want:
			t.Fatalf("packed for %v, bound %v, the least is %v", p.Total, p.Bound, want)
		}
	})
}

// TestPackProvenFindsMore packs many small crates, some of which Pack does not
// pack as cheaply as can be.
func TestPackProvenFindsMore(t *testing.T) {
	state, better := uint64(1), 0
	draw := func(n uint64) int64 {
		state = state*6364136223846793005 + 1442695040888963407
		return int64(state >> 33 % n)
	}
	for i := range 60 {
		var c crate
		for range 6 {
			c.pods = append(c.pods, policy.Resources{CPU: 100 * (2 + draw(6)), Memory: gib * (1 + draw(5)), Pods: 1})
		}
		for k := range 3 {
			size := 8 + draw(8)
			c.offers = append(c.offers, placement.Offer{
				Market: policy.MarketID(k), Price: policy.Money(size*10+draw(20)) * 1000,
				Allocatable: policy.Resources{CPU: 100 * size, Memory: gib * (5 + draw(8)), Pods: 50},
			})
		}
		sp, pods := c.space()
		_, unplaced, before := placement.Pack(sp, pods, c.offers)
		p := placement.PackProven(sp, pods, c.offers)
		if len(unplaced) > 0 {
			continue
		}
		if want := c.least(0, nil, nil); !p.Proven || p.Total != want || p.Bound > want {
			t.Errorf("crate %d: %v, bound %v, proven %v; the least is %v", i, p.Total, p.Bound, p.Proven, want)
		}
		if p.Total < before {
			better++
		}
	}
	if better == 0 {
		t.Error("no crate is packed better than Pack does")
	}
	t.Logf("%d crates are packed better than Pack does", better)
}

// TestPackProvenIsCut ends a search that would take too long, and claims nothing
// then but its bound.
func TestPackProvenIsCut(t *testing.T) {
	var c crate
	for i := range int64(60) {
		c.pods = append(c.pods, policy.Resources{CPU: 100 * (7 + i*5%11), Memory: (200 + i*7%13*37) << 20, Pods: 1})
	}
	slices.SortFunc(c.pods, func(a, b policy.Resources) int {
		return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Memory, b.Memory))
	})
	for i := range c.pods {
		c.pods[i] = c.pods[i/4*4] // fifteen kinds
	}
	for k, size := range []int64{31, 43, 57} {
		c.offers = append(c.offers, placement.Offer{
			Market: policy.MarketID(k), Price: policy.Money(size*1000 + int64(k)*1700),
			Allocatable: policy.Resources{CPU: 100 * size, Memory: size * 37 << 20, Pods: 50},
		})
	}
	var templates []policy.Template
	var pods []policy.Pod
	for i := range c.pods {
		if i%4 == 0 {
			templates = append(templates, policy.Template{ID: policy.TemplateID(i / 4), Workload: policy.None, Name: fmt.Sprint(i), Requests: c.pods[i]})
		}
		pods = append(pods, policy.Pod{ID: policy.PodID(i), Template: policy.TemplateID(i / 4), VolumeZone: policy.None})
	}
	p := placement.PackProven(placement.New(templates, nil), pods, c.offers)
	if p.Proven || p.Bound <= 0 || p.Bound >= p.Total || len(p.Unplaced) > 0 {
		t.Errorf("%d bins for %v, bound %v, proven %v, %d unplaced", len(p.Bins), p.Total, p.Bound, p.Proven, len(p.Unplaced))
	}
	if !strings.Contains(p.Quality(), "less than") {
		t.Error(p.Quality())
	}
}

func TestQuality(t *testing.T) {
	for _, c := range []struct {
		p    placement.Packing
		says string
	}{
		{placement.Packing{Total: 10, Bound: 10, Proven: true}, "no packing costs less"},
		{placement.Packing{Total: 200_000, Bound: 150_000}, "less than $0.15"},
		{placement.Packing{Total: 200_000}, "unknown"},
	} {
		if q := c.p.Quality(); !strings.Contains(q, c.says) {
			t.Errorf("%+v: %q does not say %q", c.p, q, c.says)
		}
	}
}

// TestPackProvenLeavesTheSpace packs twice and gets the same.
func TestPackProvenLeavesTheSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawCluster(t)
		var offers []placement.Offer
		for i := range rapid.IntRange(1, 4).Draw(t, "offers") {
			offers = append(offers, drawOffer(t, i))
		}
		var pods []policy.Pod
		for i := range w.pods {
			if w.pods[i].Node < 0 {
				pods = append(pods, w.pods[i])
			}
		}
		_, left, before := placement.Pack(w.space, pods, offers)
		first := placement.PackProven(w.space, pods, offers)
		second := placement.PackProven(w.space, pods, offers)
		_, _, after := placement.Pack(w.space, pods, offers)
		if before != after || first.Total != second.Total || len(first.Bins) != len(second.Bins) {
			t.Fatalf("the space was changed: %v and %v, %v and %v", before, after, first.Total, second.Total)
		}
		if len(first.Unplaced) != len(left) || first.Total > before {
			t.Fatalf("%d unplaced for %v, without the search %d for %v", len(first.Unplaced), first.Total, len(left), before)
		}
	})
}

// TestPackWithinPacksAlike sets limits to packings in random clusters: what is refused
// would have cost more, and nothing else differs from PackProven.
func TestPackWithinPacksAlike(t *testing.T) {
	refused, packed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawCluster(t)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			w.change(t)
		}
		var offers []placement.Offer
		for i := range rapid.IntRange(1, 6).Draw(t, "offers") {
			offers = append(offers, drawOffer(t, i))
		}
		pods, _ := w.pending()
		if len(pods) == 0 {
			return
		}
		want := placement.PackProven(w.space, pods, offers)
		most := want.Total + policy.Money(rapid.IntRange(-3, 3).Draw(t, "more"))*50_000
		got, ok := placement.PackWithin(w.space, pods, offers, most)
		w.compare(t, "after", w.space)
		switch {
		case ok && !reflect.DeepEqual(got, want):
			t.Fatalf("within %v: %+v, want %+v", most, got, want)
		case !ok && len(want.Unplaced) == 0 && want.Total <= most:
			t.Fatalf("refused within %v, and costs %v", most, want.Total)
		case ok:
			packed++
		default:
			refused++
		}
	})
	if refused == 0 || packed == 0 {
		t.Errorf("%d refused, %d packed: a limit decides nothing", refused, packed)
	}
}

// TestPackWithinIsTight gives the limit one millionth too little where the least
// is proven: nothing is packed. At the least itself it is.
func TestPackWithinIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrate(t)
		sp, pods := c.space()
		p := placement.PackProven(sp, pods, c.offers)
		if !p.Proven || len(p.Unplaced) > 0 {
			return
		}
		if _, ok := placement.PackWithin(sp, pods, c.offers, p.Total-1); ok {
			t.Fatalf("packed within %v, and costs %v", p.Total-1, p.Total)
		}
		if _, ok := placement.PackWithin(sp, pods, c.offers, p.Total); !ok {
			t.Fatalf("not packed within %v, which it costs", p.Total)
		}
	})
}
