package workload

import (
	"fmt"
	"math/bits"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A Scratch contains the working memory of [Collect], so that repeated decisions allocate nothing
// and read only what changed. The features do not depend on the previous content. It must not be
// used concurrently.
type Scratch struct {
	features   []Features
	pools      Groups
	mark       policy.Mark // of the snapshot from which pools.Of, zoneOf and inZone were computed
	zoneOf     []int32     // by node: the index in inZone at which it counts, or None
	inZone     []int32     // inZone[p*zones+z] is the number of nodes of pool p in zone z
	zones      []bool      // of the current pool
	traits     []traits
	restricted []string

	tally   tally
	weights []int64 // total weight of the pods, by group

	samples, ordered []sample
	histogram        []int64 // weight of all samples, by group and bucket
	found            []finding

	budgets []BudgetSpread
}

// A sample is a startup time in milliseconds and its weight.
type sample struct {
	ms, weight int64
	group      int32
}

// readCounts updates the counts to s.
func (sc *Scratch) readCounts(s *policy.Snapshot, g Groups, o Options) {
	sc.tally.read(s, g, o, sc.traits)
	sc.weights, sc.samples = scratch.Zeroed(sc.weights, g.N), sc.samples[:0]
	sc.histogram = append(sc.histogram[:0], sc.tally.histogram...)
	for i := range sc.features {
		sc.features[i] = sc.tally.held[i]
	}
}

// sumTemplates computes sums and means from the counts.
func (sc *Scratch) sumTemplates(s *policy.Snapshot, g Groups) {
	templates := len(s.Templates)
	for group := range sc.features {
		f := &sc.features[group]
		var penalty, priority float64
		var single, workloads int64
		for t, n := range sc.tally.counts[group*templates : (group+1)*templates] {
			if using := sc.tally.using[group*templates+t]; using > 0 {
				f.Requested = f.Requested.Plus(s.Templates[t].Requests.Scale(int64(using)))
			}
			if n == 0 {
				continue
			}
			x := &sc.traits[t]
			weight := int64(n) * x.weight
			sc.weights[group] += weight
			penalty = float64(float64(weight)*x.penalty) + penalty
			priority = float64(float64(weight)*x.priority) + priority
			if x.startup > 0 {
				sc.sample(int32(group), x.startup, weight)
			}
			if x.daemon {
				continue
			}
			workloads += weight
			if x.single {
				single += weight
			}
			f.Pods += int(n)
			if x.stateful {
				f.Stateful += int(n)
			}
			if x.critical {
				f.Critical += int(n)
				f.CriticalOnSpot += int(sc.tally.onSpot[group*templates+t])
			}
		}
		if sc.weights[group] == 0 {
			u := unknown()
			f.Startup, f.Penalty, f.Priority, f.Safety = u.Startup, u.Penalty, u.Priority, u.Safety
			continue
		}
		f.Penalty = penalty / float64(sc.weights[group])
		f.Priority = priority / float64(sc.weights[group])
		if workloads > 0 {
			f.Single = float64(single) / float64(workloads)
		}
	}
	sc.percentiles(g)
}

// defaultStartup is the startup time of a group in seconds if it is unknown.
const defaultStartup = 60

// buckets is the number of buckets of startup times. The bucket of a time depends on its five
// leading binary digits. The last bucket includes all longer times, above two hours.
const buckets = 320

func bucket(ms int64) int {
	if ms < 16 {
		return int(ms)
	}
	e := bits.Len64(uint64(ms)) - 5
	return min(16*e+int(ms>>e), buckets-1)
}

// sample adds a startup time with the given weight to group.
func (sc *Scratch) sample(group int32, ms, weight int64) {
	sc.samples = append(sc.samples, sample{ms: ms, weight: weight, group: group})
	sc.histogram[int(group)*buckets+bucket(ms)] += weight
}

// percentiles sets the startup time of every group that has pods. A histogram determines the bucket
// of the percentile, so that only the samples in that bucket are examined.
func (sc *Scratch) percentiles(g Groups) {
	sc.found = scratch.Zeroed(sc.found, g.N)
	for i := range sc.features {
		sc.found[i] = find(sc.histogram[i*buckets : (i+1)*buckets])
		if sc.found[i].bucket < 0 && sc.weights[i] > 0 {
			sc.features[i].Startup = defaultStartup
		}
	}
	left := sc.samples[:0]
	keep := func(x sample) {
		if f := &sc.found[x.group]; bucket(x.ms) == f.bucket {
			f.samples++
			left = append(left, x)
		}
	}
	for _, x := range sc.samples { // the write position never passes the read position
		keep(x)
	}
	for i := range sc.found {
		if b := sc.found[i].bucket; b >= 0 {
			sc.tally.samples(i, b, keep)
		}
	}
	sc.samples = left
	start := 0
	for i := range sc.found {
		sc.found[i].from, sc.found[i].to = start, start
		start += sc.found[i].samples
	}
	sc.ordered = scratch.Zeroed(sc.ordered, len(left))
	for _, x := range left {
		f := &sc.found[x.group]
		sc.ordered[f.to] = x
		f.to++
	}
	for i := range sc.found {
		if f := &sc.found[i]; f.samples > 0 {
			sc.features[i].Startup = float64(reach(sc.ordered[f.from:f.to], f.need)) / 1000
		}
	}
}

// A finding is the location of the percentile of a group: its bucket (negative without samples),
// the number of samples in the bucket, their range among the ordered samples, and the weight within
// the bucket that must be reached.
type finding struct {
	bucket, samples, from, to int
	need                      int64
}

// find returns the bucket in which 95% of the weight of histogram is reached.
func find(histogram []int64) finding {
	total := int64(0)
	for _, w := range histogram {
		total += w
	}
	if total == 0 {
		return finding{bucket: -1}
	}
	need := (19*total + 19) / 20 // 95%, rounded up
	for i, w := range histogram {
		if need <= w {
			return finding{bucket: i, need: need}
		}
		need -= w
	}
	panic(fmt.Sprintf("workload: %d of a weight of %d is not reached", need, total))
}

// reach returns the smallest time such that the samples of x up to that time have at least the
// weight need. It partitions around pivots instead of sorting, and reorders x.
func reach(x []sample, need int64) int64 {
	for {
		pivot := median(x[0].ms, x[len(x)/2].ms, x[len(x)-1].ms)
		less, more := 0, len(x)
		var lighter, equal int64
		for i := 0; i < more; {
			switch {
			case x[i].ms < pivot:
				lighter += x[i].weight
				x[i], x[less] = x[less], x[i]
				less++
				i++
			case x[i].ms > pivot:
				more--
				x[i], x[more] = x[more], x[i]
			default:
				equal += x[i].weight
				i++
			}
		}
		switch {
		case need <= lighter:
			x = x[:less]
		case need <= lighter+equal:
			return pivot
		default:
			need -= lighter + equal
			x = x[more:]
		}
	}
}

func median(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }

// countEvictable counts the pods that could be evicted.
func (sc *Scratch) countEvictable(s *policy.Snapshot, o Options) {
	templates := len(s.Templates)
	for t := range s.Templates {
		if sc.traits[t].daemon || !evictable(s, &s.Templates[t], o) {
			continue
		}
		for group := range sc.features {
			sc.features[group].Evictable += int(sc.tally.counts[group*templates+t])
		}
	}
}

// selecting returns the PodDisruptionBudgets of t that count: all of them, or only the first with
// Compat.
func selecting(t *policy.Template, o Options) []policy.PDBID {
	if o.Compat && len(t.PDBs) > 1 {
		return t.PDBs[:1]
	}
	return t.PDBs
}

func evictable(s *policy.Snapshot, t *policy.Template, o Options) bool {
	for _, b := range selecting(t, o) {
		if allowed(&s.PDBs[b], o) <= 0 {
			return false
		}
	}
	return true
}

// allowed returns how many pods of b may be disrupted; see [Options].
func allowed(b *policy.PDB, o Options) int {
	if o.Compat {
		return int(b.Allowed)
	}
	if b.Expected == 0 {
		return int(b.Allowed) // the status contains no further data
	}
	return int(max(0, b.Expected-b.Desired))
}

// budgetsOf returns the spreads of the budgets that select pods of group.
func (sc *Scratch) budgetsOf(s *policy.Snapshot, group int, o Options) []BudgetSpread {
	sc.budgets = sc.budgets[:0]
	for b := range s.PDBs {
		if x := sc.tally.most(group, policy.PDBID(b)); x.Most > 0 {
			x.Allowed = allowed(&s.PDBs[b], o)
			sc.budgets = append(sc.budgets, x)
		}
	}
	return sc.budgets
}
