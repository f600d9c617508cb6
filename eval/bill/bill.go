// Package bill says what each node of a run or of a recording cost, hour by hour or day
// by day, by the same meter as the run: as rows with the columns of FOCUS 1.2, and divided
// among pods as OpenCost divides it.
package bill

import (
	"errors"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// ErrUnknown is wrapped by errors about what a bill needs and its source does not have.
var ErrUnknown = errors.New("the bill cannot be had")

// A Usage is what a bill is made of: the nodes that ran, where, and the pods on them.
type Usage struct {
	About About

	// Window is what is metered.
	Window billing.Span

	// Types, Zones and Markets are as in a snapshot. Charges has for each market what a
	// node of it is charged, nil where that was never known.
	Types   []policy.InstanceType
	Zones   []string
	Markets []policy.Market
	Charges []*billing.Curve

	// Commitments are what was paid in advance.
	Commitments []policy.Commitment

	// Nodes are in the order in which they were launched.
	Nodes  []Node
	Pods   []Pod
	Owners []Owner

	// Warnings say what is not in the bill, or not exactly.
	Warnings []string
}

// An About says whose bill it is.
type About struct {
	// Account is the account that is billed, Run the run within it; empty for a cluster.
	Account, Run string

	// Tags are on every node.
	Tags []policy.Label
}

// A Node is one machine. To is when it was gone, or the end of the window.
type Node struct {
	Name, Pool string
	Market     policy.MarketID
	Bid        policy.Money
	From, To   policy.Time

	// Fees are what it costs per hour on top of its price.
	Fees policy.NodeFees

	// Credits is what it was charged for surplus CPU credits, all when it was gone.
	Credits policy.Money

	// Billed is what the run was charged for it, policy.NoPrice if unknown.
	Billed policy.Money
}

// life is how long n ran.
func (n *Node) life() billing.Span { return billing.Span{From: n.From, To: n.To} }

// A Pod is one pod while it was on a node.
type Pod struct {
	Name        string
	Node, Owner int32
	From, To    policy.Time
}

// An Owner is what pods have in common. Kind is in small letters, and empty for pods that
// no controller made; Name is without the namespace.
type Owner struct {
	Namespace, Kind, Name string
	Labels                []policy.Label
	Requests              policy.Resources
}
