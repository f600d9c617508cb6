package fake

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A State is what there is at Rackspace.
type State struct {
	// Organization and ID are the name and the id of the only organisation.
	Organization, ID string

	// Regions are those of the cloudspaces by name.
	Regions map[string]string

	Classes []Class

	// Refresh is the refresh token that is accepted.
	Refresh string

	// TokenLife is how long an access token lasts, Join how long after it was won
	// a machine takes to join, and Notice how long a machine that was outbid runs
	// on.
	TokenLife, Join, Notice time.Duration

	// Lag is how long reads show what was before a change.
	Lag time.Duration

	// PageMax bounds the entries of a page; 0 is all.
	PageMax int

	// Billing says that the organisation may buy.
	Billing bool
}

// A Class is a server class. Its prices are in force from their instant on.
type Class struct {
	Name, Region, Category string
	CPU, Memory            string // as the API writes them
	MinBid, OnDemand       string // dollars; empty if not published
	Prices                 []Price

	// Slots is how many machines there are; 0 is any number.
	Slots int
}

// A Price is the price of an auction from an instant on.
type Price struct {
	At    policy.Time
	Price policy.Money
}

// price returns that in force at an instant.
func (c *Class) price(at policy.Time) policy.Money {
	p := policy.Money(0)
	for _, x := range c.Prices {
		if x.At <= at {
			p = x.Price
		}
	}
	return p
}

// DefaultState returns an organisation with a cloudspace called "cs" in Ashburn and
// three server classes there, one in San José.
func DefaultState() State {
	return State{
		Organization: "acme", ID: "org_AbC123", Regions: map[string]string{"cs": "us-east-iad-1"}, Refresh: "refresh-1",
		TokenLife: time.Hour, Join: 8 * time.Minute, Notice: 6 * time.Minute, Billing: true,
		Classes: []Class{
			{Name: "gp.vs1.medium-iad", Region: "us-east-iad-1", Category: "General Purpose", CPU: "2", Memory: "3.75GB",
				MinBid: "0.001", OnDemand: "0.05", Prices: []Price{{0, 10_000}}},
			{Name: "gp.vs1.large-iad", Region: "us-east-iad-1", Category: "General Purpose", CPU: "4", Memory: "15GB",
				MinBid: "0.002", OnDemand: "0.10", Prices: []Price{{0, 30_000}}},
			{Name: "ch.vs1.large-iad", Region: "us-east-iad-1", Category: "Compute Heavy", CPU: "4", Memory: "7.5GB",
				MinBid: "0.002", Prices: []Price{{0, 20_000}}},
			{Name: "gp.vs2.medium-sjc", Region: "us-west-sjc-1", Category: "General Purpose", CPU: "2", Memory: "4GB",
				MinBid: "0.010", Prices: []Price{{0, 5_000}}},
		},
	}
}

// A Machine is a server that runs.
type Machine struct {
	Pool, Node, Class string
	Bid               policy.Money
	Labels            map[string]string // of its node pool
}

// A Life is a server from when it was won until it was released or taken.
type Life struct {
	Machine
	OnDemand  bool
	Won, Gone policy.Time // Gone is 0 while it runs

	// Taken is when the provider takes it, or took it, because it was outbid; 0 while it is
	// not outbid.
	Taken policy.Time
}

// A pool is a node pool and its machines.
type pool struct {
	kind, name   string
	namespace    string
	labels       map[string]string
	spec         poolSpec
	bid          policy.Money
	made, undone policy.Time
	servers      []*server
	serial       int
}

// A server is a machine from when it was won.
type server struct {
	node       string
	uuid       string
	won, joins policy.Time
	taken      policy.Time // when the provider takes it or has it back; 0 while it does not
	due        policy.Time // when the provider said that it takes it; 0 while it did not
	registered bool
}

type poolSpec struct {
	ServerClass       string            `json:"serverClass"`
	Desired           int               `json:"desired"`
	CloudSpace        string            `json:"cloudSpace"`
	BidPrice          any               `json:"bidPrice,omitempty"`
	CustomLabels      map[string]string `json:"customLabels,omitempty"`
	CustomAnnotations map[string]string `json:"customAnnotations,omitempty"`
	CustomTaints      []corev1.Taint    `json:"customTaints,omitempty"`
	Autoscaling       map[string]any    `json:"autoscaling,omitempty"`
}

// given returns how many machines of the pool were not outbid.
func (p *pool) given() int {
	n := 0
	for _, s := range p.servers {
		if s.taken == 0 {
			n++
		}
	}
	return n
}
