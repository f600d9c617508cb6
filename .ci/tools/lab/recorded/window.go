package recorded

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
)

const day = 24 * time.Hour

// window returns the part of the recording that o selects. Without a start it is the window
// with the most core-hours of those that start at midnight: little often runs
// in the first days of a recording.
func (r *recording) window(o *Options) (from, length time.Duration, err error) {
	length = o.window()
	span := r.end - r.begin
	if length == 0 {
		length = min(DaysDefault*day, max(day, (span+day-1)/day*day))
	}
	switch {
	case o.From != "":
		from, err = r.parseFrom(o.From)
	case span <= length:
		from = r.begin
	default:
		from = r.busiest(length)
	}
	if err != nil {
		return 0, 0, err
	}
	if from > r.end && !r.repeat && !r.lasting || from+length <= r.begin {
		return 0, 0, fmt.Errorf("from: %q is outside the recording, which goes from %s to %s", o.From, r.when(r.begin),
			r.when(r.end))
	}
	return from, length, nil
}

// parseFrom reads a calendar time, or a time since the start of the recording.
func (r *recording) parseFrom(text string) (time.Duration, error) {
	if at, ok := parseInstant(text); ok {
		if r.origin.IsZero() {
			return 0,
				fmt.Errorf("from: the recording has no dates; give the time since its begin, such as 36h or 30d, in place of %q", text)
		}
		return at.Sub(r.origin), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if x, err := strconv.ParseFloat(days, 64); err == nil && x >= 0 && x <= daysMost {
			return r.begin + time.Duration(float64(x*86_400))*time.Second, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("from: %q is neither a date, nor a time, nor a time since the begin such as 36h or 30d", text)
	}
	return r.begin + d, nil
}

// when names an instant of the recording for a person.
func (r *recording) when(at time.Duration) string {
	if r.origin.IsZero() {
		return "+" + offset(at)
	}
	return r.origin.Add(at).Format(time.RFC3339)
}

// busiest returns the midnight from which pods request the most core-hours within length;
// the first of equals.
func (r *recording) busiest(length time.Duration) time.Duration {
	daily := make([]float64, r.end/day+1) // core-hours from midnight to midnight
	add := func(s shape, pods int, from, to time.Duration) {
		for d := from / day; d < time.Duration(len(daily)) && d*day < to; d++ {
			hours := (min(to, (d+1)*day) - max(from, d*day)).Hours()
			daily[d] += float64(float64(pods) * float64(s.cpu) * hours)
		}
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		add(t.shape, t.count, t.at, t.at+t.work)
	}
	each := func(s shape, changes []change) {
		for i, c := range changes {
			to := r.end
			if i+1 < len(changes) {
				to = changes[i+1].at
			}
			add(s, c.pods, c.at, to)
		}
	}
	for i := range r.services {
		each(r.services[i].shape, r.services[i].changes)
	}
	for i := range r.objects {
		each(r.objects[i].shape, r.objects[i].changes)
	}
	n := int((length + day - 1) / day)
	first, most := 0, -1.0
	for k := 0; k == 0 || k+n <= len(daily); k++ {
		total := 0.0
		for _, x := range daily[k:min(k+n, len(daily))] {
			total += x
		}
		if total > most {
			first, most = k, total
		}
	}
	return max(r.begin, time.Duration(first)*day)
}

// thin applies the scale. A pod that stays under one scale stays under every
// larger one.
func (r *recording) thin(o *Options) {
	if o.Scale == 1 || r.scaled {
		return
	}
	draw := func(stream uint64, i int) float64 {
		return float64(portable.Mix(portable.Mix(o.Seed, stream), uint64(i))>>11) / (1 << 53)
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		t.count = int(float64(float64(t.count)*o.Scale) + draw(1, i))
	}
	for i := range r.services {
		s := &r.services[i]
		part := 0.5 // a recorded number is rounded, one pod is drawn
		if s.name == "" {
			part = draw(2, i)
		}
		for k := range s.changes {
			if n := s.changes[k].pods; n > 0 {
				s.changes[k].pods = int(float64(float64(n)*o.Scale) + part)
			}
		}
	}
	for i := range r.objects {
		x := &r.objects[i]
		for k := range x.changes {
			if n := x.changes[k].pods; n > 0 {
				x.changes[k].pods = max(1, int(math.Round(float64(float64(n)*o.Scale))))
			}
		}
		kept := x.releases[:0]
		for k, r := range x.releases {
			if r.count = int(float64(float64(r.count)*o.Scale) + draw(3+uint64(i), k)); r.count > 0 {
				kept = append(kept, r)
			}
		}
		x.releases = kept
	}
}

// clip keeps what happens in the window and counts its time from its begin. It
// returns how many pods of tasks began before it, and run on in it.
func (r *recording) clip(from, length time.Duration) (running int) {
	var tasks []task
	for _, t := range r.tasks {
		if t.count == 0 || t.at >= from+length || t.at+t.work <= from {
			continue
		}
		if t.at < from {
			t.work -= from - t.at
			t.at = from
			running += t.count
		}
		t.at -= from
		tasks = append(tasks, t)
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.at, b.at) })
	r.tasks = tasks
	period := r.end - r.begin
	var services []service
	for _, s := range r.services {
		if r.repeat && period > 0 {
			s.changes = repeated(s.changes, period, from+length)
		}
		if s.changes = clipped(s.changes, from, length); s.changes != nil {
			services = append(services, s)
		}
	}
	r.services = services
	var objects []object
	for _, x := range r.objects {
		if x.clip(from, length) {
			objects = append(objects, x)
		}
	}
	r.objects = objects
	return running
}

