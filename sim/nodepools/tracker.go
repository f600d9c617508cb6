package nodepools

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A nodeTracker stores what Karpenter knows about nodes in addition to their objects, and which
// nodes changed since the candidates for disruption were last listed.
type nodeTracker struct {
	*Karpenter

	of []trackedNode // by node

	// order lists the nodes by name, in which order Karpenter tries them. Names end in random
	// letters, so the order within a pool is random.
	order []policy.NodeID

	// changed lists the nodes that changed since the candidates were last listed; see
	// karpenter.Cluster.
	changed []policy.NodeID
}

// A trackedNode is the state of one node.
type trackedNode struct {
	changed bool // whether it is in the list of changes

	// podEvent is when a pod was last bound to the node or started to leave it, as Karpenter
	// records it, or 0; DaemonSet pods do not count. nominatedUntil is until when Karpenter does
	// not disrupt the node because a pod was nominated to it.
	podEvent, nominatedUntil policy.Time

	// podsVersion changes with the pods of the node, their readiness and their deletion costs.
	podsVersion uint64

	// nameKey represents the random letters at the end of the generated name.
	nameKey uint64
}

// forgetChanges starts a new list of changes.
func (tr *nodeTracker) forgetChanges() {
	for _, id := range tr.changed {
		tr.of[id].changed = false
	}
	tr.changed = tr.changed[:0]
}

// nominationWindow returns how long a node is not disrupted after a pod was nominated to it: twice
// the longest batch window, but at least ten seconds (state/statenode.go).
func (tr *nodeTracker) nominationWindow() time.Duration {
	return max(2*tr.Delays.BatchMax, 10*time.Second)
}

func (tr *nodeTracker) keepNominated(n policy.NodeID) {
	tr.of[n].nominatedUntil = tr.Clock.Now.Add(tr.nominationWindow())
	tr.noteNode(n)
}

// joined records that a node accepts pods now. If pods are nominated to it, Karpenter renewed the
// nomination at its last evaluation, and the nomination outlasts the binding of the pods.
func (tr *nodeTracker) joined(n policy.NodeID) {
	if tr.Nodes.State[n].Nominated > 0 {
		x := &tr.of[n]
		x.nominatedUntil = max(x.nominatedUntil, tr.provisioner.lastLook().Add(tr.nominationWindow()))
		tr.noteNode(n)
	}
}

// list inserts a new node into the order by name.
func (tr *nodeTracker) list(id policy.NodeID) {
	for len(tr.of) <= int(id) {
		tr.of = append(tr.of, trackedNode{})
	}
	n, x := &tr.Nodes.All[id], &tr.of[id]
	*x = trackedNode{podsVersion: x.podsVersion + 1, changed: x.changed}
	x.nameKey = uint64(chance.New(tr.Seed, "node-name", n.Name))
	at, _ := slices.BinarySearchFunc(tr.order, id, tr.byName)
	tr.order = slices.Insert(tr.order, at, id)
}

// unlist removes a node that is gone. It must be called while the name is still known.
func (tr *nodeTracker) unlist(id policy.NodeID) {
	if at, ok := slices.BinarySearchFunc(tr.order, id, tr.byName); ok {
		tr.order = slices.Delete(tr.order, at, at+1)
	}
}

func (tr *nodeTracker) byName(a, b policy.NodeID) int {
	x, y := &tr.Nodes.All[a], &tr.Nodes.All[b]
	return cmp.Or(cmp.Compare(tr.Pools.All[x.Pool].Name, tr.Pools.All[y.Pool].Name),
		cmp.Compare(tr.of[a].nameKey, tr.of[b].nameKey), cmp.Compare(a, b))
}

// podEventsApart is the minimum time between two pod events of a node for the second to be recorded
// (nodeclaim/podevents/controller.go, dedupeTimeout).
const podEventsApart = 10 * time.Second

// notePodEvent records that a pod was bound to a node or started to leave it.
func (tr *nodeTracker) notePodEvent(n policy.NodeID) {
	if x := &tr.of[n]; x.podEvent == 0 || tr.Clock.Now.Sub(x.podEvent) >= podEventsApart {
		x.podEvent = inStatus(tr.Clock.Now)
		tr.noteNode(n)
	}
}

// inStatus returns an instant as stored in the status of a NodeClaim: the API has a resolution of
// one second (apimachinery, pkg/apis/meta/v1/time.go, MarshalJSON).
func inStatus(t policy.Time) policy.Time { return t - t%policy.Time(time.Second.Milliseconds()) }

// notePods records that the pods of a node or their states changed.
func (tr *nodeTracker) notePods(n policy.NodeID) {
	tr.of[n].podsVersion++
	tr.noteNode(n)
}

// noteNode records that the status of a node as a candidate may have changed.
func (tr *nodeTracker) noteNode(n policy.NodeID) {
	if x := &tr.of[n]; !x.changed {
		x.changed = true
		tr.changed = append(tr.changed, n)
	}
}

func (tr *nodeTracker) lastPodEvent(n policy.NodeID) policy.Time {
	if t := tr.of[n].podEvent; t != 0 {
		return t
	}
	return inStatus(tr.Nodes.All[n].Initialized)
}
