package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A replicaSchedule says how many replicas are wanted at each time of the
// week, in UTC. How it is written stands in the documentation of the package.
type replicaSchedule struct {
	days [7][]replicaChange // by time.Weekday
}

// A replicaChange happens so many minutes after midnight.
type replicaChange struct {
	minute   int
	replicas int32
}

var weekdays = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseReplicaSchedule reads the text of the annotation.
func parseReplicaSchedule(text string) (*replicaSchedule, error) {
	s := &replicaSchedule{}
	var named [7]bool
	var rest []replicaChange
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
		changes, err := parseChanges(words)
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

// parseDays reads "sat,sun" or "mon-fri".
func parseDays(text string) ([]time.Weekday, error) {
	var days []time.Weekday
	for _, item := range strings.Split(strings.ToLower(text), ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, to := slices.Index(weekdays[:], first), slices.Index(weekdays[:], last)
		if from < 0 || to < 0 {
			return nil, fmt.Errorf("%q is no day; days are mon, tue, wed, thu, fri, sat, sun", item)
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

// parseChanges reads "00:00=4", "08:00=12", ….
func parseChanges(words []string) ([]replicaChange, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("a part has no changes; write for example \"00:00=4 08:00=12\"")
	}
	var changes []replicaChange
	for _, w := range words {
		clock, number, ok := strings.Cut(w, "=")
		at, err := time.Parse("15:04", clock)
		if !ok || err != nil || len(clock) != len("15:04") {
			return nil, fmt.Errorf("%q is not of the form 08:00=12", w)
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q: %q is not a number of replicas", w, number)
		}
		if n > podsMax {
			return nil, fmt.Errorf("%q: %s", w, outside(int32(n), 0, podsMax))
		}
		c := replicaChange{at.Hour()*60 + at.Minute(), int32(n)}
		if k := len(changes); k > 0 && changes[k-1].minute >= c.minute {
			return nil, fmt.Errorf("%q is not later than the change before it", w)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// steps returns the changes from the instant from up to to, the first of them
// at from with the number then in force.
func (s *replicaSchedule) steps(from, to policy.Time) []ReplicaStep {
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	steps := []ReplicaStep{{At: from}}
	// A week before suffices to find the number in force, since days repeat.
	for midnight := from - from%day - 7*day; midnight < to; midnight += day {
		for _, c := range s.days[midnight.Std().Weekday()] {
			at := midnight.Add(time.Duration(c.minute) * time.Minute)
			last := &steps[len(steps)-1]
			switch {
			case at >= to:
				return steps
			case at <= from:
				last.Replicas = c.replicas
			case c.replicas != last.Replicas:
				steps = append(steps, ReplicaStep{at, c.replicas})
			}
		}
	}
	return steps
}
