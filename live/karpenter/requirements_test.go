package karpenter

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// offersIn draws a set of markets.
func offersIn(t *rapid.T, label string) []Offer {
	var all []Offer
	for _, typ := range []string{"a", "b", "c", "d"} {
		for _, zone := range []string{"1", "2", "3"} {
			if rapid.Bool().Draw(t, label+typ+zone) {
				all = append(all, Offer{typ, zone})
			}
		}
	}
	return all
}

// asNodePool returns a NodePool with the requirements.
func asNodePool(reqs []karpv1.NodeSelectorRequirementWithMinValues) *karpv1.NodePool {
	n := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web-spot"}}
	n.Spec.Template.Spec.Requirements = reqs
	n.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "g", Kind: "K", Name: "default"}
	return n
}

// claimIn returns a claim with a machine in a market, made from the NodePool.
func claimIn(n *karpv1.NodePool, o Offer) karpv1.NodeClaim {
	return karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				karpv1.NodePoolLabelKey: n.Name, corev1.LabelInstanceTypeStable: o.Type, corev1.LabelTopologyZone: o.Zone,
				karpv1.CapacityTypeLabelKey: "spot",
			},
			Annotations: map[string]string{karpv1.NodePoolHashAnnotationKey: n.Hash(),
				karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion},
		},
		Status: karpv1.NodeClaimStatus{ProviderID: "kwok://x"},
	}
}

// TestRule02RequirementsDriftNothing holds the requirements to Karpenter's own
// judgement: whatever is wanted and whatever lives, no node of them drifts, what is
// wanted may be bought, and no other type and no other zone.
func TestRule02RequirementsDriftNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted, live := offersIn(t, "wanted"), offersIn(t, "live")
		reqs := Requirements("spot", wanted, live)
		if (reqs == nil) != (len(wanted) == 0 && len(live) == 0) {
			t.Fatalf("requirements %v for %v and %v", reqs, wanted, live)
		}
		n := asNodePool(reqs)
		var claims []karpv1.NodeClaim
		for _, o := range live {
			claims = append(claims, claimIn(n, o))
		}
		if d := DriftCount(n, claims); d != 0 {
			t.Fatalf("%d of %d nodes drift; wanted %v, live %v, requirements %v", d, len(live), wanted, live, reqs)
		}
		for _, o := range wanted {
			if c := claimIn(n, o); DriftCount(n, []karpv1.NodeClaim{c}) != 0 {
				t.Fatalf("%v may not be bought", o)
			}
		}
		for _, half := range offersOf(reqs) {
			if !slices.ContainsFunc(slices.Concat(wanted, live), func(o Offer) bool { return half.Type == o.Type || half.Zone == o.Zone }) {
				t.Fatalf("%v is neither wanted nor lived in", half)
			}
		}
	})
}

// TestProduct: a claim requests nothing that was not wanted, and as many pairs of type and zone as
// possible.
func TestProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := offersIn(t, "wanted")
		types, zones := product(wanted)
		for _, typ := range types {
			for _, zone := range zones {
				if !slices.Contains(wanted, Offer{typ, zone}) {
					t.Fatalf("%s in %s is asked for, wanted is %v", typ, zone, wanted)
				}
			}
		}
		if best := largestProduct(wanted); len(types)*len(zones) != best {
			t.Fatalf("%d pairs are asked for of %v, want %d", len(types)*len(zones), wanted, best)
		}
	})
}

// largestProduct tries all sets of zones.
func largestProduct(offers []Offer) int {
	best := 0
	zones := []string{"1", "2", "3"}
	for set := 1; set < 8; set++ {
		types, n := 0, 0
		for i := range zones {
			n += set >> i & 1
		}
		for _, typ := range []string{"a", "b", "c", "d"} {
			all := true
			for i, z := range zones {
				all = all && (set>>i&1 == 0 || slices.Contains(offers, Offer{typ, z}))
			}
			if all {
				types++
			}
		}
		best = max(best, types*n)
	}
	return best
}

// TestDriftCount counts what Karpenter would replace: nodes outside, nodes of another
// template; not claims that have no machine, nor those of other NodePools.
func TestDriftCount(t *testing.T) {
	n := asNodePool(Requirements("spot", []Offer{{"a", "1"}, {"a", "2"}}, nil))
	inside, outside := claimIn(n, Offer{"a", "1"}), claimIn(n, Offer{"b", "1"})
	unlaunched, other := outside, claimIn(n, Offer{"b", "1"})
	unlaunched.Status.ProviderID = ""
	other.Labels = map[string]string{karpv1.NodePoolLabelKey: "else"}
	old := claimIn(n, Offer{"a", "2"})
	old.Annotations = map[string]string{karpv1.NodePoolHashAnnotationKey: "1",
		karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion}
	older := claimIn(n, Offer{"a", "2"})
	older.Annotations = map[string]string{karpv1.NodePoolHashAnnotationKey: "1", karpv1.NodePoolHashVersionAnnotationKey: "v1"}
	for _, c := range []struct {
		name string
		in   karpv1.NodeClaim
		want int
	}{{"inside", inside, 0}, {"outside", outside, 1}, {"no machine", unlaunched, 0}, {"another NodePool's", other, 0},
		{"another template", old, 1}, {"a hash that cannot be compared", older, 0}} {
		if got := DriftCount(n, []karpv1.NodeClaim{c.in}); got != c.want {
			t.Errorf("%s: %d drift, want %d", c.name, got, c.want)
		}
	}
}

// DriftCount returns how many of the claims Karpenter would find drifted, and so
// replace, were pool as given: those with a machine that its requirements exclude,
// or that were made from another template. Claims of other NodePools do not count.
func DriftCount(pool *karpv1.NodePool, claims []karpv1.NodeClaim) int {
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(pool.Spec.Template.Spec.Requirements...)
	hash, n := pool.Hash(), 0
	for i := range claims {
		c := &claims[i]
		if c.Labels[karpv1.NodePoolLabelKey] != pool.Name || !launched(c) {
			continue
		}
		outside := scheduling.NewLabelRequirements(c.Labels).Compatible(wanted) != nil
		version, made := c.Annotations[karpv1.NodePoolHashVersionAnnotationKey], c.Annotations[karpv1.NodePoolHashAnnotationKey]
		if outside || version == karpv1.NodePoolHashVersion && made != "" && made != hash {
			n++
		}
	}
	return n
}
