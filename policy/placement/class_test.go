package placement

import (
	"fmt"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestClassesOfNodesThatAreGone: a space that is loaded with one snapshot after the other keeps no
// classes of nodes that are gone, though each node has a label of its own.
func TestClassesOfNodesThatAreGone(t *testing.T) {
	const nodes = 10
	s := policy.Snapshot{
		Nodes: make([]policy.Node, nodes),
		Pods:  []policy.Pod{{Node: policy.None, Phase: policy.PodPending}},
	}
	var changes policy.Changes
	var sp Space
	for step := range 2000 {
		n := &s.Nodes[step%nodes]
		*n = policy.Node{
			ID: policy.NodeID(step % nodes), Name: fmt.Sprint("node-", step), Phase: policy.NodeInitialized,
			Pool: policy.None, Market: policy.None,
			Labels: []policy.Label{{Key: "instance", Value: fmt.Sprint(step)}},
		}
		changes.NoteNode(n.ID)
		changes.Publish(&s)
		sp.Load(&s)
		if got, most := max(len(sp.table.classes), len(sp.table.byDigest)), 2*nodes+100; got > most {
			t.Fatalf("step %d: %d classes of %d nodes, want at most %d", step, got, nodes, most)
		}
	}
}
