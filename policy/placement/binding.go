package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Binding is where a pod was put.
type Binding struct {
	Pod  policy.Pod
	Node policy.NodeID
}

// BindFirstFit binds pods, which are bound nowhere, each to the first of targets that takes
// it, and returns those that find no place there and where the others are.
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

// BindAll binds pods, which are bound nowhere, each to the first of targets that takes it, or
// none of them. It reports whether it did.
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

// firstFit returns the index of the first of targets that takes p, negative without one.
func firstFit(sp *Space, p *policy.Pod, targets []policy.NodeID) int {
	return slices.IndexFunc(targets, func(n policy.NodeID) bool { return sp.Check(p, n) == OK })
}

// UnbindAll takes what was bound off again.
func UnbindAll(sp *Space, at []Binding) {
	for i := range at {
		sp.Unbind(&at[i].Pod, at[i].Node)
	}
}
