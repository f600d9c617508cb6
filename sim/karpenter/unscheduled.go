package karpenter

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// An unscheduled records, for one evaluation, the pods of single candidates that a simulation could
// not schedule, by all properties that the simulation reads. Equal sets of pods are not simulated
// again.
type unscheduled struct {
	sets   map[podSet]struct{}
	last   podSet               // the set that was last found
	common []placement.QueueKey // keys of the pods of every simulation, in order
	open   bool                 // whether podSets are complete in this evaluation; see begin

	// kinds is, by template, the first template that scheduling does not distinguish from it. first
	// maps the requests of such pods to that template.
	kinds []policy.TemplateID
	first map[policy.Resources]policy.TemplateID
}

// podSetMax is the maximum number of pods in a podSet.
const podSetMax = 12

// A podSet is the pods of a node, in the order in which they are tried, and the maximum number of
// new nodes for them.
type podSet struct {
	pool      policy.PoolID
	claimsMax int8
	n         int8
	pods      [podSetMax]setPod
}

// A setPod is a pod of a kind of template. before is the number of common pods that are tried
// before it.
type setPod struct {
	kind   policy.TemplateID
	before int32
}

// A queuedPod is a pod that must be rescheduled when its node is removed.
type queuedPod struct {
	template policy.TemplateID
	key      placement.QueueKey
}

func (q queuedPod) compare(o queuedPod) int { return q.key.Compare(o.key) }

// begin forgets all sets. podSets are incomplete, and not used, if placements depend on other pods,
// draws choose between domains, or pools have limits.
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

// kindOf returns the first template that scheduling does not distinguish from t: one whose pods
// request the same resources, if they have no other requirements.
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

// setOf returns the set of the pods of candidate x, and whether the set is complete, so that it
// contains everything that a simulation reads of the pods.
func (u *unscheduled) setOf(x *Candidate, about *nodeCache, sm *simulator, claimsMax int) (set podSet, ok bool) {
	if !u.open || about.single || len(about.queue) > podSetMax || sm.nodes.place[x.Node] >= 0 {
		return set, false
	}
	set.pool, set.claimsMax, set.n = x.Pool, int8(claimsMax), int8(len(about.queue))
	before := 0
	for i := range about.queue {
		q := &about.queue[i]
		after, _ := slices.BinarySearchFunc(u.common[before:], q.key, placement.QueueKey.Compare) // both ascending
		before += after
		set.pods[i] = setPod{u.kinds[q.template], int32(before)}
	}
	return set, true
}

// has reports whether a set is recorded.
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