// repeated plays changes that begin at 0 again after each period, up to end.
func repeated(changes []change, period, end time.Duration) []change {
	var out []change
	for at := time.Duration(0); at < end; at += period {
		for _, c := range changes {
			if k := len(out); k == 0 || out[k-1].pods != c.pods {
				out = append(out, change{at + c.at, c.pods})
			}
		}
	}
	return out
}

// clipped returns changes from the instant from on, counted from it, the first
// at 0; nil when there is never a pod.
func clipped(changes []change, from, length time.Duration) []change {
	out := []change{{0, 0}}
	some := false
	for _, c := range changes {
		last := &out[len(out)-1]
		switch {
		case c.at >= from+length:
		case c.at <= from:
			last.pods = c.pods
		case c.pods != last.pods:
			out = append(out, change{c.at - from, c.pods})
		}
	}
	for _, c := range out {
		some = some || c.pods > 0
	}
	if !some {
		return nil
	}
	return out
}

// fit leaves out what no node can hold.
func (r *recording) fit(nodes []Node) {
	if len(nodes) == 0 {
		return
	}
	pods := 0
	r.tasks = slices.DeleteFunc(r.tasks, func(t task) bool {
		if t.fits(nodes, math.MaxInt64) {
			return false
		}
		pods += t.count
		return true
	})
	r.leave(pods, "pods of jobs that fit no node that can be bought")
	before := len(r.services)
	r.services = slices.DeleteFunc(r.services, func(s service) bool { return !s.fits(nodes, math.MaxInt64) })
	what := "services whose pods fit no node that can be bought"
	if before > 0 && slices.ContainsFunc(r.services, func(s service) bool { return s.name == "" }) {
		what = "pods of services that fit no node that can be bought"
	}
	r.leave(before-len(r.services), what)
	before = len(r.objects)
	r.objects = slices.DeleteFunc(r.objects, func(x object) bool { return !x.fits(nodes, math.MaxInt64) })
	r.leave(before-len(r.objects), "recorded workloads whose pods fit no node that can be bought")
}

// fits reports whether a node with at most vcpu vCPUs holds a pod of shape s. A node with
// accelerators is only for pods that request them.
func (s shape) fits(nodes []Node, vcpu int64) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool {
		a := &n.Allocatable
		return n.VCPU <= vcpu && (a.GPU > 0) == (s.gpu > 0) && a.GPU >= s.gpu && a.CPU >= s.cpu && a.Memory >= s.memory<<20
	})
}
