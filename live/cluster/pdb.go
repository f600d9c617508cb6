package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A pdb is a disruption budget with the resourceVersion of its selector.
type pdb struct {
	pdb        policy.PDB
	generation int64
	uid        string
}

func (o *Observer) setPDB(b *policyv1.PodDisruptionBudget) {
	name := key(b)
	x := kube.PDB(b, func(path []string, format string, args ...any) {
		o.complain("PodDisruptionBudget "+name, strings.Join(path, ".")+": "+fmt.Sprintf(format, args...))
	})
	if x.MinAvailable.Set && x.MaxUnavailable.Set {
		x.MaxUnavailable = policy.Quantity{} // the API server refuses it
	}
	before := o.pdbs[name]
	if before == nil || before.generation != b.Generation || before.uid != string(b.UID) || b.Generation == 0 {
		o.shifted = true
		before = &pdb{generation: b.Generation, uid: string(b.UID)}
		o.pdbs[name] = before
	}
	x.ID = before.pdb.ID
	before.pdb = x
}

func (o *Observer) dropPDB(b *policyv1.PodDisruptionBudget) {
	delete(o.pdbs, key(b))
	o.shifted = true
}

// orderPDBs numbers the disruption budgets.
func (o *Observer) orderPDBs() {
	o.order = o.order[:0]
	for i, name := range slices.Sorted(maps.Keys(o.pdbs)) {
		b := o.pdbs[name]
		b.pdb.ID = policy.PDBID(i)
		o.order = append(o.order, b)
	}
}

// selecting returns the disruption budgets that select pods of t, ascending.
func (o *Observer) selecting(t *policy.Template) []policy.PDBID {
	var ids []policy.PDBID
	for _, b := range o.order {
		if b.pdb.Namespace == t.Namespace && b.pdb.Selector.Matches(t.Labels) {
			ids = append(ids, b.pdb.ID)
		}
	}
	return ids
}

func (o *Observer) setPriority(c *schedulingv1.PriorityClass) {
	p := kube.PriorityOf(c)
	if o.priorities[c.Name] != p || c.GlobalDefault != (o.preset.Name == c.Name) {
		o.dirtyPods(func(*podEntry) bool { return true })
		o.redeclare()
	}
	o.priorities[c.Name] = p
	switch {
	case c.GlobalDefault:
		o.preset = p
	case o.preset.Name == c.Name:
		o.preset = kube.Priority{}
	}
}

func (o *Observer) dropPriority(c *schedulingv1.PriorityClass) {
	delete(o.priorities, c.Name)
	maps.Copy(o.priorities, kube.SystemPriorities())
	if o.preset.Name == c.Name {
		o.preset = kube.Priority{}
	}
	o.dirtyPods(func(*podEntry) bool { return true })
	o.redeclare()
}

// redeclare says that the templates that workloads state are to be read again.
func (o *Observer) redeclare() {
	for _, w := range o.workloads {
		w.waiting, w.last = true, nil
	}
}

// setNamespace notes the labels of a namespace, by which pods may choose whom they
// want to be near.
func (o *Observer) setNamespace(n *corev1.Namespace) {
	if before, known := o.namespaces[n.Name]; known && maps.Equal(before, n.Labels) {
		return
	}
	o.namespaces[n.Name] = n.Labels
	o.renamed()
}

func (o *Observer) dropNamespace(n *corev1.Namespace) {
	delete(o.namespaces, n.Name)
	o.renamed()
}

// renamed reads the pods again that choose others by the labels of namespaces.
func (o *Observer) renamed() {
	o.dirtyPods(func(x *podEntry) bool { return choosesSpaces(&x.object.Spec) })
	o.redeclare()
}

func choosesSpaces(s *corev1.PodSpec) bool {
	a := ptr.Deref(s.Affinity, corev1.Affinity{})
	near, apart := ptr.Deref(a.PodAffinity, corev1.PodAffinity{}), ptr.Deref(a.PodAntiAffinity, corev1.PodAntiAffinity{})
	terms := slices.Concat(near.RequiredDuringSchedulingIgnoredDuringExecution, apart.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, t := range slices.Concat(near.PreferredDuringSchedulingIgnoredDuringExecution, apart.PreferredDuringSchedulingIgnoredDuringExecution) {
		terms = append(terms, t.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}
