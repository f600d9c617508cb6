package rackspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// The marks on Spotter's objects. The label spotNodeLabel is on the node pool, and so on the Node;
// the annotations are on the SpotNode and on the node pool, so that each can be rebuilt from the
// other.
const (
	spotNodeLabel = "spotter.dev/spotnode"
	poolLabel     = "spotter.dev/pool"
	tokenLabel    = "spotter.dev/token" // a hash: a token is no label value

	tokenAnnotation      = "spotter.dev/token"
	marketAnnotation     = "spotter.dev/market"
	bidAnnotation        = "spotter.dev/bid-per-hour"
	orderedAtAnnotation  = "spotter.dev/ordered-at"
	cloudspaceAnnotation = "spotter.dev/cloudspace"
	nodePoolAnnotation   = "spotter.dev/node-pool"
)

// poolNameLabel is the label by which Rackspace names a node's pool.
const poolNameLabel = "nodepool.ngpc.rxt.io/name"

// An order is one requested node.
type order struct {
	name       string // of the SpotNode
	pool       string // the CapacityPool
	token      string
	market     string
	cloudspace string
	nodePool   string // the name in the API
	bid        policy.Money
	at         policy.Time

	// region, class and capacity are parts of the market's name.
	region, class string
	capacity      policy.CapacityType
}

// newOrder names an order: both names follow from what is ordered.
func newOrder(pool, token, market, cloudspace string, bid policy.Money, at policy.Time) (order, error) {
	o := order{pool: pool, token: token, market: market, cloudspace: cloudspace, bid: bid, at: at}
	if err := o.read(market); err != nil {
		return o, err
	}
	sum := sha256.Sum256([]byte(cloudspace + "\x00" + pool + "\x00" + token + "\x00" + market))
	o.name = strings.TrimRight(pool[:min(len(pool), poolNameMax)], "-.") + "-" + hex.EncodeToString(sum[:])[:16]
	o.nodePool = uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).String()
	return o, nil
}

// poolNameMax is how much of a pool's name goes into that of a SpotNode, which is a
// label value and so has at most 63 bytes.
const poolNameMax = 44

// read takes the name of a market apart.
func (o *order) read(name string) error {
	part := strings.Split(name, "/")
	if len(part) != 5 || part[0] != policy.Rackspace || part[3] == "" {
		return fmt.Errorf("market %q is not a Rackspace market", name)
	}
	o.region, o.class = part[1], part[3]
	switch part[4] {
	case policy.Spot.String():
		o.capacity = policy.Spot
	case policy.OnDemand.String():
		o.capacity = policy.OnDemand
	default:
		return fmt.Errorf("market %q has a capacity type that Rackspace does not sell", name)
	}
	return nil
}

// hashed returns a token as a label value.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])[:32]
}

// annotations returns what the SpotNode and the node pool say of the order.
func (o *order) annotations() map[string]string {
	m := map[string]string{
		tokenAnnotation: o.token, marketAnnotation: o.market, orderedAtAnnotation: o.at.String(),
		cloudspaceAnnotation: o.cloudspace, nodePoolAnnotation: o.nodePool,
	}
	if o.capacity == policy.Spot {
		m[bidAnnotation] = amountOf(o.bid).text
	}
	return m
}

// spotNode returns the entry of the ledger.
func (o *order) spotNode() *v1alpha1.SpotNode {
	n := &v1alpha1.SpotNode{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.name, Annotations: o.annotations(),
			Labels: map[string]string{poolLabel: o.pool, tokenLabel: hashed(o.token)},
		},
		Spec: v1alpha1.SpotNodeSpec{Pool: o.pool, Market: o.market, Token: o.token},
	}
	if o.capacity == policy.Spot {
		n.Spec.BidPerHour = amountOf(o.bid).text
	}
	return n
}

// orderOf reads an entry of the ledger.
func orderOf(n *v1alpha1.SpotNode) (order, error) {
	o := order{
		name: n.Name, pool: n.Spec.Pool, token: n.Spec.Token, market: n.Spec.Market,
		cloudspace: n.Annotations[cloudspaceAnnotation], nodePool: n.Annotations[nodePoolAnnotation],
		at: instant(n.Annotations[orderedAtAnnotation]),
	}
	if o.at == 0 {
		o.at = policy.TimeOf(n.CreationTimestamp.Time)
	}
	if o.nodePool == "" || o.cloudspace == "" {
		return o, fmt.Errorf("SpotNode %s: annotation %s or %s is missing", n.Name, nodePoolAnnotation, cloudspaceAnnotation)
	}
	if err := o.read(o.market); err != nil {
		return o, fmt.Errorf("SpotNode %s: spec.market: %w", n.Name, err)
	}
	bid, _, err := amount{n.Spec.BidPerHour}.money()
	if err != nil {
		return o, fmt.Errorf("SpotNode %s: spec.bidPerHour: %w", n.Name, err)
	}
	o.bid = bid
	return o, nil
}

// orderOfPool reads one of Spotter's node pools. Its names must be those that follow from its
// fields: otherwise another client wrote it.
func orderOfPool(p *nodePool) (order, error) {
	a := p.Spec.CustomAnnotations
	bid, _, err := amount{a[bidAnnotation]}.money()
	if err != nil {
		return order{}, fmt.Errorf("%s %s: annotation %s: %w", p.Kind, p.Metadata.Name, bidAnnotation, err)
	}
	o, err := newOrder(p.Spec.CustomLabels[poolLabel], a[tokenAnnotation], a[marketAnnotation], p.Spec.CloudSpace, bid,
		instant(a[orderedAtAnnotation]))
	if err != nil {
		return o, fmt.Errorf("%s %s: %w", p.Kind, p.Metadata.Name, err)
	}
	if o.nodePool != p.Metadata.Name || o.name != p.Spec.CustomLabels[spotNodeLabel] || o.class != p.Spec.ServerClass ||
		o.at == 0 {
		return o, fmt.Errorf("%s %s: its labels and annotations are not those of an order by Spotter", p.Kind,
			p.Metadata.Name)
	}
	return o, nil
}

// pooled returns the node pool that is ordered, of one node.
func (o *order) pooled(namespace string, t *v1alpha1.NodeTemplate) *nodePool {
	k := kindOf(o.capacity)
	labels := map[string]string{spotNodeLabel: o.name, poolLabel: o.pool}
	for key, v := range t.Labels {
		if _, ours := labels[key]; !ours {
			labels[key] = v
		}
	}
	p := &nodePool{
		APIVersion: apiVersion, Kind: k.object(),
		Metadata: poolMetadata{Name: o.nodePool, Namespace: namespace,
			Labels: map[string]string{cloudspaceLabel: o.cloudspace}},
		Spec: poolSpec{
			ServerClass: o.class, Desired: 1, CloudSpace: o.cloudspace,
			CustomLabels: labels, CustomAnnotations: o.annotations(), CustomTaints: t.Taints,
		},
	}
	if k == spotPools {
		bid := amountOf(o.bid)
		p.Spec.BidPrice = &bid
	}
	return p
}

// instant reads a time as [policy.Time.String] writes it; 0 for anything else.
func instant(text string) policy.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return policy.TimeOf(t)
}
