package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A pdb is a PodDisruptionBudget with its generation and UID, which identify the version of its
// selector.
type pdb struct {
	pdb        policy.PDB
	generation int64
	uid        string
}

// A pdbTable contains the PodDisruptionBudgets.
type pdbTable struct {
	faults  *faultLog
	byName  map[string]*pdb
	list    []*pdb // by PDBID
	shifted bool   // IDs must be assigned again

	selectors policy.SelectorIndex // index of list
	found     []int32
}

func (pt *pdbTable) set(b *policyv1.PodDisruptionBudget) {
	name := key(b)
	x := kube.PDB(b, func(path []string, format string, args ...any) {
		pt.faults.warn("PodDisruptionBudget "+name, strings.Join(path, ".")+": "+fmt.Sprintf(format, args...))
	})
	if x.MinAvailable.Set && x.MaxUnavailable.Set {
		x.MaxUnavailable = policy.Quantity{} // the API server does not accept both
	}
	before := pt.byName[name]
	if before == nil || before.generation != b.Generation || before.uid != string(b.UID) || b.Generation == 0 {
		pt.shifted = true
		before = &pdb{generation: b.Generation, uid: string(b.UID)}
		pt.byName[name] = before
	}
	x.ID = before.pdb.ID
	before.pdb = x
}

func (pt *pdbTable) drop(b *policyv1.PodDisruptionBudget) {
	delete(pt.byName, key(b))
	pt.shifted = true
}

// order assigns the IDs.
func (pt *pdbTable) order() {
	pt.list = pt.list[:0]
	pt.selectors.Reset()
	for i, name := range slices.Sorted(maps.Keys(pt.byName)) {
		b := pt.byName[name]
		b.pdb.ID = policy.PDBID(i)
		pt.list = append(pt.list, b)
		pt.selectors.Add(int32(i), b.pdb.Namespace, &b.pdb.Selector)
	}
}

// selecting returns the PodDisruptionBudgets that select pods of t, ascending.
func (pt *pdbTable) selecting(t *policy.Template) []policy.PDBID {
	var ids []policy.PDBID
	pt.found = pt.selectors.Candidates(pt.found, t.Namespace, t.Labels)
	for _, i := range pt.found {
		if b := pt.list[i]; b.pdb.Selector.Matches(t.Labels) {
			ids = append(ids, b.pdb.ID)
		}
	}
	return ids
}
