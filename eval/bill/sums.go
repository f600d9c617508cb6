package bill

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// What a bill can be summed up by.
const (
	ByPool      = "pool"
	ByNamespace = "namespace"
	ByDay       = "day"
)

// A Sum is a part of the bill: of the nodes of a pool or of a day, or of the pods of a namespace.
type Sum struct {
	Name   string
	Billed policy.Money

	// NodeHours and SpotHours are those of the nodes; 0 for a namespace.
	NodeHours, SpotHours float64
}

// Sums divides the bill of u by pool, namespace or day. The parts add up to the bill; they are in
// the order of the days, else the most expensive first. What no pod requested is [Idle].
func (u *Usage) Sums(by string) ([]Sum, error) {
	if by == ByNamespace {
		return u.namespaceSums()
	}
	charges, err := u.Meter(24 * time.Hour)
	if err != nil {
		return nil, err
	}
	var out []Sum
	for i := range charges {
		c := &charges[i]
		n := &u.Nodes[c.Node]
		name := cmp.Or(n.Pool, Unallocated)
		if by == ByDay {
			name = c.Period.From.Std().Format(time.DateOnly)
		}
		at := slices.IndexFunc(out, func(s Sum) bool { return s.Name == name })
		if at < 0 {
			at = len(out)
			out = append(out, Sum{Name: name})
		}
		s := &out[at]
		s.Billed += c.Billed + c.Fees.Total()
		ran := n.life().Clip(u.Window).Clip(c.Period).Length().Hours()
		s.NodeHours += ran
		if u.Markets[n.Market].Capacity == policy.Spot {
			s.SpotHours += ran
		}
	}
	sortSums(out, by)
	return out, nil
}

// namespaceSums divides the bill by the namespaces of pods.
func (u *Usage) namespaceSums() ([]Sum, error) {
	sets, err := u.Allocate(ByNamespace, 0)
	if err != nil {
		return nil, err
	}
	var out []Sum
	for _, set := range sets {
		for name, a := range set {
			out = append(out, Sum{Name: name, Billed: policy.Dollars(a.TotalCost)})
		}
	}
	sortSums(out, ByNamespace)
	return out, nil
}

// sortSums brings sums in their order.
func sortSums(all []Sum, by string) {
	slices.SortFunc(all, func(a, b Sum) int {
		byCost := cmp.Compare(b.Billed, a.Billed)
		if by == ByDay {
			byCost = 0
		}
		return cmp.Or(byCost, strings.Compare(a.Name, b.Name))
	})
}
