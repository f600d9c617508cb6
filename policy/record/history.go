package record

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A PastEntry is an entry of a plan with its step.
type PastEntry struct {
	Step int64  `json:"step"`
	At   string `json:"at"`
	PlanEntry

	// Line is the entry as text.
	Line string `json:"line"`

	// Minor reports whether the entry changes nothing by itself: it is a hold, or sets the order in
	// which pods are deleted.
	Minor bool `json:"minor,omitempty"`
}

// History returns the entries about the node or pool in q, from one time (inclusive) until another
// (exclusive). It ignores the step and time in q. If q names neither a node nor a pool, it returns
// all entries. A zero time means no bound. The error is [ErrNoSuch] if no step in that interval has
// the node or pool.
func (r *Recording) History(q Query, from, until policy.Time) ([]PastEntry, error) {
	out, known := []PastEntry{}, q.Node == "" && q.Pool == ""
	var last *policy.Snapshot
	for s, err := range r.Steps() {
		if err != nil {
			return nil, err
		}
		if s.Snapshot.Now < from {
			continue
		}
		if until != 0 && s.Snapshot.Now >= until {
			break
		}
		last = s.Snapshot
		if pool, node := q.subject(s.Snapshot); pool != policy.None || node != policy.None {
			known = true
		}
		rows, err := q.rows(s)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			x := &rows[i]
			minor := x.Kind == kindHold || x.Kind == kindDeletionCost
			out = append(out, PastEntry{s.Number, s.Snapshot.Now.String(), x.entry(), x.brief(s.Snapshot), minor})
		}
	}
	if !known && last != nil {
		x := explanation{q: q}
		return nil, fmt.Errorf("%s: %w; the last step has %s", q.name(), ErrNoSuch, x.known(last))
	}
	return out, nil
}

// name returns the subject of q.
func (q *Query) name() string {
	if q.Pool != "" {
		return "pool " + q.Pool
	}
	return "node " + q.Node
}

// brief returns the entry on one line without details for programs.
func (r *planRow) brief(s *policy.Snapshot) string {
	x := *r
	x.Token, x.RunnerUp = "", ""
	switch r.Kind {
	case kindLaunch:
		var b strings.Builder
		fmt.Fprintf(&b, "launch for %s in %s", r.Pool, r.Market)
		if r.Node != "" {
			fmt.Fprintf(&b, " to replace %s", r.Node)
		}
		return b.String() + x.why()
	case kindDrain:
		text := "drain " + r.Node
		if r.After != "" && r.After != "null" {
			text += " once its replacement is ready"
		}
		return text + x.why()
	case kindSteer:
		text := fmt.Sprintf("steer %s to %s Spot", r.Pool, figures.Share(r.Share, 0))
		return text + x.why()
	}
	return line(&x, s)
}
