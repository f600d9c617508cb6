package scenarios

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/karpenter"
)

// A nodeOverlay is a NodeOverlay of Karpenter. It changes the price at which Karpenter evaluates a
// node, and not the price that is billed.
type nodeOverlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              karpenter.NodeOverlaySpec `json:"spec"`
}

// A PriceChange is a price adjustment of a NodeOverlay. If Percent is set, Value is a percentage to
// add; otherwise, if More is set, it is an amount to add, in dollars per hour; otherwise, it is the
// new price in dollars per hour.
type PriceChange struct {
	Value         float64
	More, Percent bool
}

// Of returns the adjusted price. It is at least a millionth of a dollar, since 0 means no price.
func (c PriceChange) Of(price policy.Money) policy.Money {
	switch {
	case c.Percent:
		price = price.Times(1 + c.Value/100)
	case c.More:
		price += policy.Dollars(c.Value)
	default:
		price = policy.Dollars(c.Value)
	}
	return max(price, 1)
}

// An overlay is a parsed NodeOverlay.
type overlay struct {
	doc    *document
	name   string
	weight int32
	asks   []policy.Requirement
	change PriceChange
}

// The formats that Karpenter accepts for a price and for a price adjustment.
var (
	overlayPrice  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(\.\d+)?$`) })
	overlayChange = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$`)
	})
)

// readNodeOverlay reads a NodeOverlay.
func (sc *Scenario) readNodeOverlay(doc *document, o *nodeOverlay) []error {
	var errs []error
	fail := func(path []string, format string, args ...any) {
		errs = append(errs, doc.problem(append([]string{"spec"}, path...), format, args...))
	}
	x := overlay{doc: doc, name: o.Name}
	if w := o.Spec.Weight; w != nil {
		if x.weight = *w; *w < 1 || *w > 10_000 {
			fail([]string{"weight"}, "%d is not from 1 to 10000", *w)
		}
	}
	for i := range o.Spec.Requirements {
		q := &o.Spec.Requirements[i]
		r := requirementOf(&karpenter.Requirement{Key: q.Key, Operator: q.Operator, Values: q.Values})
		if r.Key == labelZoneID {
			fail([]string{"requirements", Index(i), "key"}, "%q: name zones by %s", q.Key, corev1.LabelTopologyZone)
		}
		x.asks = append(x.asks, *r)
	}
	if len(o.Spec.Capacity) > 0 {
		fail([]string{"capacity"}, "extended resources that an overlay adds are not simulated")
	}
	price, change := o.Spec.Price, o.Spec.PriceAdjustment
	switch {
	case price != nil && change != nil:
		fail([]string{"price"}, "priceAdjustment is set too")
	case price != nil && !overlayPrice().MatchString(*price):
		fail([]string{"price"}, "%q is not a price in dollars an hour", *price)
	case change != nil && !overlayChange().MatchString(*change):
		fail([]string{"priceAdjustment"}, "%q is not a price change such as +0.5 or -15%%", *change)
	case price != nil:
		x.change.Value, _ = strconv.ParseFloat(*price, 64)
	case change != nil:
		x.change.More, x.change.Percent = true, strings.HasSuffix(*change, "%")
		x.change.Value, _ = strconv.ParseFloat(strings.TrimSuffix(*change, "%"), 64)
	default:
		sc.warn("NodeOverlay %s has no effect: it changes no price", o.Name)
	}
	if price != nil || change != nil {
		sc.overlays = append(sc.overlays, x)
	}
	return errs
}

// order compares overlays in the order in which Karpenter applies them, by descending weight and
// name. The first match applies.
func (x *overlay) order(y *overlay) int {
	return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(y.name, x.name))
}

// overlay sets the prices at which Karpenter evaluates nodes of NodePools. If two overlays of equal
// weight change the same price, Karpenter applies the first that it processes and disables the
// other; such overlays are an error here.
func (w *BoundScenario) overlay(sc *Scenario) error {
	overlays := slices.Clone(sc.overlays)
	slices.SortFunc(overlays, func(a, b overlay) int { return a.order(&b) })
	used := make([]bool, len(overlays))
	for p, own := range w.NodePools {
		if own == nil || len(overlays) == 0 {
			continue
		}
		own.Prices = map[policy.MarketID]PriceChange{}
		for _, id := range w.BoughtBy(policy.PoolID(p)) {
			first := -1
			for i := range overlays {
				x := &overlays[i]
				if !x.matches(w, &w.Pools[p], &w.Markets[id]) {
					continue
				}
				used[i] = true
				if first < 0 {
					first = i
					own.Prices[id] = x.change
				} else if y := &overlays[first]; x.weight == y.weight {
					return x.doc.problem([]string{"spec", "weight"},
						"NodeOverlay %s of the same weight changes the price of %s too: Karpenter applies one of them", y.name, w.Markets[id].Name)
				}
			}
		}
	}
	for i := range overlays {
		if !used[i] {
			w.Warnings = append(w.Warnings, fmt.Sprintf("NodeOverlay %s has no effect: no NodePool may buy what it is for",
				overlays[i].name))
		}
	}
	return nil
}

// matches reports whether an overlay applies to the nodes that a NodePool buys in a market
// (getOverlaidOfferings in nodeoverlay/controller.go).
func (x *overlay) matches(w *BoundScenario, p *policy.Pool, m *policy.Market) bool {
	t := &w.Types[m.Type]
	for i := range x.asks {
		r := &x.asks[i]
		value, there := "", true
		switch r.Key {
		case karpenter.LabelCapacityType:
			value = m.Capacity.String()
		case karpenter.LabelNodePool:
			value = p.Name
		case corev1.LabelTopologyZone:
			value = w.Zones[m.Zone]
		case corev1.LabelTopologyRegion:
			value = m.Region
		case corev1.LabelOSStable:
			value = "linux"
		case corev1.LabelArchStable:
			value = t.Arch
		case corev1.LabelInstanceTypeStable:
			value = t.Name
		default:
			if value, there = policy.FindLabel(p.Labels, r.Key); !there {
				value, there = policy.FindLabel(t.Labels, r.Key)
			}
		}
		if !r.MetBy(value, there) {
			return false
		}
	}
	return true
}
