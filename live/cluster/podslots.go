package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A podSlots contains the pods that have not ended, in slots, and the list of slots to be read
// again.
type podSlots struct {
	pods    []policy.Pod
	entries []podEntry
	free    []int32
	reread  []int32 // slots to be read again
	read    bool    // some pods were read; before that, all are marked to be read
	byName  map[string]int32
}

// A podEntry contains the sources of a slot of the pod table. The slot is free if object is nil.
type podEntry struct {
	object   *corev1.Pod
	dirty    bool
	template *template
	workload *workload // nil for a pod without a workload
	set      string    // name of the ReplicaSet between pod and workload
	node     string    // name of the node to which it is bound
	claims   bool      // it has volumes with claims
	holding  *holding  // devices that its specification does not determine; nil if its specification is complete
	ready    bool      // it counts as ready for its workload
	stuck    bool      // the scheduler found no node
	until    policy.Time
}

// touch marks a slot to be read again.
func (s *podSlots) touch(i int32) {
	if x := &s.entries[i]; !x.dirty {
		x.dirty = true
		s.reread = append(s.reread, i)
	}
}

// touchWhere marks the pods for which pick returns true to be read again.
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
