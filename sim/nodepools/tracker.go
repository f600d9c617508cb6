package nodepools

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A nodeTracker keeps what Karpenter knows of nodes beyond their objects, and which of
// them changed since candidates for disruption were listed last.
type nodeTracker struct {
	*Karpenter

	of []trackedNode // by node

	// order lists the nodes by name, in which Karpenter tries them. Names end in
	// random letters, so that within a pool the order is drawn.
	order []policy.NodeID

	// changed lists nodes since candidates were listed last: see karpenter.Cluster.
	changed []policy.NodeID
}

// A trackedNode is what is known of a node.
type trackedNode struct {
	changed bool // since candidates for disruption were listed

	// podEvent is when a pod came to it or began to leave it last, as Karpenter
	// notes it, 0 for never; DaemonSets' do not count. nominatedUntil is until when
	// Karpenter does not disrupt it as a pod was promised a place here.
	podEvent, nominatedUntil policy.Time

	// podsVersion changes with the pods here, their readiness and deletion costs.
	podsVersion uint64

	// nameKey represents the random letters at the end of the name that Karpenter generates.
	nameKey uint64
}

// forgetChanges starts a new list of changes.
func (tr *nodeTracker) forgetChanges() {
	for _, id := range tr.changed {
		tr.of[id].changed = false
	}
	tr.changed = tr.changed[:0]
}

// nominationWindow is how long a node is not disrupted after a pod was promised a
// place there: twice the longest batch window (state/statenode.go).
func (tr *nodeTracker) nominationWindow() time.Duration {
	return max(2*tr.Delays.BatchMax, 10*time.Second)
}

func (tr *nodeTracker) keepNominated(n policy.NodeID) {
	tr.of[n].nominatedUntil = tr.Clock.Now.Add(tr.nominationWindow())
	tr.noteNode(n)
}

// joined notes that a node takes pods now. If pods were promised a place there, Karpenter renewed
// the promise at its last look, and it outlasts the binding of the pods.
func (tr *nodeTracker) joined(n policy.NodeID) {
	if tr.Nodes.State[n].Nominated > 0 {
		x := &tr.of[n]
		x.nominatedUntil = max(x.nominatedUntil, tr.provisioner.lastLook().Add(tr.nominationWindow()))
		tr.noteNode(n)
	}
}

// list puts a new node into its place among the others by name.
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

// unlist removes a node that is gone, while its name is still known.
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

// podEventsApart is how far apart two pod events of a node are, for the second to
// count (nodeclaim/podevents/controller.go, dedupeTimeout).
const podEventsApart = 10 * time.Second

// notePodEvent notes that a pod came to a node or began to leave it.
func (tr *nodeTracker) notePodEvent(n policy.NodeID) {
	if x := &tr.of[n]; x.podEvent == 0 || tr.Clock.Now.Sub(x.podEvent) >= podEventsApart {
		x.podEvent = inStatus(tr.Clock.Now)
		tr.noteNode(n)
	}
}

// inStatus returns an instant as the status of a NodeClaim has it: the API keeps whole seconds
// (apimachinery, pkg/apis/meta/v1/time.go, MarshalJSON).
func inStatus(t policy.Time) policy.Time { return t - t%policy.Time(time.Second.Milliseconds()) }

// notePods notes that the pods of a node are others, or became ready.
func (tr *nodeTracker) notePods(n policy.NodeID) {
	tr.of[n].podsVersion++
	tr.noteNode(n)
}

// noteNode notes that a node may be a candidate now, or none any more.
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
