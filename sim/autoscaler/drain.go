package autoscaler

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Blocking is the reason why a pod prevents the removal of its node.
type Blocking uint8

// The reasons (utils/drain/drain.go).
const (
	NotBlocking Blocking = iota
	NotReplicated
	UnmovableSystemPod
	NotSafeToEvict
	LocalStorage
	NotEnoughPDB
)

// String returns the name that the Cluster Autoscaler gives the reason.
func (b Blocking) String() string {
	return [...]string{"", "NotReplicated", "UnmovableKubeSystemPod", "NotSafeToEvictAnnotation",
		"LocalStorageRequested", "NotEnoughPdb"}[b]
}

// goneAfter is the time after the end of its grace period for which a terminating pod still counts.
const goneAfter = 30 * time.Second

// ignored reports whether a pod is left out of all decisions: it is expendable, or its deletion is
// long overdue.
func (c *Cluster) ignored(p *policy.Pod) bool {
	return c.priority(p) < c.Expendable ||
		p.Deleting != 0 && p.Deleting.Add(c.Templates[p.Template].Grace+goneAfter) < c.Now
}

// A drain is the effect of emptying a node on its pods.
type drain struct {
	moves, daemons, completing []policy.PodID
	blocked                    Blocking
	by                         policy.PodID
}

// drainOf classifies the given pods of a node (simulator/drain.go). It stops at the first pod that
// prevents the removal.
func (c *Cluster) drainOf(pods []policy.PodID, allowed []int32) (d drain) {
	for _, id := range pods {
		p := &c.Pods[id]
		x := &c.Traits[p.Template]
		switch {
		case x.Owner == OwnerMirror, c.ignored(p):
		case x.Owner == OwnerDaemonSet:
			d.daemons = append(d.daemons, id)
		case x.OnCompletion && !c.Version.Before(37):
			d.completing = append(d.completing, id)
		default:
			if d.blocked = c.blocks(p, allowed); d.blocked != NotBlocking {
				d.by = id
				return d
			}
			d.moves = append(d.moves, id)
		}
	}
	if !c.Version.Before(37) {
		slices.SortStableFunc(d.moves,
			func(a, b policy.PodID) int { return int(c.priority(&c.Pods[b])) - int(c.priority(&c.Pods[a])) })
	}
	return d
}

// blocks returns the reason why p prevents the removal of its node, or NotBlocking
// (simulator/drainability/rules).
func (c *Cluster) blocks(p *policy.Pod, allowed []int32) Blocking {
	t, x := &c.Templates[p.Template], &c.Traits[p.Template]
	switch {
	case t.SafeToEvict:
		return NotBlocking
	case x.Owner == OwnerNone, x.Owner == OwnerCustom && c.KeepCustom:
		return NotReplicated
	case c.KeepSystemPods && t.Namespace == "kube-system" && len(t.PDBs) == 0:
		if c.Now < p.Created.Add(c.SystemTime) {
			return UnmovableSystemPod
		}
		return NotBlocking // the following rules are not evaluated
	case t.NotSafeToEvict:
		return NotSafeToEvict
	case x.LocalStorage && c.KeepLocalStorage:
		return LocalStorage
	case slices.ContainsFunc(t.PDBs, func(b policy.PDBID) bool { return allowed[b] <= 0 }):
		return NotEnoughPDB
	}
	return NotBlocking
}

// risky reports whether a PodDisruptionBudget covers more of the pods than it allows to be evicted
// at once (core/scaledown/pdb/basic.go).
func (c *Cluster) risky(pods []policy.PodID, allowed []int32) bool {
	need := make(map[policy.PDBID]int32)
	for _, id := range pods {
		for _, b := range c.Templates[c.Pods[id].Template].PDBs {
			if need[b]++; need[b] > allowed[b] {
				return true
			}
		}
	}
	return false
}
