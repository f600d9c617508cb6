package place

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Seat is where a pod was put.
type Seat struct {
	Pod  policy.Pod
	Node policy.NodeID
}

// Settle binds pods, which are bound nowhere, each to the first of targets that takes
// it, and returns those that find no place there and where the others are.
func (sp *Space) Settle(pods []policy.Pod, targets []policy.NodeID) (rest []policy.Pod, at []Seat) {
	for i := range pods {
		p := &pods[i]
		k := slices.IndexFunc(targets, func(n policy.NodeID) bool { return sp.Check(p, n) == OK })
		if k < 0 {
			rest = append(rest, *p)
			continue
		}
		sp.Bind(p, targets[k])
		at = append(at, Seat{*p, targets[k]})
	}
	return rest, at
}

// Unsettle takes what was settled off again.
func (sp *Space) Unsettle(at []Seat) {
	for i := range at {
		sp.Unbind(&at[i].Pod, at[i].Node)
	}
}
