package asg

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TagLaunch is the prefix of the key of the tag in which a launch is recorded, before its token.
const TagLaunch = "spotter.dev/launch-"

// A launch is one requested instance, as its tag records it.
type launch struct {
	token string

	// at is when it was requested, to the second. from is the desired size before, and after the
	// newest scaling activity at that time, "none" if the group had none.
	at    policy.Time
	from  int
	after string

	// instance is the instance that was launched; empty while it is not known.
	instance string

	// replaces means that a drain waits for it, protected that Spotter protected its instance from
	// scale-in, and abandoned that the launch is unwanted.
	replaces, protected, abandoned bool
}

// encode returns the value of the tag. It holds no more than 256 characters, and
// none that tags may not hold.
func (l *launch) encode() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at=%d from=%d after=%s", int64(l.at)/1000, l.from, l.after)
	if l.instance != "" {
		b.WriteString(" instance=" + l.instance)
	}
	for _, f := range []struct {
		set  bool
		word string
	}{{l.replaces, "replaces"}, {l.protected, "protected"}, {l.abandoned, "abandoned"}} {
		if f.set {
			b.WriteString(" " + f.word)
		}
	}
	return b.String()
}

// decodeLaunch reads a tag. Words that it does not know are passed over, so that a
// later version may add some.
func decodeLaunch(key, value string) (launch, bool) {
	token, ok := strings.CutPrefix(key, TagLaunch)
	if !ok || token == "" {
		return launch{}, false
	}
	l := launch{token: token, after: noActivity}
	for _, word := range strings.Fields(value) {
		name, v, _ := strings.Cut(word, "=")
		switch name {
		case "at":
			s, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return launch{}, false
			}
			l.at = policy.TimeOf(time.Unix(s, 0))
		case "from":
			l.from, _ = strconv.Atoi(v) // only reported, never decided on
		case "after":
			l.after = v
		case "instance":
			l.instance = v
		case "replaces":
			l.replaces = true
		case "protected":
			l.protected = true
		case "abandoned":
			l.abandoned = true
		}
	}
	return l, true
}

// decodeLaunches reads the launches among tags, in the order of their requests.
func decodeLaunches(tags map[string]string) []launch {
	var all []launch
	for k, v := range tags {
		if l, ok := decodeLaunch(k, v); ok {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, compareLaunches)
	return all
}

func compareLaunches(a, b launch) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.token, b.token))
}

// noActivity replaces the newest activity of a group that never had one.
const noActivity = "none"

// An activity is a scaling activity.
type activity struct {
	id       string
	launches bool   // and does not terminate
	instance string // that it launched; empty where none came
	zone     string
	refused  bool // for lack of capacity
	failed   bool
	start    policy.Time
}

// claim gives launches without an instance theirs: the oldest that an activity
// after the launch brought, that is in the group and that no other launch has.
// activities are the newest first. It returns whether it gave any.
func claim(launches []launch, activities []activity, in func(id string) bool) bool {
	taken := map[string]bool{}
	for i := range launches {
		taken[launches[i].instance] = true
	}
	gave := false
	for i := range launches {
		l := &launches[i]
		if l.instance != "" {
			continue
		}
		for _, a := range slices.Backward(since(activities, l.after)) {
			if a.instance != "" && !a.failed && !taken[a.instance] && in(a.instance) {
				l.instance, gave = a.instance, true
				taken[a.instance] = true
				break
			}
		}
	}
	return gave
}

// since returns the activities newer than the one called after; all where it is
// not among them, as they are kept for six weeks.
func since(activities []activity, after string) []activity {
	for i := range activities {
		if activities[i].id == after {
			return activities[:i]
		}
	}
	return activities
}

// refused reports whether the newest of the activities that launched or tried to
// was refused for lack of capacity.
func refused(activities []activity) bool {
	i := slices.IndexFunc(activities, func(a activity) bool { return a.launches })
	return i >= 0 && activities[i].refused
}
