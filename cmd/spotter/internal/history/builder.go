package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// sorted returns the keys of a map, ascending.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// A workloadKey identifies a workload.
type workloadKey struct {
	name string // "namespace/name"
	kind policy.WorkloadKind
}

// A working is a workload whose history is being read.
type working struct {
	tracks map[string]*track // by part; "" for a workload without parts
	made   []policy.Time     // creation times of its ReplicaSets, unsorted and with duplicates

	// The sum of the requests over weight observations.
	cpu, memory, storage, gpu, weight float64
	latest                            policy.Resources
	resource                          string // resource name that gpu counts

	starts []time.Duration // medians of parts of the interval
}

// A builder builds a history from observations.
type builder struct {
	clock
	workloads map[workloadKey]*working
	jobs      jobs
	nodes     nodes
	out       History
}

func newBuilder(from, to policy.Time, step time.Duration) *builder {
	b := &builder{clock: clock{from: from, to: to, step: step}, workloads: map[workloadKey]*working{}}
	b.nodes = nodes{clock: &b.clock, open: map[string]*life{}, kinds: map[string]*NodeKind{}}
	b.jobs = jobs{clock: &b.clock, open: map[string]*jobRun{}}
	b.out = History{From: from, To: to, Step: step}
	return b
}

func (b *builder) workload(key workloadKey) *working {
	w := b.workloads[key]
	if w == nil {
		w = &working{tracks: map[string]*track{}}
		b.workloads[key] = w
	}
	return w
}

// replicas returns the track of the replicas of a workload, or of a part of a workload whose parts
// are added up.
func (b *builder) replicas(key workloadKey, part string) *track {
	w := b.workload(key)
	if w.tracks[part] == nil {
		w.tracks[part] = &track{}
	}
	return w.tracks[part]
}

// request records the requests of a pod at one observation.
func (w *working) request(r policy.Resources, resource string) {
	w.cpu += float64(r.CPU)
	w.memory += float64(r.Memory)
	w.storage += float64(r.Storage)
	w.gpu += float64(r.GPU)
	w.weight++
	w.latest, w.resource = r, cmp.Or(resource, w.resource)
}

// pod returns what is known about the pods of w.
func (w *working) pod() Pod {
	p := Pod{Latest: w.latest, GPUResource: w.resource}
	if w.weight > 0 {
		mean := func(sum float64) int64 { return int64(sum/w.weight + 0.5) }
		p.Requests = policy.Resources{CPU: mean(w.cpu), Memory: mean(w.memory), Storage: mean(w.storage), GPU: mean(w.gpu)}
	}
	if len(w.starts) > 0 {
		slices.Sort(w.starts)
		p.Start = w.starts[(len(w.starts)-1)/2].Round(time.Second)
	}
	return p
}

// rollouts returns the times at which a ReplicaSet of a Deployment was created that already had
// pods a minute before. The first ReplicaSet is thus not a rollout.
func (w *working) rollouts(replicas []Change) (out []policy.Time) {
	slices.Sort(w.made)
	for _, at := range slices.Compact(w.made) {
		n := int32(0)
		for i, c := range replicas {
			if i == 0 && c.At < at || c.At < at.Add(-time.Minute) {
				n = c.N
			}
		}
		if n > 0 {
			out = append(out, at)
		}
	}
	return out
}

// note adds sentences on what is uncertain.
func (b *builder) note(sentences ...string) { b.out.Uncertain = append(b.out.Uncertain, sentences...) }

// finish returns the history.
func (b *builder) finish() *History {
	h := &b.out
	h.Uncertain = append(b.uncertain(), h.Uncertain...)
	h.Jobs = b.jobs.finish(func(name string) Pod {
		if w := b.workloads[workloadKey{name, policy.KindJob}]; w != nil {
			return w.pod()
		}
		return Pod{}
	})
	h.Nodes = b.nodes.finish()
	slices.SortStableFunc(h.Placed, Placed.Compare)
	for key, w := range b.workloads {
		if key.kind == policy.KindJob || len(w.tracks) == 0 {
			continue
		}
		var parts [][]Change
		for _, name := range sorted(w.tracks) {
			t := w.tracks[name]
			t.vanish(&b.clock, b.to)
			parts = append(parts, t.changes)
		}
		if changes := sum(parts); slices.ContainsFunc(changes, func(c Change) bool { return c.N > 0 }) {
			h.Workloads = append(h.Workloads, Workload{Name: key.name, Kind: key.kind, Replicas: changes,
				Rollouts: w.rollouts(changes), Pod: w.pod()})
		}
	}
	slices.SortFunc(h.Workloads, func(x, y Workload) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name),
			cmp.Compare(x.Kind, y.Kind))
	})
	return h
}
