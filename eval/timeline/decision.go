package timeline

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A decisionRow is a Decision as it is held: its entries begin at first and end
// where those of the next one begin.
type decisionRow struct {
	at, wake policy.Time
	first    int32
}

// An entryRow is an Entry as it is held. Most texts come again and again.
type entryRow struct {
	before, after                                         policy.Money
	subject, pool, market, detail, reason, text, runnerUp uint32
	verb                                                  Verb
}

var verbNames = [...]string{Steer: "steer", Launch: "launch", Drain: "drain", Rank: "rank", Gate: "gate", Pause: "pause", Evict: "evict", Hold: "hold"}

// String returns the verb in a word.
func (v Verb) String() string { return verbNames[v] }

// addDecision notes what a step did or held back; a step that did neither is no
// decision.
func (t *Timeline) addDecision(s *policy.Snapshot, p *policy.Plan) {
	first := len(t.entries)
	t.addBuying(s, p)
	for i := range p.Drains {
		x := &p.Drains[i]
		n := &s.Nodes[x.Node]
		t.addEntry(Drain, n.Name, poolName(s, n.Pool), "", drainDetail(s.Now, x), &x.Why)
	}
	for i := range p.DeletionCosts {
		x := &p.DeletionCosts[i]
		n := &s.Nodes[x.Node]
		t.addEntry(Rank, n.Name, poolName(s, n.Pool), "", fmt.Sprintf("deletion cost %d, of which the lowest leaves first", x.Cost), &x.Why)
	}
	t.addLimits(s, p)
	t.addHolds(s, p)
	if len(t.entries) > first {
		t.decisions = append(t.decisions, decisionRow{s.Now, p.Wake, int32(first)})
	}
}

// addLimits notes what budgets ask for.
func (t *Timeline) addLimits(s *policy.Snapshot, p *policy.Plan) {
	for i := range p.Gates {
		x := &p.Gates[i]
		t.addEntry(Gate, x.Budget, "", "", choose(x.Closed, "close it to new pods", "open it again"), &x.Why)
	}
	for i := range p.Pauses {
		x := &p.Pauses[i]
		t.addEntry(Pause, s.Workloads[x.Workload].Name, "", "", choose(x.Paused, "suspend it for ", "let it go on for ")+x.Budget, &x.Why)
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
		t.addEntry(Evict, s.Pods[x.Pod].Name, "", "", detail, &x.Why)
	}
}

// addHolds notes what was left alone.
func (t *Timeline) addHolds(s *policy.Snapshot, p *policy.Plan) {
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
		t.addEntry(Hold, subject, pool, "", "", &x.Why)
	}
}

// addBuying notes what is bought, and what may be.
func (t *Timeline) addBuying(s *policy.Snapshot, p *policy.Plan) {
	for i := range p.Steers {
		x := &p.Steers[i]
		name := s.Pools[x.Pool].Name
		t.addEntry(Steer, name, name, "", steerDetail(x), &x.Why)
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
		t.addEntry(Launch, name, name, market, detail, &x.Why)
	}
}

func steerDetail(x *policy.Steer) string {
	detail := fmt.Sprintf("share %.2f", x.Share)
	if x.Exact {
		detail += " exactly"
	}
	if x.Markets != nil {
		detail += " of " + counted(len(x.Markets), "market")
	}
	if x.Mixed {
		detail = joined(detail, "the provisioner chooses between spot and on demand")
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
		detail = "after " + counted(len(x.After), "launch")
	}
	if x.Deadline > 0 {
		detail = joined(detail, "within "+x.Deadline.Sub(now).Round(time.Second).String())
	}
	if x.Gentle {
		detail = joined(detail, "pod by pod")
	}
	return detail
}

func choose(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func poolName(s *policy.Snapshot, p policy.PoolID) string {
	if p < 0 {
		return ""
	}
	return s.Pools[p].Name
}

func (t *Timeline) addEntry(verb Verb, subject, pool, market, detail string, why *policy.Why) {
	id := t.names.id
	t.entries = append(t.entries, entryRow{verb: verb, subject: id(subject), pool: id(pool), market: id(market), detail: id(detail),
		reason: id(string(why.Reason)), text: id(why.Text), runnerUp: id(why.RunnerUp), before: why.Before, after: why.After})
}

// entriesOf returns where the entries of decision i begin and end.
func (t *Timeline) entriesOf(i int) (first, end int) {
	end = len(t.entries)
	if i+1 < len(t.decisions) {
		end = int(t.decisions[i+1].first)
	}
	return int(t.decisions[i].first), end
}

// lastDecision returns the place of the last decision at or before an instant, -1
// for none.
func (t *Timeline) lastDecision(at policy.Time) int {
	return sort.Search(len(t.decisions), func(i int) bool { return t.decisions[i].at > at }) - 1
}

// Decisions returns how many decisions are there.
func (t *Timeline) Decisions() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.decisions)
}

// Decision returns the i-th decision, from 0.
func (t *Timeline) Decision(i int) Decision {
	t.mu.RLock()
	defer t.mu.RUnlock()
	first, end := t.entriesOf(i)
	d := Decision{At: t.decisions[i].at, Wake: t.decisions[i].wake, Entries: make([]Entry, 0, end-first)}
	name := t.names.list
	for k := first; k < end; k++ {
		e := &t.entries[k]
		d.Entries = append(d.Entries, Entry{Verb: e.verb, Subject: name[e.subject], Pool: name[e.pool], Market: name[e.market], Detail: name[e.detail],
			Why: policy.Why{Reason: policy.Reason(name[e.reason]), Text: name[e.text], Before: e.before, After: e.after, RunnerUp: name[e.runnerUp]}})
	}
	return d
}

// NextDecision returns the place of the first decision after an instant, that has
// an entry of one of the verbs if any are given, and whether there is one.
func (t *Timeline) NextDecision(after policy.Time, verbs ...Verb) (int, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := t.lastDecision(after) + 1; i < len(t.decisions); i++ {
		if t.does(i, verbs) {
			return i, true
		}
	}
	return 0, false
}

// PreviousDecision returns the place of the last decision before an instant
// likewise.
func (t *Timeline) PreviousDecision(before policy.Time, verbs ...Verb) (int, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := t.lastDecision(before - 1); i >= 0; i-- {
		if t.does(i, verbs) {
			return i, true
		}
	}
	return 0, false
}

// does reports whether decision i has an entry of one of the verbs, or of any
// where none is given.
func (t *Timeline) does(i int, verbs []Verb) bool {
	first, end := t.entriesOf(i)
	return len(verbs) == 0 || slices.ContainsFunc(t.entries[first:end], func(e entryRow) bool { return slices.Contains(verbs, e.verb) })
}

// DecisionAbout returns the last decision at or before an instant that has an
// entry about the given node, pod, workload, pool or budget, and the place of that
// entry; of one of the verbs if any are given.
func (t *Timeline) DecisionAbout(name string, until policy.Time, verbs ...Verb) (decision, entry int, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	id, known := t.names.find(name)
	if !known || name == "" {
		return 0, 0, false
	}
	for i := t.lastDecision(until); i >= 0; i-- {
		first, end := t.entriesOf(i)
		for k := first; k < end; k++ {
			if e := &t.entries[k]; e.subject == id && (len(verbs) == 0 || slices.Contains(verbs, e.verb)) {
				return i, k - first, true
			}
		}
	}
	return 0, 0, false
}
