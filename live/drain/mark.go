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

// The marks on a Node. They store the state of drains: a new leader continues from the marks of the
// previous one.
const (
	// AnnotationDrain contains the state of a drain as JSON. Spotter is acting on a node with this
	// annotation.
	AnnotationDrain = "spotter.dev/drain"

	// AnnotationCordon records that Spotter cordoned the node, and why. Spotter uncordons only
	// nodes with this annotation: another client that removes it takes over the cordon.
	AnnotationCordon = "spotter.dev/cordon"

	// TaintDraining repels pods that tolerate a cordon but not this taint, and proves that a cordon
	// is Spotter's: unlike an annotation, neither a kubelet nor a client that may only patch the
	// status of nodes can write it. Running pods of DaemonSets stay; a DaemonSet pod that is
	// created during the drain needs a toleration, as for Karpenter's own taint.
	TaintDraining = "spotter.dev/draining"
)

// FieldOwner is the field manager of the fields that drains write.
const FieldOwner = "spotter"

// textMax is the maximum length of the sentence that is stored on a node, in bytes.
const textMax = 512

// A state is the part of a drain that is stored on its node.
type state struct {
	Phase Phase  `json:"phase"`
	Pool  string `json:"pool,omitempty"`

	// Provisioner determines the backend that releases the node, even if the pool no longer exists.
	Provisioner policy.Provisioner `json:"provisioner,omitempty"`

	Why  policy.Reason `json:"reason,omitempty"`
	Text string        `json:"text,omitempty"`

	// Since is the start of the drain, Deadline the time at which it is abandoned, and ReclaimAt
	// the time of the reclaim by the provider, or zero if there is no notice. All are in
	// milliseconds since 1970.
	Since     policy.Time `json:"since"`
	Deadline  policy.Time `json:"deadline,omitempty"`
	ReclaimAt policy.Time `json:"reclaimAt,omitempty"`

	// After contains the tokens of the launches that the drain waits for.
	After  []string `json:"after,omitempty"`
	Gentle bool     `json:"gentle,omitempty"`

	// Failure is the reason that the drain is being undone.
	Failure string `json:"failure,omitempty"`

	// AskedAt is the time at which the backend was first requested to release the node; zero before
	// that.
	AskedAt policy.Time `json:"askedAt,omitempty"`

	// Seal proves that this controller wrote the state, on this node: see [sealer].
	Seal string `json:"seal,omitempty"`
}

// written reports whether p is a phase that is stored on nodes.
func (p Phase) written() bool {
	switch p {
	case PhasePreparing, PhaseEvicting, PhaseReleasing, PhaseUndoing:
		return true
	}
	return false
}

// urgent reports whether the provider reclaims the node.
func (s *state) urgent() bool { return s.ReclaimAt != 0 }

// readState returns the state on n, whichever controller wrote it, and whether n has any mark of
// Spotter. The phase of a state that cannot be read is PhaseUndoing.
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

// Reclaimed reports whether n has a drain by Spotter because the provider reclaims it.
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

// patchTries is the maximum number of attempts to patch a node despite conflicting writes.
const patchTries = 5

// patchNode applies change to n, which is the node at the last read, and returns the new node. The
// patch uses the resourceVersion, since taints are one atomic list: after a conflicting write, the
// node is read again and change is called again, so that writes by other clients are kept. A change
// without effect is not written. If the node has another UID, it returns errOther.
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

// same reports whether a and b have the same marks.
func same(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && tainted(a) == tainted(b) &&
		sameAnnotation(a, b, AnnotationDrain) && sameAnnotation(a, b, AnnotationCordon)
}

func sameAnnotation(a, b *corev1.Node, key string) bool {
	x, inA := a.Annotations[key]
	y, inB := b.Annotations[key]
	return inA == inB && x == y
}
