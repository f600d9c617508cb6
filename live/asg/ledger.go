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

// TagLaunch is the prefix of the key of the tag that records a launch. The token follows.
const TagLaunch = "spotter.dev/launch-"

// A launch is one requested instance, as its tag records it.
type launch struct {
	token string

	// at is the time of the request, truncated to the second. from is the desired size before the
	// request. after is the ID of the newest scaling activity at that time; noActivity if the group
	// had none.
	at    policy.Time
	from  int
	after string

	// instance is the launched instance; empty while it is not known.
	instance string

	// replaces reports whether a drain waits for the launch, protected whether Spotter protected
	// its instance from scale-in, and abandoned whether the launch is unwanted.
	replaces, protected, abandoned bool
}

// encode returns the value of the tag. It has at most 256 characters, all of which are allowed in
// tags.
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

// decodeLaunch parses a tag. Unknown words are ignored, so that a later version may add some.
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
			l.from, _ = strconv.Atoi(v) // only reported, never used for a decision
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

// decodeLaunches parses the launches among tags, in the order of their requests.
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

// noActivity is the value of after for a group that never had a scaling activity.
const noActivity = "none"

// An activity is a scaling activity.
type activity struct {
	id       string
	launches bool   // the activity launches instances; false if it terminates them
	instance string // the launched instance; empty if no instance was launched
	zone     string
	refused  bool // failed for lack of capacity
	failed   bool
	start    policy.Time
}

// claim assigns an instance to each launch that lacks one: the oldest instance that an activity
// after the launch created, that is in the group and that no other launch has. activities are
// sorted newest first. claim reports whether it assigned any.
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

// since returns the activities newer than the activity with the ID after; all activities if it is
// not among them, since AWS keeps activities for six weeks only.
func since(activities []activity, after string) []activity {
	for i := range activities {
		if activities[i].id == after {
			return activities[:i]
		}
	}
	return activities
}

// refused reports whether the newest launch activity was refused for lack of capacity.
func refused(activities []activity) bool {
	i := slices.IndexFunc(activities, func(a activity) bool { return a.launches })
	return i >= 0 && activities[i].refused
}
