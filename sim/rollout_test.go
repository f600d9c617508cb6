package sim

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A rolled follows a rollout: which pods came and went, and how many were ready.
type rolled struct {
	from        policy.Time
	came, went  []string
	least, most int32
}

func (r *rolled) Happened(e Entry) {
	switch {
	case e.At < r.from:
	case e.Kind == "created":
		r.came = append(r.came, e.Subject)
	case e.Kind == "ended":
		r.went = append(r.went, e.Subject)
	}
}

func (r *rolled) Settled(m *Moment) {
	if m.Now >= r.from {
		ready := m.Workload(0).Ready
		r.least, r.most = min(r.least, ready), max(r.most, ready)
	}
}

// TestRollout rolls a version out over six pods, a quarter at a time: two more come at once,
// and no more than one is missed. It is no outage. Where fewer are wanted in the midst of it,
// it ends with these.
func TestRollout(t *testing.T) {
	for name, c := range map[string]struct {
		then       int32 // replicas a minute after it began
		came, went string
	}{
		"in peace":  {6, "6 7 8 9 10 11", "0 1 2 3 4 5"},
		"shrinking": {2, "", "0 1 2 3 4 5"},
	} {
		t.Run(name, func(t *testing.T) {
			b := one(6, scenarios.ReplicaStep{At: at(time.Hour + time.Minute), Replicas: c.then})
			b.w.Intensity, b.w.Pools[0].Consolidation = 0, policy.ConsolidateNever
			b.w.Workloads[0].Rollouts = []policy.Time{at(time.Hour)}
			r := &rolled{from: at(time.Hour), least: 6}
			result := mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: &orderer{}, Seed: 1, Check: true, Observer: r})
			short := func(pods []string) string {
				slices.SortFunc(pods, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
				return strings.ReplaceAll(strings.Join(pods, " "), "default/web-", "")
			}
			came, went := short(r.came), short(r.went)
			if c.came != "" && came != c.came || !strings.HasPrefix(went, c.went) || len(r.came)-len(r.went) != int(c.then)-6 {
				t.Errorf("pods %s came, and %s went", came, went)
			}
			if least := min(c.then, 5); r.least < least || r.least > 5 || r.most > 8 {
				t.Errorf("from %d to %d pods were ready", r.least, r.most)
			}
			if result.Outages.Incidents != 0 {
				t.Errorf("outages: %v", &result.Outages)
			}
		})
	}
}
