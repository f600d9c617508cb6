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
		k := slices.IndexFunc(targets, func(n policy.NodeID) bool { return sp.Check(p, n) == OK })
		if k < 0 {
			rest = append(rest, *p)
			continue
		}
		sp.Bind(p, targets[k])
		at = append(at, Binding{*p, targets[k]})
	}
	return rest, at
}

// UnbindAll takes what was bound off again.
func UnbindAll(sp *Space, at []Binding) {
	for i := range at {
		sp.Unbind(&at[i].Pod, at[i].Node)
	}
}
