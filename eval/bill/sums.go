package bill

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The keys by which [Usage.Sums] groups a bill.
const (
	ByPool      = "pool"
	ByNamespace = "namespace"
	ByDay       = "day"
)

// A Sum is the part of the bill for the nodes of a pool, the nodes on a day, or the pods of a
// namespace.
type Sum struct {
	Name   string
	Billed policy.Money

	// NodeHours and SpotHours are the hours of all nodes and of Spot nodes; 0 for a namespace.
	NodeHours, SpotHours float64
}

// Sums divides the bill of u by pool, namespace or day. The parts sum to the bill. Days are in
// order of time; pools and namespaces are in descending order of cost. Resources that no pod
// requested are reported as [Idle].
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

// namespaceSums divides the bill among the namespaces of pods.
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

// sortSums sorts sums by day, or else by descending cost.
func sortSums(all []Sum, by string) {
	slices.SortFunc(all, func(a, b Sum) int {
		byCost := cmp.Compare(b.Billed, a.Billed)
		if by == ByDay {
			byCost = 0
		}
		return cmp.Or(byCost, strings.Compare(a.Name, b.Name))
	})
}
