package timeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A decisionLog contains the decisions of a timeline, ascending by time.
type decisionLog struct {
	*store
	decisions []decisionRow
	entries   []entryRow
}

// A decisionRow is the stored form of a Decision. Its entries start at index first and end where
// those of the next decision start.
type decisionRow struct {
	at, wake policy.Time
	first    int32
}

// An entryRow is the stored form of an Entry. Texts are stored as numbers, because most are
// repeated.
type entryRow struct {
	before, after                                         policy.Money
	subject, pool, market, detail, reason, text, runnerUp uint32
	verb                                                  Verb
}

var verbNames = [...]string{Steer: "steer", Launch: "launch", Drain: "drain", Rank: "rank", Gate: "gate",
	Pause: "pause", Evict: "evict", Hold: "hold"}

// String returns the verb in a word.
func (v Verb) String() string { return verbNames[v] }

// addDecision adds the decision of a step. A step that neither did nor held back anything is not a
// decision.
func (l *decisionLog) addDecision(s *policy.Snapshot, p *policy.Plan) {
	first := len(l.entries)
	l.addBuying(s, p)
	for i := range p.Drains {
		x := &p.Drains[i]
		n := &s.Nodes[x.Node]
		l.addEntry(Drain, n.Name, poolName(s, n.Pool), "", drainDetail(s.Now, x), &x.Why)
	}
	for i := range p.DeletionCosts {
		x := &p.DeletionCosts[i]
		n := &s.Nodes[x.Node]
		l.addEntry(Rank, n.Name, poolName(s, n.Pool), "", fmt.Sprintf("deletion cost %d, of which the lowest leaves first",
			x.Cost), &x.Why)
	}
	l.addLimits(s, p)
	l.addHolds(s, p)
	if len(l.entries) > first {
		l.decisions = append(l.decisions, decisionRow{s.Now, p.Wake, int32(first)})
	}
}

// addLimits adds the effects of GPU budgets.
func (l *decisionLog) addLimits(s *policy.Snapshot, p *policy.Plan) {
	for i := range p.Gates {
		x := &p.Gates[i]
		l.addEntry(Gate, x.Budget, "", "", pick(x.Closed, "close it to new pods", "open it again"), &x.Why)
	}
	for i := range p.Pauses {
		x := &p.Pauses[i]
		l.addEntry(Pause, s.Workloads[x.Workload].Name, "", "", pick(x.Paused, "suspend it for ",
			"let it continue for ")+x.Budget, &x.Why)
	}
	for i := range p.Evicts {
		x := &p.Evicts[i]
		detail := ""
		if x.Budget != "" {
			detail = "for " + x.Budget
		}
		if x.HasGrace {
			detail = joined(detail, "grace "+x.Grace.String())
		}
		l.addEntry(Evict, s.Pods[x.Pod].Name, "", "", detail, &x.Why)
	}
}

// addHolds adds what was left alone.
func (l *decisionLog) addHolds(s *policy.Snapshot, p *policy.Plan) {
	for i := range p.Holds {
		x := &p.Holds[i]
		pool, subject := poolName(s, x.Pool), ""
		if x.Node >= 0 {
			subject = s.Nodes[x.Node].Name
			if pool == "" {
				pool = poolName(s, s.Nodes[x.Node].Pool)
			}
		}
		if subject == "" {
			subject = pool
		}
		l.addEntry(Hold, subject, pool, "", "", &x.Why)
	}
}

// addBuying adds launches and the constraints on launches.
func (l *decisionLog) addBuying(s *policy.Snapshot, p *policy.Plan) {
	for i := range p.Steers {
		x := &p.Steers[i]
		name := s.Pools[x.Pool].Name
		l.addEntry(Steer, name, name, "", steerDetail(x), &x.Why)
	}
	for i := range p.Launches {
		x := &p.Launches[i]
		name, market := s.Pools[x.Pool].Name, ""
		detail := ""
		if len(x.Markets) > 0 {
			market = s.Markets[x.Markets[0]].Name
		}
		if len(x.Markets) > 1 {
			detail = fmt.Sprintf("in one of %d markets", len(x.Markets))
		}
		if x.Replaces >= 0 {
			detail = joined(detail, "in place of "+s.Nodes[x.Replaces].Name)
		}
		if x.Bid > 0 {
			detail = joined(detail, "bid "+x.Bid.Short())
		}
		l.addEntry(Launch, name, name, market, detail, &x.Why)
	}
}

