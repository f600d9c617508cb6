package hunt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/eval/stats"
)

// kept is how much of the gap a smaller scenario keeps at least.
const kept = 0.8

// lengthLeast is the least that a scenario is metered for.
const lengthLeast = 6 * time.Hour

// shrink takes away from p what the gap does not need, the largest parts first, until nothing can
// go (delta debugging: Zeller and Hildebrandt, 2002). It returns nil where there is no gap left
// under seeds that the search has not seen.
func (h *hunter) shrink(ctx context.Context, p plan) (*plan, error) {
	now, err := h.gaps(ctx, []plan{p}, shrinkSeeds)
	if err != nil {
		return nil, err
	}
	if now[0].median() < h.Least {
		return nil, nil
	}
	least := kept * now[0].median()
	for again := true; again; {
		again = false
		for _, smaller := range p.smaller() {
			r, err := h.gaps(ctx, []plan{smaller}, shrinkSeeds)
			if err != nil {
				return nil, err
			}
			if r[0].median() >= least {
				p, again = smaller, true
				break
			}
		}
	}
	return &p, nil
}

// smaller returns what p is with one thing less, the largest first.
func (p *plan) smaller() []plan {
	var out []plan
	with := func(change func(*plan)) {
		q := *p
		q.services, q.faults = slices.Clone(p.services), slices.Clone(p.faults)
		change(&q)
		out = append(out, q)
	}
	if half := (p.length / 2).Truncate(time.Hour); half >= lengthLeast {
		with(func(q *plan) { q.cut(half) })
	}
	if n := len(p.faults); n > 1 {
		with(func(q *plan) { q.faults = q.faults[:n/2] })
		with(func(q *plan) { q.faults = q.faults[n/2:] })
	}
	if p.batch != nil && len(p.services) > 0 {
		with(func(q *plan) { q.batch = nil })
	}
	for i := range p.services {
		if len(p.services) > 1 || p.batch != nil {
			with(func(q *plan) { q.services = slices.Delete(q.services, i, i+1) })
		}
	}
	for i := range p.faults {
		with(func(q *plan) { q.faults = slices.Delete(q.faults, i, i+1) })
	}
	for i := range p.services {
		p.services[i].smaller(func(s service) { with(func(q *plan) { q.services[i] = s }) })
	}
	for i := range p.faults {
		if half := (p.faults[i].length / 2).Truncate(10 * time.Minute); half >= 10*time.Minute {
			with(func(q *plan) { q.faults[i].length = half })
		}
	}
	if p.batch != nil && p.batch.pods > 1 {
		with(func(q *plan) { b := *q.batch; b.pods /= 2; q.batch = &b })
	}
	p.plainer(with)
	return out
}

// plainer puts what is usual in place of what p says of the market and of nodes.
func (p *plan) plainer(with func(func(*plan))) {
	if p.intensity > 1 {
		with(func(q *plan) { q.intensity = 1 })
	}
	if p.slots > 0 {
		with(func(q *plan) { q.slots = 0 })
	}
	if p.minVCPU != 4 || p.maxVCPU != 16 {
		with(func(q *plan) { q.minVCPU, q.maxVCPU = 4, 16 })
	}
	if p.settle != 5*time.Minute {
		with(func(q *plan) { q.settle = 5 * time.Minute })
	}
}

// smaller gives what s is with one thing less.
func (s service) smaller(give func(service)) {
	if s.peak > s.replicas {
		x := s
		x.peak = x.replicas
		give(x)
		x = s
		x.peak = s.replicas + (s.peak-s.replicas)/2
		give(x)
	}
	if half := max(s.replicas/2, replicasLeast); half < s.replicas {
		x := s
		x.replicas, x.peak = half, max(s.peak/2, half)
		give(x)
	}
	if s.spread.key != "" {
		x := s
		x.spread = spread{}
		give(x)
	}
	if s.available > 0 {
		x := s
		x.available = 0
		give(x)
	}
	if s.penalty > penaltyLeast {
		x := s
		x.penalty = max((s.penalty / 2).Truncate(time.Hour), penaltyLeast)
		give(x)
	}
	if s.startup > time.Minute {
		x := s
		x.startup = time.Minute
		give(x)
	}
}

// cut ends p after a length.
func (p *plan) cut(length time.Duration) {
	p.length = length
	p.faults = slices.DeleteFunc(p.faults, func(f fault) bool { return f.at >= length })
	for i := range p.faults {
		p.faults[i].length = min(p.faults[i].length, length-p.faults[i].at)
	}
}

// judge runs what was found under seeds that nothing has seen, and writes it.
func (h *hunter) judge(ctx context.Context, p *plan, name string) (Find, error) {
	r, err := h.gaps(ctx, []plan{*p}, freshSeeds)
	if err != nil {
		return Find{}, err
	}
	f := Find{Name: name, Rule: r[0].rule, Gap: r[0].median()}
	interval := "too few seeds for an interval"
	if i, ok := stats.MedianInterval(slices.Sorted(slices.Values(r[0].gaps)), 0.05); ok {
		f.Interval = &i
		interval = fmt.Sprintf("interval %.1f to %.1f", i.Low, i.High)
	}
	head := fmt.Sprintf("%s does worse here than %s: found by `spotter scenario hunt` and made smaller.\n%s\nGap: %s %.1f %s behind %s in the median of seeds %d to %d, %s.\n",
		h.Policy, f.Rule, h.Invocation, h.Policy, f.Gap, h.Goal.Unit(), f.Rule, freshSeeds[0], freshSeeds[len(freshSeeds)-1], interval)
	f.Text = p.text(name, h.Trace, head)
	return f, nil
}
