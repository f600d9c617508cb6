package karpenter

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// An unscheduled holds, for one look, the pods of single nodes that found no place in a
// simulation, by all that it reads of them: pods that are alike are not simulated again.
type unscheduled struct {
	sets   map[podSet]struct{}
	last   podSet               // the one that was found last
	common []placement.QueueKey // of the pods that all simulations have, in order
	open   bool                 // in this look a podSet says all

	// kinds is, by template, the first template that scheduling does not distinguish from it; first
	// is that by the requests of such pods.
	kinds []policy.TemplateID
	first map[policy.Resources]policy.TemplateID
}

// podSetMax is how many pods a podSet has at most.
const podSetMax = 12

// A podSet is the pods of a node, in the order in which they are tried, and how many new
// nodes there may be for them.
type podSet struct {
	pool      policy.PoolID
	claimsMax int8
	n         int8
	pods      [podSetMax]setPod
}

// A setPod is a pod of the given template's kind, before which the given number of the common pods
// are tried.
type setPod struct {
	kind   policy.TemplateID
	before int32
}

// A queuedPod is one that must find another place when its node goes.
type queuedPod struct {
	template policy.TemplateID
	key      placement.QueueKey
}

func (q queuedPod) compare(o queuedPod) int { return q.key.Compare(o.key) }

// begin forgets all sets. A podSet does not say all where pods heed others, chance chooses
// among places, or pools have limits.
func (u *unscheduled) begin(c *Cluster, sm *simulator) {
	if u.sets == nil {
		u.sets, u.first = make(map[podSet]struct{}), make(map[policy.Resources]policy.TemplateID)
	}
	clear(u.sets)
	u.last = podSet{n: -1}
	u.open = !sm.nodes.topology && c.Draw == nil && !sm.bounded
	u.common = u.common[:0]
	for i := range sm.batch.Pods[:sm.common] {
		p := &sm.batch.Pods[i]
		u.common = append(u.common, placement.QueueKeyOf(&c.Templates[p.Template], p))
	}
	slices.SortFunc(u.common, placement.QueueKey.Compare)
	for i := len(u.kinds); i < len(c.Templates); i++ {
		u.kinds = append(u.kinds, u.kindOf(&c.Templates[i], policy.TemplateID(i)))
	}
}

// kindOf returns the first template that scheduling does not distinguish from t: those whose pods
// request the same resources and have no other requirements.
func (u *unscheduled) kindOf(t *policy.Template, id policy.TemplateID) policy.TemplateID {
	if len(t.NodeSelector)+len(t.Affinity)+len(t.Preferred)+len(t.PodAffinity)+len(t.PodAntiAffinity)+
		len(t.Spread)+len(t.Tolerations)+len(t.HostPorts)+len(t.Volumes)+len(t.GPUResource) > 0 {
		return id
	}
	first, known := u.first[t.Requests]
	if !known {
		u.first[t.Requests], first = id, id
	}
	return first
}

// setOf returns the set of the pods of candidate x, and whether it says all that a simulation
// reads of them.
func (u *unscheduled) setOf(x *Candidate, about *nodeCache, sm *simulator, claimsMax int) (set podSet, ok bool) {
	if !u.open || about.single || len(about.queue) > podSetMax || sm.nodes.place[x.Node] >= 0 {
		return set, false
	}
	set.pool, set.claimsMax, set.n = x.Pool, int8(claimsMax), int8(len(about.queue))
	before := 0
	for i := range about.queue {
		q := &about.queue[i]
		after, _ := slices.BinarySearchFunc(u.common[before:], q.key, placement.QueueKey.Compare) // both ascend
		before += after
		set.pods[i] = setPod{u.kinds[q.template], int32(before)}
	}
	return set, true
}

// has reports whether a set is held.
func (u *unscheduled) has(set *podSet) bool {
	if *set == u.last {
		return true
	}
	_, ok := u.sets[*set]
	if ok {
		u.last = *set
	}
	return ok
}

func (u *unscheduled) add(set *podSet) { u.sets[*set], u.last = struct{}{}, *set }
