package drain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A sealer seals the states that are written on nodes, and distinguishes them from states written
// by other actors: every kubelet, and every client that may patch the status of nodes, can write
// annotations. The seal covers the whole state and the UID of the node. Its key is stored in the
// memory of the controller, so that a new leader recognizes the marks of the previous one, and no
// state needs to be saved for a single drain.
type sealer struct{ key atomic.Pointer[[]byte] }

// newSealer returns a sealer with a key that no other process knows.
func newSealer() *sealer {
	s := &sealer{}
	s.use(NewKey())
	return s
}

// NewKey returns a key for [Reconciler.Trust].
func NewKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
}

func (x *sealer) use(key []byte) {
	key = slices.Clone(key)
	x.key.Store(&key)
}

// seal returns the seal of s on the node with a UID.
func (x *sealer) seal(node types.UID, s state) string {
	s.Seal = ""
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("drain: state %+v: %v", s, err))
	}
	mac := hmac.New(sha256.New, *x.key.Load())
	mac.Write([]byte(node))
	mac.Write([]byte{0})
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// write writes s to n.
func (x *sealer) write(n *corev1.Node, s state) {
	s.Seal = x.seal(n.UID, s)
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("drain: state %+v: %v", s, err))
	}
	annotate(n, AnnotationDrain, string(text))
}

// read returns the state on n, whether n has any mark of Spotter, and whether the seal of the state
// is valid. If it is not, the returned state has PhaseUndoing and no pool.
func (x *sealer) read(n *corev1.Node) (s state, marked, sealed bool) {
	s, marked = readState(n)
	sealed = marked && hmac.Equal([]byte(s.Seal), []byte(x.seal(n.UID, s))) && s.Phase.written()
	if !sealed {
		s = state{Phase: PhaseUndoing, Failure: "its marks are not of a drain that this controller started"}
	}
	return s, marked, sealed
}

// uncordon reverts cordon. Because it has the key, it also accepts a sealed state as proof that the
// cordon is Spotter's.
func (x *sealer) uncordon(n *corev1.Node) {
	_, _, sealed := x.read(n)
	takeCordon(n, sealed)
}

// Uncordon removes the taint, and the cordon if it is Spotter's. ours reports whether it is, and
// claimed whether only the annotation indicates it. Uncordon needs no key: it accepts the
// annotation only together with the taint, which neither a kubelet nor an update of the status can
// write.
func Uncordon(n *corev1.Node) (ours, claimed bool) { return takeCordon(n, false) }

func takeCordon(n *corev1.Node, sealed bool) (ours, claimed bool) {
	if _, annotated := n.Annotations[AnnotationCordon]; annotated {
		ours = sealed || tainted(n)
		claimed = !ours
		if ours {
			n.Spec.Unschedulable = false
		}
		delete(n.Annotations, AnnotationCordon)
	}
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOurs)
	return ours, claimed
}

// cordon makes n unschedulable and taints it. It leaves a cordon of another actor unchanged.
func (x *sealer) cordon(n *corev1.Node, s state) {
	if !n.Spec.Unschedulable {
		n.Spec.Unschedulable = true
		annotate(n, AnnotationCordon, bounded(string(s.Why)+": "+s.Text))
	}
	if !tainted(n) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: TaintDraining, Effect: corev1.TaintEffectNoSchedule})
	}
	x.write(n, s)
}
