package top

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
)

// A Table is the nodes of a cluster at an instant.
type Table struct {
	At     time.Time `json:"at"`
	Nodes  []Node    `json:"nodes"`
	Totals Totals    `json:"totals"`

	// Sources are where prices come from, and Notes what is unknown and why.
	Sources []string `json:"price_sources"`
	Notes   []string `json:"notes"`
}

// A Node is a node as it is listed. What is unknown is empty or nil.
type Node struct {
	Name string `json:"name"`

	// Pool is the NodePool or node group that the node belongs to.
	Pool string `json:"pool,omitempty"`

	Provider string `json:"provider,omitempty"`
	Region   string `json:"region,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Type     string `json:"instance_type,omitempty"`
	zoneID   string // the same zone has this ID in every account of AWS

	// Capacity is "spot", "on-demand" or "reserved".
	Capacity string `json:"capacity_type"`

	// Price is in dollars an hour. PriceOf names its source.
	Price   *float64 `json:"usd_per_hour,omitempty"`
	PriceOf string   `json:"price_source,omitempty"`

	Created time.Time `json:"created"`
	Age     float64   `json:"age_seconds"`

	// VCPU and Memory are what the machine has.
	VCPU   float64 `json:"vcpu"`
	Memory float64 `json:"memory_gib"`

	// CPUUse and MemoryUse are the shares of what is allocatable that pods request.
	CPUUse    *float64 `json:"cpu_requested,omitempty"`
	MemoryUse *float64 `json:"memory_requested,omitempty"`
	Pods      *int     `json:"pods,omitempty"`

	// Notices are what is announced of the node and done to it.
	Notices []string `json:"notices,omitempty"`
}

// Totals are the sums over a table.
type Totals struct {
	Nodes    int     `json:"nodes"`
	Spot     int     `json:"spot_nodes"`
	VCPU     float64 `json:"vcpu"`
	SpotVCPU float64 `json:"spot_vcpu"`

	// Priced is how many nodes have a price. The dollars are those of these nodes.
	Priced   int     `json:"priced_nodes"`
	PerHour  float64 `json:"usd_per_hour"`
	PerMonth float64 `json:"usd_per_month"`
}

func totalsOf(nodes []Node) Totals {
	t := Totals{Nodes: len(nodes)}
	for i := range nodes {
		n := &nodes[i]
		t.VCPU += n.VCPU
		if n.Capacity == policy.Spot.String() {
			t.Spot++
			t.SpotVCPU += n.VCPU
		}
		if n.Price != nil {
			t.Priced++
			t.PerHour += *n.Price
		}
	}
	t.PerMonth = t.PerHour * policy.HoursPerMonth
	return t
}

// orders are what a table can be sorted by: unknown values are last, and equal ones are
// ascending by name.
var orders = map[string]func(a, b *Node) int{
	"age":   func(a, b *Node) int { return a.Created.Compare(b.Created) },
	"price": func(a, b *Node) int { return descending(a.Price, b.Price) },
	"use":   func(a, b *Node) int { return descending(a.use(), b.use()) },
	"pool": func(a, b *Node) int {
		return cmp.Or(cmp.Compare(bit(a.Pool == ""), bit(b.Pool == "")), cmp.Compare(a.Pool, b.Pool))
	},
}

// orderNames are the keys of orders in the order of the help.
var orderNames = []string{"age", "price", "use", "pool"}

// Sort sorts the nodes by one of the columns age, price, use and pool.
func (t *Table) Sort(by string) error {
	compare, ok := orders[by]
	if !ok {
		return errors.New("give one of age, price, use, pool" + cli.Meant(by, orderNames))
	}
	slices.SortFunc(t.Nodes, func(a, b Node) int { return cmp.Or(compare(&a, &b), cmp.Compare(a.Name, b.Name)) })
	return nil
}

// use is the larger of the two shares that pods request.
func (n *Node) use() *float64 {
	if n.CPUUse == nil || n.MemoryUse != nil && *n.MemoryUse > *n.CPUUse {
		return n.MemoryUse
	}
	return n.CPUUse
}

func descending(a, b *float64) int {
	if a == nil || b == nil {
		return cmp.Compare(bit(a == nil), bit(b == nil))
	}
	return cmp.Compare(*b, *a)
}

func bit(x bool) int {
	if x {
		return 1
	}
	return 0
}
