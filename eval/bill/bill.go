// Package bill itemizes the cost of each node of a run or a recording by hour or day, with the
// meter that the run uses. It writes the bill as rows with the columns of FOCUS 1.2, or divides it
// among pods as OpenCost does.
package bill

import (
	"errors"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// ErrUnknown is wrapped by errors about information that a bill requires and its source lacks.
var ErrUnknown = errors.New("the bill cannot be had")

// A Usage is the input of a bill: the nodes that ran, their markets, and the pods on them.
type Usage struct {
	About About

	// Window is the metered interval.
	Window billing.Span

	// Types, Zones and Markets are as in a snapshot. Charges is indexed by market: the price that a
	// node is charged over time, nil if it was never known.
	Types   []policy.InstanceType
	Zones   []string
	Markets []policy.Market
	Charges []*billing.Curve

	// Commitments are the reservations and savings plans that were bought in advance.
	Commitments []policy.Commitment

	// Nodes are in the order of their launches.
	Nodes  []Node
	Pods   []Pod
	Owners []Owner

	// Warnings name what the bill omits or only approximates.
	Warnings []string
}

// An About identifies the billed account.
type About struct {
	// Account is the billed account, Run the run within it. Both are empty for a cluster.
	Account, Run string

	// Tags are added to every node.
	Tags []policy.Label
}

// A Node is one machine. To is the time when it was terminated, or the end of the window.
type Node struct {
	Name, Pool string
	Market     policy.MarketID
	Bid        policy.Money
	From, To   policy.Time

	// Fees are hourly fees on top of the node's price.
	Fees policy.NodeFees

	// Credits is the charge for surplus CPU credits, made in full when the node was terminated.
	Credits policy.Money

	// Billed is the amount that the run was charged for the node, policy.NoPrice if unknown.
	Billed policy.Money
}

// life returns the interval in which n ran.
func (n *Node) life() billing.Span { return billing.Span{From: n.From, To: n.To} }

// A Pod is the interval in which a pod ran on a node.
type Pod struct {
	Name        string
	Node, Owner int32
	From, To    policy.Time
}

// An Owner describes pods of the same controller with the same requests and labels. Kind is in
// lower case, and empty for pods without a controller; Name has no namespace.
type Owner struct {
	Namespace, Kind, Name string
	Labels                []policy.Label
	Requests              policy.Resources
}
