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

// Labels and annotations of Spotter's objects. The label spotNodeLabel is on the node pool and
// therefore on the Node; the annotations are on the SpotNode and on the node pool, so that each can
// be restored from the other.
const (
	spotNodeLabel = "spotter.dev/spotnode"
	poolLabel     = "spotter.dev/pool"
	tokenLabel    = "spotter.dev/token" // a hash, since a token is not a valid label value

	tokenAnnotation      = "spotter.dev/token"
	marketAnnotation     = "spotter.dev/market"
	bidAnnotation        = "spotter.dev/bid-per-hour"
	orderedAtAnnotation  = "spotter.dev/ordered-at"
	cloudspaceAnnotation = "spotter.dev/cloudspace"
	nodePoolAnnotation   = "spotter.dev/node-pool"
)

// poolNameLabel is the label of a Node with which Rackspace names its node pool.
const poolNameLabel = "nodepool.ngpc.rxt.io/name"

// An order is a request for one node.
type order struct {
	name       string // name of the SpotNode
	pool       string // name of the CapacityPool
	token      string
	market     string
	cloudspace string
	nodePool   string // name of the node pool in the API
	bid        policy.Money
	at         policy.Time

	// region, class and capacity are parts of the market's name.
	region, class string
	capacity      policy.CapacityType
}

// newOrder returns an order. The names of its SpotNode and node pool are derived from its other
// fields.
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

// poolNameMax is the maximum length of the part of a SpotNode's name that comes from the pool's
// name. The name of a SpotNode is a label value, which has at most 63 bytes.
const poolNameMax = 44

// read sets the fields that are parts of a market's name.
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

// hashed returns the hash of a token as a label value.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])[:32]
}

// annotations returns the annotations of the SpotNode and of the node pool.
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

// spotNode returns the ledger entry of the order.
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

// orderOf returns the order of a ledger entry.
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

// orderOfPool returns the order of one of Spotter's node pools. It returns an error if the names do
// not match the other fields, because then another client wrote them.
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

// pooled returns the node pool to create for the order, with one machine.
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

// instant parses a time in the format of [policy.Time.String]. It returns 0 for any other text.
func instant(text string) policy.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return policy.TimeOf(t)
}
