package bill

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// The names that OpenCost uses for resources that no pod requested, and for pods that lack the key
// by which costs are aggregated.
const (
	Idle        = "__idle__"
	Unallocated = "__unallocated__"
)

// The prices per hour of a core, of a GiB of memory and of a GPU from configs/default.json in
// github.com/opencost/opencost. Only their ratios are used: as in GetNodeCost of pkg/costmodel, the
// cost of a node is divided in proportion to cores × CPU, GiB × RAM and devices × GPU.
const (
	defaultCPU = 0.031611
	defaultRAM = 0.004237
	defaultGPU = 0.95
)

const bytesPerGiB = 1 << 30

// allocationStep is the resolution of prices when the cost of a node is divided among pods: within
// an hour, each minute of a node costs the same.
const allocationStep = time.Hour

// An amount is a quantity of CPU, memory and GPU, in that order.
type amount [3]float64

// amountOf returns r in cores, bytes and devices.
func amountOf(r policy.Resources) amount {
	return amount{float64(r.CPU) / 1000, float64(r.Memory), float64(r.GPU)}
}

// costs divides the cost of a node of size a among its CPU, memory and GPU.
func (a amount) costs(cost float64) amount {
	weights := amount{float64(a[0] * defaultCPU), float64(a[1] / bytesPerGiB * defaultRAM), float64(a[2] * defaultGPU)}
	sum := weights[0] + weights[1] + weights[2]
	if sum == 0 {
		return amount{cost} // the node's resources are unknown: attribute all to CPU
	}
	for i := range weights {
		weights[i] = float64(cost * weights[i] / sum)
	}
	return weights
}

// An aggregate returns the name under which the cost of a pod of owner o on node n is reported, and
// the properties that all pods with this name share.
type aggregate func(o *Owner, n *Node) (name string, p Properties)

// Aggregates lists the values of the first parameter of [Usage.Allocate].
func Aggregates() []string { return []string{"namespace", "controller", "node", "pool", "label:KEY"} }

// aggregateBy returns the aggregate named text.
func aggregateBy(text string) (aggregate, error) {
	switch key, isLabel := strings.CutPrefix(text, "label:"); {
	case text == "namespace":
		return func(o *Owner, _ *Node) (string, Properties) { return o.Namespace, Properties{Namespace: o.Namespace} }, nil
	case text == "controller":
		return func(o *Owner, _ *Node) (string, Properties) {
			if o.Kind == "" {
				return Unallocated, Properties{}
			}
			return o.Kind + ":" + o.Name, Properties{Controller: o.Name, ControllerKind: o.Kind}
		}, nil
	case text == "node":
		return func(_ *Owner, n *Node) (string, Properties) { return n.Name, Properties{Node: n.Name} }, nil
	case text == "pool":
		return func(_ *Owner, n *Node) (string, Properties) { return cmp.Or(n.Pool, Unallocated), Properties{} }, nil
	case isLabel && key != "":
		return func(o *Owner, _ *Node) (string, Properties) {
			for _, l := range o.Labels {
				if l.Key == key || sanitized(l.Key) == key {
					return l.Value, Properties{Labels: map[string]string{sanitized(key): l.Value}}
				}
			}
			return Unallocated, Properties{}
		}, nil
	}
	return nil, fmt.Errorf("%q is not one of %s", text, strings.Join(Aggregates(), ", "))
}

// CheckAggregate returns an error if text does not name an aggregate.
func CheckAggregate(text string) error {
	_, err := aggregateBy(text)
	return err
}

// sanitized returns a label's key as Prometheus, and therefore OpenCost, writes it.
func sanitized(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, key)
}

// A portion is the resources and the cost of the pods with one name in an interval.
type portion struct {
	properties Properties
	from, to   policy.Time
	held, cost amount // held is in resource-hours, cost in micro-dollars
}

// add adds resources held during span and their cost.
func (p *portion) add(span billing.Span, held, cost amount) {
	if p.to == 0 {
		p.from, p.to = span.From, span.To
	}
	p.from, p.to = min(p.from, span.From), max(p.to, span.To)
	for i := range held {
		p.held[i] += float64(held[i] * span.Length().Hours())
		p.cost[i] += cost[i]
	}
}

