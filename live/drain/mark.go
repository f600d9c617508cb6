package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// The marks on a Node. They are the memory of the pipeline: a new leader finds in
// them what the one before has begun.
const (
	// AnnotationDrain holds the state of a drain as JSON. Spotter is acting on a node that carries
	// it.
	AnnotationDrain = "spotter.dev/drain"

	// AnnotationCordon records that Spotter made the node unschedulable, and why. Spotter makes
	// only nodes that carry it schedulable again: another client that removes it takes over the
	// cordon.
	AnnotationCordon = "spotter.dev/cordon"

	// TaintDraining keeps off pods that tolerate a cordon but not this taint, and shows that a
	// cordon is Spotter's: unlike an annotation, neither a kubelet nor a client that may patch the
	// status of nodes can write it. Running pods of DaemonSets stay; one that is created during the
	// drain needs a toleration, as under Karpenter's own taint.
	TaintDraining = "spotter.dev/draining"
)

// FieldOwner is the manager of the fields that the pipeline writes.
const FieldOwner = "spotter"

// textMax bounds the sentence that is kept on a node, in bytes.
const textMax = 512

// A state is what is kept of a drain on its node.
type state struct {
	Phase Phase  `json:"phase"`
	Pool  string `json:"pool,omitempty"`

	// Provisioner releases the node, also once the pool is gone.
	Provisioner policy.Provisioner `json:"provisioner,omitempty"`

	Why  policy.Reason `json:"reason,omitempty"`
	Text string        `json:"text,omitempty"`

	// Since is when it began, Deadline by when it is given up and ReclaimAt when
	// the provider takes the node, if it said so; in milliseconds since 1970.
	Since     policy.Time `json:"since"`
	Deadline  policy.Time `json:"deadline,omitempty"`
	ReclaimAt policy.Time `json:"reclaimAt,omitempty"`

	// After are the tokens of the launches that it waits for.
	After  []string `json:"after,omitempty"`
	Gentle bool     `json:"gentle,omitempty"`

	// Failure is why it is being undone.
	Failure string `json:"failure,omitempty"`

	// AskedAt is when the backend was first asked to take the node; zero before.
	AskedAt policy.Time `json:"askedAt,omitempty"`

	// Seal shows that this controller wrote the state, on this node: see [sealer].
	Seal string `json:"seal,omitempty"`
}

// written reports whether p is a phase that a node carries.
func (p Phase) written() bool {
	switch p {
	case PhasePreparing, PhaseEvicting, PhaseReleasing, PhaseUndoing:
		return true
	}
	return false
}

// urgent reports whether the provider takes the node.
func (s *state) urgent() bool { return s.ReclaimAt != 0 }

// readState returns the state on n, whichever controller wrote it, and whether n carries any mark
// of Spotter. A state that cannot be read must be undone.
func readState(n *corev1.Node) (state, bool) {
	text, ok := n.Annotations[AnnotationDrain]
	if !ok {
		_, cordoned := n.Annotations[AnnotationCordon]
		return state{Phase: PhaseUndoing}, cordoned || tainted(n)
	}
	var s state
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return state{Phase: PhaseUndoing, Failure: "its annotations cannot be read: " + err.Error()}, true
	}
	return s, true
}

// Reclaimed reports whether n has a drain by Spotter that says that the provider reclaims it.
func Reclaimed(n *corev1.Node) bool {
	s, _ := readState(n)
	return s.urgent()
}

func annotate(n *corev1.Node, key, value string) {
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[key] = value
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, isOurs)
}

func isOurs(t corev1.Taint) bool { return t.Key == TaintDraining }

func bounded(text string) string {
	if len(text) <= textMax {
		return text
	}
	return text[:textMax]
}

// patchTries is how often a node is read again because of a conflicting write.
const patchTries = 5

// patchNode changes n, which is as it was last read, and returns it as it is afterwards. The patch
// has the resourceVersion, since taints are one atomic list: conflicting writes by others are read
// again and kept. A change without effect is not written. A node of another UID counts as missing.
func patchNode(ctx context.Context, w client.Client, r client.Reader, n *corev1.Node,
	change func(*corev1.Node)) (*corev1.Node, error) {
	for try := 0; ; try++ {
		changed := n.DeepCopy()
		change(changed)
		patch := client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})
		if same(n, changed) {
			return n, nil
		}
		err := w.Patch(ctx, changed, patch, client.FieldOwner(FieldOwner))
		if err == nil {
			return changed, nil
		}
		if !apierrors.IsConflict(err) || try == patchTries-1 {
			return nil, fmt.Errorf("marking node %s: %w", n.Name, err)
		}
		fresh := &corev1.Node{}
		if err := r.Get(ctx, client.ObjectKeyFromObject(n), fresh); err != nil {
			return nil, fmt.Errorf("reading node %s again: %w", n.Name, err)
		}
		if fresh.UID != n.UID {
			return nil, fmt.Errorf("reading node %s again: %w", n.Name, errOther)
		}
		n = fresh
	}
}

// same reports whether a and b carry the same marks.
func same(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && tainted(a) == tainted(b) &&
		sameAnnotation(a, b, AnnotationDrain) && sameAnnotation(a, b, AnnotationCordon)
}

func sameAnnotation(a, b *corev1.Node, key string) bool {
	x, inA := a.Annotations[key]
	y, inB := b.Annotations[key]
	return inA == inB && x == y
}
