package record

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// ErrNoStep means that a recording has no step with the given number or time.
var ErrNoStep = errors.New("no such step")

// A Query identifies a decision to explain, and a node or pool.
type Query struct {
	// Number is the number of the step. If it is 0, the query selects the last step at or before
	// At.
	Number int64
	At     policy.Time

	// Node or Pool is the subject of the query; at most one of them is set. Without a subject, the
	// query is about the whole plan.
	Node, Pool string
}

// Explain returns an explanation of why something was done or not done: the known data, the entries
// of the plan with their reasons and dollars, and the previous decision about the same node or
// pool. It also returns the explained step.
func (r *Recording) Explain(q Query) (string, *Step, error) {
	x := explanation{q: q}
	var found, last *Step
	for s, err := range r.Steps() {
		if err != nil {
			return "", nil, err
		}
		if q.before(s) {
			if last == nil && q.Number == 0 {
				return "", nil, fmt.Errorf("%w: %s starts at %v, after %v", ErrNoStep, r.dir, s.Snapshot.Now, q.At)
			}
			if last != nil && s.Number > last.Number+1 && (found == nil || q.Number == 0 && q.At >= last.Plan.Wake) {
				return "", nil, fmt.Errorf("%w: in %s step %d is followed by step %d, at %v and %v",
					ErrNoStep, r.dir, last.Number, s.Number, last.Snapshot.Now, s.Snapshot.Now)
			}
			break
		}
		if last != nil {
			x.passed(last, s)
		}
		if last = s; q.Number == 0 || s.Number == q.Number {
			found = s
		}
	}
	if found == nil {
		count := int64(0)
		if last != nil {
			count = last.Number
		}
		return "", nil, fmt.Errorf("%w: %s has no step %d; its last is step %d", ErrNoStep, r.dir, q.Number, count)
	}
	text, err := x.text(found)
	return text, found, err
}

// before reports whether the step that q selects is earlier than s.
func (q *Query) before(s *Step) bool {
	if q.Number > 0 {
		return s.Number > q.Number
	}
	return s.Snapshot.Now > q.At
}

// An explanation tracks the last decision about its subject.
type explanation struct {
	q Query

	// before is the last entry about the subject before the explained step. seen is the last step
	// in which the subject existed.
	before   string
	beforeAt policy.Time
	seen     int64
	err      error

	// gap is the first range of steps after that entry that is missing from the recording.
	gap Span
}

// subject returns the subject of q in a snapshot: the pool and node IDs of a node, or a pool ID and
// None. Both are None if it does not exist there.
func (q *Query) subject(s *policy.Snapshot) (policy.PoolID, policy.NodeID) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; q.Node != "" && n.Live() && n.Name == q.Node {
			return n.Pool, policy.NodeID(i)
		}
	}
	for i := range s.Pools {
		if q.Pool != "" && s.Pools[i].Name == q.Pool {
			return policy.PoolID(i), policy.None
		}
	}
	return policy.None, policy.None
}

// passed processes a step before the explained one, and the step that follows it.
func (x *explanation) passed(s, next *Step) {
	if x.q.Node == "" && x.q.Pool == "" {
		return
	}
	x.look(s)
	if x.gap == (Span{}) && next.Number > s.Number+1 {
		x.gap = Span{s.Number + 1, next.Number - 1}
	}
}

// look records the decisions of a step about the subject.
func (x *explanation) look(s *Step) {
	pool, node := x.q.subject(s.Snapshot)
	if pool == policy.None && node == policy.None {
		return
	}
	x.seen = s.Number
	rows, err := toPlanRows(s.Number, s.Snapshot, &s.Plan)
	if err != nil && x.err == nil {
		x.err = err
	}
	for i := range rows {
		if r := &rows[i]; r.Kind != kindHold && own(r, s.Snapshot, pool, node) {
			x.before, x.beforeAt, x.gap = line(r, s.Snapshot), s.Snapshot.Now, Span{}
		}
	}
}

func (x *explanation) text(s *Step) (string, error) {
	if x.err != nil {
		return "", x.err
	}
	var b strings.Builder
	if x.q.Node == "" && x.q.Pool == "" {
		err := explainStep(&b, s)
		return b.String(), err
	}
	pool, node := x.q.subject(s.Snapshot)
	if pool == policy.None && node == policy.None {
		return "", x.unknown(s)
	}
	if err := explain(&b, s, pool, node); err != nil {
		return "", err
	}
	if x.before != "" {
		fmt.Fprintf(&b, "the previous decision about it was %v earlier, at %v:\n  %s\n",
			s.Snapshot.Now.Sub(x.beforeAt).Round(time.Second), x.beforeAt, x.before)
	} else if node != policy.None {
		b.WriteString("there is no earlier decision about it\n")
	}
	if x.gap != (Span{}) {
		fmt.Fprintf(&b, "%s missing from the recording, with their decisions\n", x.gap.Are("step"))
	}
	return b.String(), nil
}

// unknown returns an error that the subject does not exist in s, and when it last did.
func (x *explanation) unknown(s *Step) error {
	what := x.q.name()
	if x.seen > 0 {
		last := "no decision concerned it"
		if x.before != "" {
			last = fmt.Sprintf("the last decision about it, at %v, was: %s", x.beforeAt, x.before)
		}
		return fmt.Errorf("%s at step %d (%v): %w; it last existed at step %d; %s", what, s.Number, s.Snapshot.Now,
			ErrNoSuch, x.seen, last)
	}
	return fmt.Errorf("%s at step %d (%v): %w, at this or any earlier step; there are %s", what, s.Number,
		s.Snapshot.Now, ErrNoSuch, x.known(s.Snapshot))
}

// known lists names of possible subjects.
func (x *explanation) known(s *policy.Snapshot) string {
	var names []string
	if x.q.Pool != "" {
		for i := range s.Pools {
			names = append(names, s.Pools[i].Name)
		}
	} else {
		for i := range s.Nodes {
			if s.Nodes[i].Live() {
				names = append(names, s.Nodes[i].Name)
			}
		}
	}
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// explainStep writes the known data about every pool, and the whole plan.
func explainStep(b *strings.Builder, s *Step) error {
	header(b, s)
	for i := range s.Snapshot.Pools {
		explainPool(b, s.Snapshot, policy.PoolID(i))
	}
	explainBudgets(b, s)
	rows, err := toPlanRows(s.Number, s.Snapshot, &s.Plan)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		b.WriteString("the plan does nothing\n")
		for i := range s.Snapshot.Pools {
			fmt.Fprintf(b, "pool %s\n", s.Snapshot.Pools[i].Name)
			quietPool(b, s, policy.PoolID(i))
		}
		return nil
	}
	b.WriteString("the plan\n")
	for i := range rows {
		fmt.Fprintf(b, "  %s\n", line(&rows[i], s.Snapshot))
	}
	return nil
}