// Allocate divides the bill of u among pods by their requests, for each period of length every, or
// for the whole window if every is 0. by is one of [Aggregates]. Resources of a node that no pod
// requests are reported as [Idle]. The costs of a period sum to its bill, to the micro-dollar.
func (u *Usage) Allocate(by string, every time.Duration) ([]Set, error) {
	named, err := aggregateBy(by)
	if err != nil {
		return nil, err
	}
	charges, err := u.Meter(allocationStep)
	if err != nil {
		return nil, err
	}
	pods := u.podsByNode()
	period := func(t policy.Time) billing.Span { return periodOf(t, every) }
	if every == 0 {
		period = func(policy.Time) billing.Span { return u.Window }
	}
	var sets []Set
	for charges, window := range u.periods(charges, period) {
		sets = append(sets, u.allocate(charges, window, pods, named))
	}
	return sets, nil
}

// periods groups charges, which must ascend by time, by period, and clips each period to the
// window.
func (u *Usage) periods(charges []Charge, of func(policy.Time) billing.Span) iter.Seq2[[]Charge, billing.Span] {
	return func(yield func([]Charge, billing.Span) bool) {
		for len(charges) > 0 {
			p := of(charges[0].Period.From)
			n, _ := slices.BinarySearchFunc(charges, p.To, func(c Charge, t policy.Time) int { return int(c.Period.From - t) })
			if !yield(charges[:n], p.Clip(u.Window)) {
				return
			}
			charges = charges[n:]
		}
	}
}

// podsByNode returns the pods of each node, indexed like u.Nodes.
func (u *Usage) podsByNode() [][]*Pod {
	pods := make([][]*Pod, len(u.Nodes))
	for i := range u.Pods {
		p := &u.Pods[i]
		pods[p.Node] = append(pods[p.Node], p)
	}
	return pods
}

// allocate divides the charges of one period among pods.
func (u *Usage) allocate(charges []Charge, window billing.Span, pods [][]*Pod, named aggregate) Set {
	portions, all, bill := map[string]*portion{}, &portion{}, policy.Money(0)
	for i := range charges {
		c := &charges[i]
		n := &u.Nodes[c.Node]
		size := amountOf(u.Types[u.Markets[n.Market].Type].Capacity)
		ran := n.life().Clip(u.Window).Clip(c.Period)
		billed := c.Billed + c.Fees.Total()
		costs := size.costs(float64(billed))
		all.add(ran, size, costs)
		bill += billed
		for _, p := range pods[c.Node] {
			on := billing.Span{From: p.From, To: p.To}.Clip(ran)
			if on.To <= on.From {
				continue
			}
			held := amountOf(u.Owners[p.Owner].Requests)
			var cost amount
			for k := range cost {
				if size[k] > 0 {
					cost[k] = float64(costs[k] * held[k] / size[k] * float64(on.Length()) / float64(ran.Length()))
				}
			}
			name, properties := named(&u.Owners[p.Owner], n)
			if portions[name] == nil {
				portions[name] = &portion{properties: properties}
			}
			portions[name].add(on, held, cost)
		}
	}
	return setOf(portions, all, bill, window)
}

// setOf rounds the cost of each name to the micro-dollar, and attributes the rest of the bill and
// of the nodes' resources to [Idle].
func setOf(portions map[string]*portion, all *portion, bill policy.Money, window billing.Span) Set {
	set := Set{}
	idle := *all
	left := [3]policy.Money{policy.Money(math.Round(all.cost[0])), 0, policy.Money(math.Round(all.cost[2]))}
	left[1] = bill - left[0] - left[2]
	for _, name := range slices.Sorted(maps.Keys(portions)) {
		p := portions[name]
		var cost [3]policy.Money
		for k := range cost {
			cost[k] = policy.Money(math.Round(p.cost[k]))
			left[k] -= cost[k]
			idle.held[k] = max(0, idle.held[k]-p.held[k])
		}
		set[name] = allocationOf(name, p, cost, window)
	}
	set[Idle] = allocationOf(Idle, &idle, left, window)
	return set
}
