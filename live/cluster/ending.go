package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// An endingTable contains the ended pods that a snapshot has yet to report, each with a reference
// to its template.
type endingTable struct {
	max        int // Config.EndedMax
	clock      *snapshotClock
	nodes      *nodeSlots
	experience *experience
	workloads  *workloadTable
	templates  *templateTable

	all []ending
}

// An ending is an ended pod that a snapshot has yet to report.
type ending struct {
	pod      policy.EndedPod
	template *template
}

// note records the end of a pod. It takes over the caller's reference to t.
func (et *endingTable) note(p *corev1.Pod, t *template, deleted bool) {
	e := policy.EndedPod{Name: key(p), Node: p.Spec.NodeName, Cause: et.causeOf(p, deleted)}
	e.End = et.clock.wall()
	if p.Spec.NodeName != "" {
		e.Start = et.clock.clamp(boundAt(p))
	}
	if !deleted {
		if at := finishedAt(p); at != 0 {
			e.End = max(e.Start, et.clock.clamp(at))
		}
	}
	et.all = append(et.all, ending{e, t})
	if extra := len(et.all) - et.max; extra > 0 {
		for _, old := range et.all[:extra] {
			et.templates.release(old.template)
		}
		et.all = append(et.all[:0], et.all[extra:]...)
	}
}

// finishedAt returns the time at which the last container of a pod terminated; 0 if it is not
// known.
func finishedAt(p *corev1.Pod) policy.Time {
	var last policy.Time
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil && !t.FinishedAt.IsZero() {
			last = max(last, policy.TimeOf(t.FinishedAt.Time))
		}
	}
	return last
}

// causeOf returns the cause of the end of a pod, where the pod and its node show it.
func (et *endingTable) causeOf(p *corev1.Pod, deleted bool) policy.EndCause {
	_, taken := et.experience.taken[p.Spec.NodeName]
	if i, ok := et.nodes.byName[p.Spec.NodeName]; ok && et.nodes.nodes[i].ReclaimAt != 0 {
		taken = taken || et.nodes.nodes[i].ReclaimAt <= et.clock.wall()
	}
	if p.Status.Phase == corev1.PodSucceeded {
		return policy.EndFinished
	}
	if c := condition(p, "DisruptionTarget"); c != nil && c.Status == corev1.ConditionTrue {
		switch c.Reason {
		case corev1.PodReasonPreemptionByScheduler:
			return policy.EndPreempted
		case "EvictionByEvictionAPI":
			return policy.EndEvicted
		}
		if taken || c.Reason == "DeletionByPodGC" {
			return policy.EndReclaimed
		}
		return policy.EndEvicted
	}
	switch {
	case taken:
		return policy.EndReclaimed
	case !deleted: // it failed by itself
		return policy.EndUnknown
	}
	if w, _ := et.workloads.owner(p); w != nil {
		return policy.EndScaled
	}
	return policy.EndUnknown
}

// fill adds the pods that ended since the last snapshot to s.
func (et *endingTable) fill(s *policy.Snapshot) {
	for _, e := range et.all {
		e.pod.Template = e.template.t.ID
		s.Ended = append(s.Ended, e.pod)
		et.templates.release(e.template)
	}
	et.all = et.all[:0]
}

// awaited reports whether an ended pod of w has yet to be reported.
func (et *endingTable) awaited(w *workload) bool {
	return slices.ContainsFunc(et.all, func(e ending) bool { return e.template != nil && e.template.workload == w })
}
