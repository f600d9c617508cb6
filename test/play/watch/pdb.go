package watch

import "time"

// lookBack is how long after a pod was lost its disruption budget may still show it.
const lookBack = 30 * time.Second

// A Pod is what matters of a Pod object.
type Pod struct {
	Namespace, Name, Node, Pool string
	Labels                      map[string]string

	// Kept says that its owner wants it left alone, and Stays that it ends with its node: it is of a DaemonSet or its
	// kubelet's own.
	Kept, Stays bool

	keptSince time.Time

	// Start is when the kubelet began to run it, and End when it ended; zero until then.
	Start, End time.Time

	// Requests are its containers' together, by resource.
	Requests map[string]float64
}

func (p *Pod) key() string { return p.Namespace + "/" + p.Name }

// Pod takes a Pod as it is from now on.
func (w *Watcher) Pod(at time.Time, p Pod) {
	p.keptSince = at
	if old := w.pods[p.key()]; old != nil && old.Kept == p.Kept {
		p.keptSince = old.keptSince
	}
	w.pods[p.key()] = &p
	w.account(&p)
}

// PodGone takes a Pod away.
func (w *Watcher) PodGone(at time.Time, namespace, name string) {
	if p := w.pods[namespace+"/"+name]; p != nil {
		if p.End.IsZero() {
			p.End = at
		}
		w.account(p)
		delete(w.pods, p.key())
		delete(w.leaving, p.key())
	}
}

// A PDB is what matters of a PodDisruptionBudget.
type PDB struct {
	Namespace, Name            string
	Selector                   map[string]string
	Observed                   bool // its status is that of its spec
	Expected, Healthy, Desired int32
}

// A pdb is a disruption budget over time: whole says that it had as many healthy pods as
// it wants since it last knew of another number of pods.
type pdb struct {
	expected int32
	whole    bool
}

// PDB takes a disruption budget as it is from now on. It is broken by us when it falls
// short while it knows of the same number of pods, and pods of it were evicted by us of
// late, more than others took.
func (w *Watcher) PDB(at time.Time, b PDB) {
	if !b.Observed {
		return
	}
	key := b.Namespace + "/" + b.Name
	x, ok := w.pdbs[key]
	if !ok || x.expected != b.Expected {
		x = &pdb{expected: b.Expected}
		w.pdbs[key] = x
	}
	if b.Healthy >= b.Desired {
		x.whole = true
		return
	}
	if !x.whole {
		return
	}
	x.whole = false // one finding for one fall
	mine, theirs := 0, 0
	for i := range w.evictions {
		if e := &w.evictions[i]; at.Sub(e.at) < lookBack && e.pod.Namespace == b.Namespace &&
			matches(b.Selector, e.pod.Labels) {
			mine++
		}
	}
	for i := range w.others {
		if l := &w.others[i]; at.Sub(l.at) < lookBack && l.pod.Namespace == b.Namespace && matches(b.Selector, l.pod.Labels) {
			theirs++
		}
	}
	if mine > 0 && int(b.Desired-b.Healthy) > theirs {
		w.find(at, "pdb",
			"PodDisruptionBudget %s has %d healthy pods of %d after %d of our evictions and %d losses to others", key, b.Healthy, b.Desired, mine, theirs)
	}
}

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}
