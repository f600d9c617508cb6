package recorded

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
)

// A job is a group of tasks of about one shape and running time.
type job struct {
	shape
	class    class
	work     time.Duration
	releases []release
	pods     int
}

// A release is the creation of a number of pods at once.
type release struct {
	at    time.Duration
	count int
}

// A coarseness is how much the shapes and running times of one group may differ, as the
// ratio of the bounds: 0 for equal values and infinity for any.
type coarseness struct{ shape, work float64 }

// coarser are tried in order until few enough groups are left.
var coarser = []coarseness{
	{0, 0}, {0, 1.1}, {1.25, 1.5}, {1.5, 2}, {2, 4}, {4, 16}, {16, 256}, {math.Inf(1), math.Inf(1)},
}

func (c coarseness) String() string {
	switch {
	case c == coarser[0]:
		return "equal pods"
	case c.shape == 0:
		return fmt.Sprintf("pods of one shape whose running times are within a factor of %g", c.work)
	case math.IsInf(c.shape, 1):
		return "pods with as many GPUs and of one priority class"
	}
	return fmt.Sprintf("pods whose CPU and memory are within a factor of %g and whose running times are within a factor of %g", c.shape, c.work)
}

// bucket returns the number of the interval of a geometric grid that contains x.
func bucket(x int64, ratio float64) int64 {
	switch {
	case ratio == 0:
		return x
	case math.IsInf(ratio, 1):
		return 0
	}
	return 1 + int64(math.Floor(portable.Log(float64(max(x, 1)))/portable.Log(ratio)))
}

// A groupKey is equal for pods of one group.
type groupKey struct {
	gpu, cpu, memory, work int64
	class                  class
}

func (c coarseness) key(s shape, class class, work time.Duration) groupKey {
	return groupKey{s.gpu, bucket(s.cpu, c.shape), bucket(s.memory, c.shape),
		bucket(int64(work/time.Millisecond), c.work), class}
}

// grouped gathers the indices of n things by key, the groups in the order of
// their first member.
func grouped(n int, key func(i int) groupKey) [][]int {
	var groups [][]int
	place := map[groupKey]int{}
	for i := range n {
		k := key(i)
		g, seen := place[k]
		if !seen {
			g = len(groups)
			place[k] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// group turns tasks into Jobs and services without a name into Deployments, so that their
// number, with the named services and the objects, does not exceed most. It returns how
// coarse the grouping had to be.
func (r *recording) group(most int) ([]job, coarseness, error) {
	r.keepLargest(most)
	r.mergeSmallest(most - len(r.objects))
	var named, plain []service
	for _, s := range r.services {
		if s.name == "" {
			plain = append(plain, s)
		} else {
			named = append(named, s)
		}
	}
	free := most - len(r.objects) - len(named)
	needed := 0
	for _, c := range coarser {
		jobs := grouped(len(r.tasks), func(i int) groupKey {
			return c.key(r.tasks[i].shape, r.tasks[i].class,
				r.tasks[i].work)
		})
		services := grouped(len(plain), func(i int) groupKey { return c.key(plain[i].shape, plain[i].class, 0) })
		if needed = len(jobs) + len(services); needed > free {
			continue
		}
		r.services = named
		for _, g := range services {
			r.services = append(r.services, merged(plain, g))
		}
		out := make([]job, len(jobs))
		for i, g := range jobs {
			out[i] = r.job(g)
		}
		return out, c, nil
	}
	return nil, coarseness{},
		fmt.Errorf("workloads-max: %d are too few: pods that differ in GPUs or priority class are not put together, so %d are needed",
			most, most-free+needed)
}

// keepLargest leaves out the objects with the least pod-hours beyond most.
func (r *recording) keepLargest(most int) {
	if len(r.objects) <= most {
		return
	}
	slices.SortStableFunc(r.objects, func(a, b object) int { return cmp.Compare(b.hours(), a.hours()) })
	r.leave(len(r.objects)-most, "recorded workloads beyond --workloads-max, those with the fewest pod-hours")
	r.objects = r.objects[:most]
}

// mergeSmallest puts the named services beyond most together: those with the
// fewest pod-hours.
func (r *recording) mergeSmallest(most int) {
	var named []int
	for i := range r.services {
		if r.services[i].name != "" {
			named = append(named, i)
		}
	}
	if len(named) <= max(most, 1) {
		return
	}
	hours := func(i int) float64 { return podHours(r.services[i].changes, 0, horizon) }
	slices.SortStableFunc(named, func(a, b int) int { return cmp.Compare(hours(b), hours(a)) })
	kept := max(most, 1) - 1
	others := merged(r.services, named[kept:])
	others.name = "others"
	r.assume("The %d smallest of the Deployments are one, others, so that there are no more than --workloads-max.",
		len(named)-kept)
	var services []service
	for _, i := range named[:kept] {
		services = append(services, r.services[i])
	}
	services = append(services, others)
	r.services = services
}

// merged puts the services of a group together. Its shape is the mean over
// their pod-hours.
func merged(services []service, group []int) service {
	out := services[group[0]]
	all := make([][]change, len(group))
	m := mean{}
	for k, i := range group {
		s := &services[i]
		all[k] = s.changes
		out.startup = max(out.startup, s.startup)
		m.add(s.shape, podHours(s.changes, 0, horizon))
	}
	out.shape, out.changes = m.shape(out.gpu), sum(all)
	return out
}

// horizon ends the last stay of a service whose end is not in the window.
const horizon = daysMost * day

// job puts the tasks of a group together. Its running time is the mean over its
// pods, its shape the mean over their hours.
func (r *recording) job(group []int) job {
	first := &r.tasks[group[0]]
	out := job{class: first.class}
	m := mean{}
	for _, i := range group {
		t := &r.tasks[i]
		m.add(t.shape, float64(t.work.Hours()*float64(t.count)))
		out.pods += t.count
		if k := len(out.releases); k > 0 && out.releases[k-1].at == t.at {
			out.releases[k-1].count += t.count
		} else {
			out.releases = append(out.releases, release{t.at, t.count})
		}
	}
	out.shape = m.shape(first.gpu)
	out.work = max(time.Millisecond, inSeconds(float64(m.hours*3600)/float64(out.pods)))
	return out
}

// A mean adds up shapes by the time for which they were asked.
type mean struct{ cpu, memory, hours float64 }

func (m *mean) add(s shape, h float64) {
	m.cpu += float64(float64(s.cpu) * h)
	m.memory += float64(float64(s.memory) * h)
	m.hours += h
}

// shape returns the mean, to the next whole unit.
func (m *mean) shape(gpu int64) shape {
	up := func(x float64) int64 { return int64(math.Ceil(float64(x/m.hours) - 1e-6)) }
	return shape{cpu: up(m.cpu), memory: up(m.memory), gpu: gpu}
}
