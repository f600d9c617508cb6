package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A workTable contains the tables of the pods and of the objects that determine them. It assigns
// the IDs of templates, workloads and PodDisruptionBudgets, which depend only on their names.
type workTable struct {
	workloads  *workloadTable
	templates  *templateTable
	pdbs       *pdbTable
	priorities *priorityTable
	namespaces *namespaceTable
	volumes    *volumeTable
	podSlots   *podSlots
	pods       *podTable
	endings    *endingTable
	claims     *claimTable
}

func newWorkTable(nodes *nodeTable, faults *faultLog, endedMax int) *workTable {
	t := &workTable{podSlots: nodes.pods, pdbs: &pdbTable{faults: faults, byName: map[string]*pdb{}}}
	t.workloads = &workloadTable{pods: t.podSlots, faults: faults, byKey: map[workloadKey]*workload{},
		replicas: map[string]ownerRef{}}
	t.volumes = &volumeTable{
		pods: t.podSlots, claims: map[string]*corev1.PersistentVolumeClaim{}, zones: map[string]string{}, seen: map[string]bool{},
	}
	t.priorities = &priorityTable{pods: t.podSlots, workloads: t.workloads, byName: kube.SystemPriorities()}
	t.namespaces = &namespaceTable{pods: t.podSlots, workloads: t.workloads, labels: map[string]map[string]string{},
		paused: map[string]v1alpha1.Pause{}}
	t.templates = &templateTable{
		faults: faults, nodes: nodes.slots, volumes: t.volumes, priorities: t.priorities, namespaces: t.namespaces,
		byKey: map[string]*template{}, shifted: true,
	}
	t.claims = newClaimTable(t.podSlots, nodes.slots)
	t.endings = &endingTable{
		max: endedMax, clock: nodes.clock, nodes: nodes.slots, experience: nodes.experience, workloads: t.workloads, templates: t.templates,
	}
	t.pods = &podTable{
		clock: nodes.clock, wakes: nodes.wakes, faults: faults, slots: t.podSlots, nodes: nodes.slots, volumes: t.volumes,
		workloads: t.workloads, templates: t.templates, namespaces: t.namespaces, endings: t.endings,
		held: t.claims, over: map[string]string{}, expiring: map[int32]bool{},
	}
	return t
}

// tabulate assigns the IDs of templates, workloads and PodDisruptionBudgets, in the order of their
// names, if any of the three tables has changed.
func (t *workTable) tabulate() {
	for _, w := range t.workloads.byKey {
		if w.waiting || (w.declared != nil) != w.declares() {
			t.templates.declare(w)
		}
	}
	if !t.templates.shifted && !t.workloads.shifted && !t.pdbs.shifted {
		return
	}
	t.templates.shifted, t.workloads.shifted, t.pdbs.shifted = false, false, false
	t.orderWorkloads()
	t.pdbs.order()
	all := slices.SortedFunc(maps.Values(t.templates.byKey), func(a, b *template) int {
		return cmp.Or(strings.Compare(a.t.Name, b.t.Name), strings.Compare(a.key, b.key))
	})
	t.templates.list = make([]policy.Template, len(all))
	for i, x := range all {
		x.t.ID, x.t.Workload = policy.TemplateID(i), policy.None
		if x.workload != nil {
			x.t.Workload = x.workload.id
		}
		x.t.PDBs = t.pdbs.selecting(&x.t)
		t.templates.list[i] = x.t
	}
	for i := range t.podSlots.pods {
		if x := &t.podSlots.entries[i]; x.template != nil {
			t.podSlots.pods[i].Template = x.template.t.ID
		}
	}
}

// orderWorkloads assigns the IDs of workloads. It deletes workloads that have neither an object nor
// pods.
func (t *workTable) orderWorkloads() {
	t.workloads.list = t.workloads.list[:0]
	for k, w := range t.workloads.byKey {
		if !w.known && w.pods == 0 && !t.endings.awaited(w) {
			delete(t.workloads.byKey, k)
			continue
		}
		t.workloads.list = append(t.workloads.list, w)
	}
	slices.SortFunc(t.workloads.list, func(a, b *workload) int {
		return cmp.Or(strings.Compare(a.key.name, b.key.name), cmp.Compare(a.key.kind, b.key.kind))
	})
	for i, w := range t.workloads.list {
		w.id = policy.WorkloadID(i)
	}
}

// fill writes templates, workloads, PodDisruptionBudgets and pods to s.
func (t *workTable) fill(s *policy.Snapshot) {
	s.Templates = t.templates.list
	s.Workloads = make([]policy.Workload, 0, len(t.workloads.list))
	for _, w := range t.workloads.list {
		s.Workloads = append(s.Workloads, policy.Workload{
			ID: w.id, Name: w.key.name, Kind: w.key.kind, Replicas: w.replicas, Ready: w.ready,
			Deadline: w.deadline, Work: w.work, Suspended: w.suspended, PausedBy: w.pausedBy, UID: string(w.uid),
		})
		if x := &s.Workloads[w.id]; w.key.kind == policy.KindDaemonSet || !w.known {
			x.Replicas = w.pods
		}
	}
	s.PDBs = make([]policy.PDB, 0, len(t.pdbs.list))
	for _, b := range t.pdbs.list {
		s.PDBs = append(s.PDBs, b.pdb)
	}
	s.Pods = slices.Clone(t.podSlots.pods)
}
