package history

import (
	"cmp"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A jobRun is one job.
type jobRun struct {
	group      string // "namespace/name" of its owner, or the common part of similar names
	from       policy.Time
	to         policy.Time // zero if unknown
	last       policy.Time // last time at which it was observed running
	pods, work int32       // parallelism and completions

	// ran is the mean running time of its pods without the time in which they waited for nodes;
	// zero if unknown.
	ran time.Duration
}

// A jobs tracks jobs by "namespace/name".
type jobs struct {
	clock *clock
	open  map[string]*jobRun
	done  []jobRun

	// recent maps finished jobs that may be observed once more to their start times.
	recent map[string]policy.Time
}

// job returns a running job, and adds it if it is new.
func (s *jobs) job(name string) *jobRun {
	r := s.open[name]
	if r == nil {
		r = &jobRun{group: Stem(name)}
		s.open[name] = r
	}
	return r
}

// begin records when a job started.
func (s *jobs) begin(name string, at policy.Time) {
	if s.recent[name] != at {
		s.job(name).from = at
	}
}

// end records when a job finished.
func (s *jobs) end(name string, at policy.Time) {
	if r := s.open[name]; r != nil && at >= r.from {
		r.to = at
	}
}

// begunMost is the longest time that a started job is kept without being observed running.
const begunMost = 24 * time.Hour

// settle moves the jobs that ended before an instant from open to done, so that only running jobs
// are kept by name.
func (s *jobs) settle(before policy.Time) {
	s.recent = map[string]policy.Time{}
	for _, name := range sorted(s.open) {
		r := s.open[name]
		if r.to == 0 && r.last != 0 && s.clock.seen(r.last.Add(s.clock.step)) <= s.clock.last {
			r.to = max(r.from, r.last.Add(s.clock.step/2)) // it was deleted or failed
		}
		if r.to == 0 && (r.last != 0 || r.from != 0 && before.Sub(r.from) < begunMost) {
			continue
		}
		delete(s.open, name)
		s.recent[name] = r.from
		if r.from != 0 && r.to > max(r.from, s.clock.from) {
			s.done = append(s.done, *r)
		}
	}
}

// endings matches the generated suffixes of job names: hashes, times and ordinals.
var endings = regexp.MustCompile(`(-[0-9a-f]{8,}|-[a-z0-9]*[0-9][a-z0-9]*|-[bcdfghjklmnpqrstvwxz2456789]{5})+$`)

// Stem returns the common part of the names of similar jobs: the name without generated suffixes.
func Stem(name string) string {
	namespace, short, _ := strings.Cut(name, "/")
	if cut := endings.ReplaceAllString(short, ""); cut != "" {
		short = cut
	}
	return namespace + "/" + short
}

// finish returns the jobs. Jobs of one group whose running times differ by more than a factor of
// two are separate. pod returns what is known about the pods of a group.
func (s *jobs) finish(pod func(group string) Pod) []Job {
	s.settle(s.clock.to)
	for _, name := range sorted(s.open) {
		if r := s.open[name]; r.from != 0 { // it still runs, for at least as long as others of its kind
			r.to = max(s.clock.to, r.from.Add(s.longest(r)))
			s.done = append(s.done, *r)
		}
	}
	groups := map[jobKey][]jobRun{}
	for _, r := range s.done {
		r.from, r.pods = max(r.from, s.clock.from), max(r.pods, 1)
		r.work = max(r.work, r.pods)
		k := jobKey{r.group, r.pods, r.work, bits.Len64(uint64(r.took()/time.Minute) + 1)}
		groups[k] = append(groups[k], r)
	}
	var out []Job
	for k, runs := range groups {
		j := Job{Name: k.group, Parallelism: k.pods, Completions: k.work, Pod: pod(k.group)}
		var total time.Duration
		for i := range runs {
			j.Runs = append(j.Runs, runs[i].from)
			total += runs[i].took()
		}
		slices.Sort(j.Runs)
		j.Took = max((total / time.Duration(len(runs))).Round(time.Second), time.Second)
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Took, b.Took), cmp.Compare(a.Parallelism, b.Parallelism),
			cmp.Compare(a.Completions, b.Completions))
	})
	return out
}

// longest returns the longest running time of jobs like r.
func (s *jobs) longest(r *jobRun) (most time.Duration) {
	for i := range s.done {
		if x := &s.done[i]; x.group == r.group && x.pods == r.pods && x.work == r.work {
			most = max(most, x.to.Sub(x.from))
		}
	}
	return most
}

// A jobKey identifies jobs that are one job in a history. scale is the order of magnitude of their
// running time, in powers of two.
type jobKey struct {
	group      string
	pods, work int32
	scale      int
}

// took returns the running time of a pod of r: the remaining one for a job that started before the
// history.
func (r *jobRun) took() time.Duration {
	waves := time.Duration((r.work + r.pods - 1) / r.pods)
	took := r.to.Sub(r.from) / waves
	if r.ran > 0 {
		took = min(took, r.ran)
	}
	return took
}
