package recorded

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A shape is what one pod requests.
type shape struct {
	cpu    int64 // thousandths of a core
	memory int64 // MiB
	gpu    int64 // whole devices
}

// A class is how much an interruption hurts; it becomes a PriorityClass.
type class int8

const (
	classLow class = iota
	classNormal
	classHigh
)

var classNames = [...]string{"low", "normal", "high"}

func (c class) String() string { return classNames[c] }

// A task is a number of equal pods that end by themselves.
type task struct {
	shape
	class class

	// at is when the pods were created, counted from the recording's origin.
	at time.Duration

	// work is how long each of them ran.
	work  time.Duration
	count int
}

// A service is a number of equal pods that changes over time.
type service struct {
	shape
	class class

	// name is that of the Deployment. Services without one are grouped by
	// shape; those with one stay apart while there is room for them.
	name    string
	startup time.Duration

	// changes ascend by time, at most one at an instant; before the first there
	// are no pods.
	changes []change
}

// A change is the number of pods from an instant on.
type change struct {
	at   time.Duration
	pods int
}

// A recording is what a source holds, in the terms that all sources share.
type recording struct {
	tasks    []task
	services []service
	objects  []object

	// names are the files, without their folders.
	names []string

	// origin is the calendar time from which all times count; zero when the
	// recording has no dates.
	origin time.Time

	// begin and end bound the recording.
	begin, end time.Duration

	// repeat says that a window longer than the recording plays it again.
	repeat bool

	// lasting says that after the recording's end everything stays as it is.
	lasting bool

	// scaled says that the reader has applied Options.Scale.
	scaled bool

	// about says what the recording is and licence under which terms it comes,
	// each as a sentence.
	about, licence string

	// assumed are sentences; left is what was left out, with counts.
	assumed []string
	left    []leftOut

	// extra are recorded objects that are written as they are.
	extra []map[string]any
}

// A leftOut is a number of things that the scenario does not hold.
type leftOut struct {
	count int
	what  string
}

func (r *recording) assume(format string, args ...any) {
	r.assumed = append(r.assumed, fmt.Sprintf(format, args...))
}

// leave notes that count of something are left out; none are no note.
func (r *recording) leave(count int, what string) {
	if count > 0 {
		r.left = append(r.left, leftOut{count, what})
	}
}

func (r *recording) empty() bool {
	return len(r.tasks) == 0 && len(r.services) == 0 && len(r.objects) == 0
}

// sum adds up changes of several services.
func sum(all [][]change) []change {
	var deltas []change
	for _, changes := range all {
		before := 0
		for _, c := range changes {
			deltas = append(deltas, change{c.at, c.pods - before})
			before = c.pods
		}
	}
	slices.SortFunc(deltas, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var out []change
	pods := 0
	for i, d := range deltas {
		pods += d.pods
		if i+1 < len(deltas) && deltas[i+1].at == d.at {
			continue
		}
		if k := len(out); k == 0 || out[k-1].pods != pods {
			out = append(out, change{d.at, pods})
		}
	}
	return out
}

// podHours returns the hours of all pods from begin to end.
func podHours(changes []change, begin, end time.Duration) float64 {
	total := 0.0
	for i, c := range changes {
		to := end
		if i+1 < len(changes) {
			to = min(end, changes[i+1].at)
		}
		if from := max(begin, c.at); to > from {
			total += float64(float64(c.pods) * (to - from).Hours())
		}
	}
	return total
}

func peak(changes []change) int {
	most := 0
	for _, c := range changes {
		most = max(most, c.pods)
	}
	return most
}
