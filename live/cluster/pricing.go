package cluster

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A pricingTable counts the nodes of the last snapshot whose price is not known.
type pricingTable struct {
	nodes  *nodeSlots
	reader *nodeReader
	byPool map[string]*pricing
}

// A pricing counts the nodes of a pool, and those without a known market. example explains why the
// market of one of them is unknown.
type pricing struct {
	nodes, unpriced int
	example         string
}

// condition reports whether the markets of all nodes of a pool are known.
func (t *pricingTable) condition(pool string) metav1.Condition {
	c := metav1.Condition{Type: ConditionPriced, Status: metav1.ConditionTrue, Reason: "AllPriced"}
	if p := t.byPool[pool]; p != nil && p.unpriced > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, "UnpricedNodes"
		c.Message = fmt.Sprintf("%d of %d nodes are in no known market, so they are neither managed nor counted: %s",
			p.unpriced, p.nodes, p.example)
	}
	return c
}

// count counts the nodes of pools, and those whose price is not known. It counts a node as unpriced
// only if its price was also unknown in the last snapshot: the book may learn the price by the next
// one.
func (t *pricingTable) count(pools []*pool) {
	t.byPool = make(map[string]*pricing, len(pools))
	for _, p := range pools {
		t.byPool[p.pool.Name] = &pricing{}
	}
	for i := range t.nodes.nodes {
		n, e := &t.nodes.nodes[i], &t.nodes.entries[i]
		if e.object == nil || n.Pool == policy.None {
			continue
		}
		p := t.byPool[pools[n.Pool].pool.Name]
		p.nodes++
		if n.Market == policy.None && e.unpriced {
			p.unpriced++
			if p.example == "" || n.Name < p.example {
				p.example = n.Name
			}
		}
		e.unpriced = n.Market == policy.None
	}
	for _, p := range t.byPool {
		if i, ok := t.nodes.byName[p.example]; ok {
			p.example = t.reader.whyUnpriced(&t.nodes.nodes[i], t.nodes.entries[i].object)
		}
	}
}
