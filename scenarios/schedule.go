package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
)

// A schedule is a number as a function of the time of the week, in UTC, or of the time since the
// start of the run. See the package documentation for its grammar.
type schedule struct {
	days [7][]weeklyChange // by time.Weekday

	// since are changes relative to the start, ascending; nil for a weekly schedule.
	since []offsetChange
}

// An offsetChange is a change at an offset from the start of the run.
type offsetChange struct {
	after time.Duration
	value int64
}

// A weeklyChange is a change at a number of minutes after midnight.
type weeklyChange struct {
	minute int
	value  int64
}

// A scheduleStep is a change at a time of a run.
type scheduleStep struct {
	at    policy.Time
	value int64
}

// A parseNumber parses the number of a change; w is the text of the change, for errors.
type parseNumber func(w, number string) (int64, error)

var weekdays = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseReplicaSchedule parses a schedule of replicas.
func parseReplicaSchedule(text string) (*schedule, error) { return parseSchedule(text, parseReplicas) }

// parseLoadSchedule parses a schedule of loads. Values are in thousandths.
func parseLoadSchedule(text string) (*schedule, error) { return parseSchedule(text, parseLoad) }

func parseSchedule(text string, number parseNumber) (*schedule, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "+") {
		since, err := parseOffsets(strings.Fields(text), number)
		return &schedule{since: since}, err
	}
	s := &schedule{}
	var named [7]bool
	var rest []weeklyChange
	var restSet bool
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			return nil, fmt.Errorf("a part is empty; write for example \"00:00=4 08:00=12\"")
		}
		var days []time.Weekday
		if !strings.ContainsAny(words[0], ":=") {
			var err error
			if days, err = parseDays(words[0]); err != nil {
				return nil, err
			}
			words = words[1:]
		}
		changes, err := parseChanges(words, number)
		if err != nil {
			return nil, err
		}
		if days == nil {
			if restSet {
				return nil, fmt.Errorf("two parts name no days")
			}
			rest, restSet = changes, true
			continue
		}
		for _, d := range days {
			if named[d] {
				return nil, fmt.Errorf("%s is named twice", weekdays[d])
			}
			s.days[d], named[d] = changes, true
		}
	}
	for d := range s.days {
		if !named[d] {
			s.days[d] = rest
		}
	}
	return s, nil
}

// parseDays parses lists and ranges of days, such as "sat,sun" or "mon-fri".
func parseDays(text string) ([]time.Weekday, error) {
	var days []time.Weekday
	for _, item := range strings.Split(strings.ToLower(text), ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, to := slices.Index(weekdays[:], first), slices.Index(weekdays[:], last)
		if from < 0 || to < 0 {
			return nil, fmt.Errorf("%q is not a day; days are mon, tue, wed, thu, fri, sat, sun", item)
		}
		for d := from; ; d = (d + 1) % 7 {
			days = append(days, time.Weekday(d))
			if d == to {
				break
			}
		}
	}
	return days, nil
}