func steerDetail(x *policy.Steer) string {
	detail := fmt.Sprintf("share %.2f", x.Share)
	if x.Exact {
		detail += " exactly"
	}
	if x.Markets != nil {
		detail += " of " + figures.Count(len(x.Markets), "market")
	}
	if x.Mixed {
		detail = joined(detail, "the provisioner chooses the capacity type")
	} else if x.Fallback {
		detail = joined(detail, "on demand where spot is refused")
	}
	if x.Bid > 0 {
		detail = joined(detail, "bid "+x.Bid.Short())
	}
	if x.EmptyOnly {
		detail = joined(detail, "only empty nodes are removed")
	}
	return detail
}

func drainDetail(now policy.Time, x *policy.Drain) string {
	detail := ""
	if len(x.After) > 0 {
		detail = "after " + figures.Count(len(x.After), "launch")
	}
	if x.Deadline > 0 {
		detail = joined(detail, "within "+x.Deadline.Sub(now).Round(time.Second).String())
	}
	if x.Gentle {
		detail = joined(detail, "pod by pod")
	}
	return detail
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

func poolName(s *policy.Snapshot, p policy.PoolID) string {
	if p < 0 {
		return ""
	}
	return s.Pools[p].Name
}

func (l *decisionLog) addEntry(verb Verb, subject, pool, market, detail string, why *policy.Why) {
	id := l.names.id
	l.entries = append(l.entries, entryRow{verb: verb, subject: id(subject), pool: id(pool), market: id(market),
		detail: id(detail),
		reason: id(string(why.Reason)), text: id(why.Text), runnerUp: id(why.RunnerUp), before: why.Before, after: why.After})
}

// entriesOf returns the start and the end index of the entries of decision i.
func (l *decisionLog) entriesOf(i int) (first, end int) {
	end = len(l.entries)
	if i+1 < len(l.decisions) {
		end = int(l.decisions[i+1].first)
	}
	return int(l.decisions[i].first), end
}

// lastDecision returns the index of the last decision at or before an instant, -1 if there is no
// such decision.
func (l *decisionLog) lastDecision(at policy.Time) int {
	return lastAt(l.decisions, at, func(d *decisionRow) policy.Time { return d.at })
}

// Decisions returns the number of available decisions.
func (l *decisionLog) Decisions() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.decisions)
}

// Decision returns the i-th decision, from 0.
func (l *decisionLog) Decision(i int) Decision {
	l.mu.RLock()
	defer l.mu.RUnlock()
	first, end := l.entriesOf(i)
	d := Decision{At: l.decisions[i].at, Wake: l.decisions[i].wake, Entries: make([]Entry, 0, end-first)}
	name := l.names.list
	for k := first; k < end; k++ {
		e := &l.entries[k]
		d.Entries = append(d.Entries, Entry{Verb: e.verb, Subject: name[e.subject], Pool: name[e.pool],
			Market: name[e.market], Detail: name[e.detail],
			Why: policy.Why{Reason: policy.Reason(name[e.reason]), Text: name[e.text], Before: e.before, After: e.after,
				RunnerUp: name[e.runnerUp]}})
	}
	return d
}

// NextDecision returns the index of the first decision after an instant, and whether there is one.
// If verbs are passed, the decision must have an entry with one of them.
func (l *decisionLog) NextDecision(after policy.Time, verbs ...Verb) (int, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return seek(l.lastDecision(after)+1, 1, len(l.decisions), l.does(verbs))
}

// PreviousDecision returns the index of the last decision before an instant in the same way.
func (l *decisionLog) PreviousDecision(before policy.Time, verbs ...Verb) (int, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return seek(l.lastDecision(before-1), -1, len(l.decisions), l.does(verbs))
}

// does returns a function that reports whether decision i has an entry with one of verbs, or always
// true if verbs is empty.
func (l *decisionLog) does(verbs []Verb) func(i int) bool {
	return func(i int) bool {
		first, end := l.entriesOf(i)
		return len(verbs) == 0 || slices.ContainsFunc(l.entries[first:end],
			func(e entryRow) bool { return slices.Contains(verbs, e.verb) })
	}
}

// DecisionAbout returns the last decision at or before an instant that has an entry about the given
// node, pod, workload, pool or budget, and the index of that entry. If verbs are passed, the entry
// must have one of them.
func (l *decisionLog) DecisionAbout(name string, until policy.Time, verbs ...Verb) (decision, entry int, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	id, known := l.names.find(name)
	if !known || name == "" {
		return 0, 0, false
	}
	for i := l.lastDecision(until); i >= 0; i-- {
		first, end := l.entriesOf(i)
		for k := first; k < end; k++ {
			if e := &l.entries[k]; e.subject == id && (len(verbs) == 0 || slices.Contains(verbs, e.verb)) {
				return i, k - first, true
			}
		}
	}
	return 0, 0, false
}
