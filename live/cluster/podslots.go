package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A podSlots holds the pods that have not ended, in slots, and knows which of them must be read
// again.
type podSlots struct {
	pods    []policy.Pod
	entries []podEntry
	free    []int32
	reread  []int32 // slots to be read again
	read    bool    // some were read; before, all must be read
	byName  map[string]int32
}

// A podEntry is what a slot of the table of pods is made of; the object is nil in an
// empty one.
type podEntry struct {
	object   *corev1.Pod
	dirty    bool
	template *template
	workload *workload // nil without one
	set      string    // the ReplicaSet between
	node     string    // the name of the node that it is bound to
	claims   bool      // it has volumes by claim
	holding  *holding  // devices that its specification does not say; nil without
	ready    bool      // it counts as ready for its workload
	stuck    bool      // the scheduler found no place
	until    policy.Time
}

// touch marks a slot to be read again.
func (s *podSlots) touch(i int32) {
	if x := &s.entries[i]; !x.dirty {
		x.dirty = true
		s.reread = append(s.reread, i)
	}
}

// touchWhere marks the pods that pick selects to be read again.
func (s *podSlots) touchWhere(pick func(*podEntry) bool) {
	if !s.read {
		return
	}
	for i := range s.entries {
		if x := &s.entries[i]; x.object != nil && pick(x) {
			s.touch(int32(i))
		}
	}
}