// parseChanges parses changes of the form "08:00=12".
func parseChanges(words []string, parse parseNumber) ([]weeklyChange, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("a part has no changes; write for example \"00:00=4 08:00=12\"")
	}
	var changes []weeklyChange
	for _, w := range words {
		clock, number, ok := strings.Cut(w, "=")
		at, err := time.Parse("15:04", clock)
		if !ok || err != nil || len(clock) != len("15:04") {
			return nil, fmt.Errorf("%q is not of the form 08:00=12", w)
		}
		n, err := parse(w, number)
		if err != nil {
			return nil, err
		}
		c := weeklyChange{at.Hour()*60 + at.Minute(), n}
		if k := len(changes); k > 0 && changes[k-1].minute >= c.minute {
			return nil, fmt.Errorf("%q is not later than the change before it", w)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// parseReplicas parses a number of replicas; w is the text of the change, for errors.
func parseReplicas(w, number string) (int64, error) {
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q: %q is not a number of replicas", w, number)
	}
	if n > podsMax {
		return 0, fmt.Errorf("%q: %s", w, outside(int32(n), 0, podsMax))
	}
	return n, nil
}

// loadMax is the maximum load. Its thousandths are far below the maximum of an int64.
const loadMax = 1_000_000_000_000

// parseLoad parses a load, which is a quantity, and returns it in thousandths; w is the text of the
// change, for errors.
func parseLoad(w, number string) (int64, error) {
	q, err := resource.ParseQuantity(number)
	if err != nil || q.Sign() < 0 {
		return 0, fmt.Errorf("%q: %q is not a load such as 12, 12.5 or 500m", w, number)
	}
	if q.CmpInt64(loadMax) > 0 {
		return 0, fmt.Errorf("%q: %s is more than %d", w, number, int64(loadMax))
	}
	return q.MilliValue(), nil
}

// parseOffsets parses changes of the form "+26h30m=12".
func parseOffsets(words []string, parse parseNumber) ([]offsetChange, error) {
	var changes []offsetChange
	for _, w := range words {
		offset, number, ok := strings.Cut(w, "=")
		after, err := parseOffset(strings.TrimPrefix(offset, "+"))
		if !ok || err != nil || !strings.HasPrefix(w, "+") {
			return nil, fmt.Errorf("%q is not of the form +26h30m=12", w)
		}
		n, err := parse(w, number)
		if err != nil {
			return nil, err
		}
		if k := len(changes); k > 0 && changes[k-1].after >= after {
			return nil, fmt.Errorf("%q is not later than the change before it", w)
		}
		changes = append(changes, offsetChange{after, n})
	}
	return changes, nil
}

// parseOffset parses a time since the start of the run.
func parseOffset(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > durationMost {
		return 0, fmt.Errorf("%q is not a time since the start such as 90s, 26h or 26h30m", text)
	}
	return d, nil
}

// A release is the creation of count instances of a job at an offset from the start of the run.
type release struct {
	after time.Duration
	count int
}

// parseReleases parses a list such as "0s 90s 26h*3": ascending times since the start, each with an
// optional number of instances to create at once.
func parseReleases(text string) ([]release, error) {
	var all []release
	total := 0
	for _, w := range strings.Fields(text) {
		offset, number, several := strings.Cut(w, "*")
		after, err := parseOffset(offset)
		if err != nil {
			return nil, err
		}
		count := 1
		if several {
			if count, err = strconv.Atoi(number); err != nil || count < 1 {
				return nil, fmt.Errorf("%q: %q is not a number of instances above 0", w, number)
			}
		}
		if k := len(all); k > 0 && all[k-1].after >= after {
			return nil, fmt.Errorf("%q is not later than the release before it; write several at once as 26h*3", w)
		}
		if count > completionsMax || total+count > completionsMax {
			return nil, fmt.Errorf("%q: these are more than %d instances", w, completionsMax)
		}
		total += count
		all = append(all, release{after, count})
	}
	if all == nil {
		return nil, fmt.Errorf("it names no time; write for example \"0s 90s 26h*3\"")
	}
	return all, nil
}

// instants returns the times of the releases in [begin, end), ascending, once per instance.
func instants(releases []release, begin, start, end policy.Time) []policy.Time {
	var at []policy.Time
	for _, r := range releases {
		t := start.Add(r.after)
		if t < begin || t >= end {
			continue
		}
		for range r.count {
			at = append(at, t)
		}
	}
	return at
}

// steps returns the changes from the time from up to, but not including, to. The first step is at
// from and has the number that applies then. Offsets are relative to start, and the first number
// also applies before its offset.
func (s *schedule) steps(from, start, to policy.Time) []scheduleStep {
	if s.since != nil {
		return s.stepsSince(from, start, to)
	}
	steps := []scheduleStep{{at: from}}
	// Starting a week earlier suffices to find the number that applies at from, since days repeat.
	for midnight := from - from%day - 7*day; midnight < to; midnight += day {
		for _, c := range s.days[midnight.Std().Weekday()] {
			steps = change(steps, midnight.Add(time.Duration(c.minute)*time.Minute), to, c.value)
		}
	}
	return steps
}

func (s *schedule) stepsSince(from, start, to policy.Time) []scheduleStep {
	steps := []scheduleStep{{from, s.since[0].value}}
	for _, c := range s.since {
		steps = change(steps, start.Add(c.after), to, c.value)
	}
	return steps
}

// change appends a change to steps, which are ascending. A change at or before the first step sets
// the number of that step, and a change at or after to has no effect.
func change(steps []scheduleStep, at, to policy.Time, value int64) []scheduleStep {
	last := &steps[len(steps)-1]
	switch {
	case at >= to:
	case at <= steps[0].at:
		last.value = value
	case value != last.value:
		steps = append(steps, scheduleStep{at, value})
	}
	return steps
}

// replicaSteps converts steps to changes of replicas.
func replicaSteps(steps []scheduleStep) []ReplicaStep {
	all := make([]ReplicaStep, len(steps))
	for i, s := range steps {
		all[i] = ReplicaStep{s.at, int32(s.value)}
	}
	return all
}

// day is 24 hours.
const day = policy.Time(24 * time.Hour / time.Millisecond)

// ReplicasBy describes what sets the replicas of a workload over time instead of its spec.replicas:
// a schedule annotation or an autoscaler. It returns "" if neither does.
func (sc *Scenario) ReplicasBy(kind, namespace, name string) string {
	for i := range sc.loads {
		switch l := &sc.loads[i]; {
		case l.object != kind+" "+namespace+"/"+name:
		case l.schedule != nil:
			return "its annotation " + AnnotationReplicas
		case l.scaler != nil:
			return "its autoscaler"
		}
	}
	return ""
}
