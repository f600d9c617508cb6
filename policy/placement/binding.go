package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Binding assigns a pod to a node.
type Binding struct {
	Pod  policy.Pod
	Node policy.NodeID
}

// BindFirstFit binds each of pods, which must be unbound, to the first of targets that accepts it.
// It returns the pods that fit on no target and the bindings of the others.
func BindFirstFit(sp *Space, pods []policy.Pod, targets []policy.NodeID) (rest []policy.Pod, at []Binding) {
	for i := range pods {
		p := &pods[i]
		k := firstFit(sp, p, targets)
		if k < 0 {
			rest = append(rest, *p)
			continue
		}
		sp.Bind(p, targets[k])
		at = append(at, Binding{*p, targets[k]})
	}
	return rest, at
}

// BindAll binds each of pods, which must be unbound, to the first of targets that accepts it. If
// one fits nowhere, it binds none of them. It reports whether the pods were bound.
func BindAll(sp *Space, pods []policy.Pod, targets []policy.NodeID) bool {
	at := make([]policy.NodeID, 0, len(pods))
	for i := range pods {
		k := firstFit(sp, &pods[i], targets)
		if k < 0 {
			for i, n := range at {
				sp.Unbind(&pods[i], n)
			}
			return false
		}
		sp.Bind(&pods[i], targets[k])
		at = append(at, targets[k])
	}
	return true
}

// firstFit returns the index of the first of targets that accepts p, or -1 if there is no such
// target.
func firstFit(sp *Space, p *policy.Pod, targets []policy.NodeID) int {
	return slices.IndexFunc(targets, func(n policy.NodeID) bool { return sp.Check(p, n) == OK })
}

// UnbindAll reverts the bindings in at.
func UnbindAll(sp *Space, at []Binding) {
	for i := range at {
		sp.Unbind(&at[i].Pod, at[i].Node)
	}
}
