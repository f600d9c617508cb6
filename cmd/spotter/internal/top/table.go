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

	// Sources are the sources of prices, and Notes describe what is unknown and why.
	Sources []string `json:"price_sources"`
	Notes   []string `json:"notes"`
}

// A Node is a row of the table. Unknown values are empty or nil.
type Node struct {
	Name string `json:"name"`

	// Pool is the NodePool or node group of the node.
	Pool string `json:"pool,omitempty"`

	Provider string `json:"provider,omitempty"`
	Region   string `json:"region,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Type     string `json:"instance_type,omitempty"`
	zoneID   string // zone ID, which is the same in all AWS accounts

	// Capacity is "spot", "on-demand" or "reserved".
	Capacity string `json:"capacity_type"`

	// Price is in dollars per hour. PriceOf is its source.
	Price   *float64 `json:"usd_per_hour,omitempty"`
	PriceOf string   `json:"price_source,omitempty"`

	Created time.Time `json:"created"`
	Age     float64   `json:"age_seconds"`

	// VCPU and Memory are the capacity of the node; memory is in GiB.
	VCPU   float64 `json:"vcpu"`
	Memory float64 `json:"memory_gib"`

	// CPUUse and MemoryUse are the requests of pods as shares of the allocatable resources.
	CPUUse    *float64 `json:"cpu_requested,omitempty"`
	MemoryUse *float64 `json:"memory_requested,omitempty"`
	Pods      *int     `json:"pods,omitempty"`

	// Notices describe what is announced for the node and what controllers do to it.
	Notices []string `json:"notices,omitempty"`
}

// Totals are the totals of a table.
type Totals struct {
	Nodes    int     `json:"nodes"`
	Spot     int     `json:"spot_nodes"`
	VCPU     float64 `json:"vcpu"`
	SpotVCPU float64 `json:"spot_vcpu"`

	// Priced is the number of nodes with a known price. The dollars are those of these nodes.
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

// orders maps the name of a column to a comparison. Unknown values are last, and equal ones are
// sorted by name.
var orders = map[string]func(a, b *Node) int{
	"age":   func(a, b *Node) int { return a.Created.Compare(b.Created) },
	"price": func(a, b *Node) int { return descending(a.Price, b.Price) },
	"use":   func(a, b *Node) int { return descending(a.use(), b.use()) },
	"pool": func(a, b *Node) int {
		return cmp.Or(cmp.Compare(bit(a.Pool == ""), bit(b.Pool == "")), cmp.Compare(a.Pool, b.Pool))
	},
}

// orderNames are the keys of orders, in the order of the help text.
var orderNames = []string{"age", "price", "use", "pool"}

// Sort sorts the nodes by the column age, price, use or pool.
func (t *Table) Sort(by string) error {
	compare, ok := orders[by]
	if !ok {
		return errors.New("give one of age, price, use, pool" + cli.Meant(by, orderNames))
	}
	slices.SortFunc(t.Nodes, func(a, b Node) int { return cmp.Or(compare(&a, &b), cmp.Compare(a.Name, b.Name)) })
	return nil
}

// use returns the larger of the two shares that pods request, or nil if both are unknown.
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
