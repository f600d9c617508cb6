package portfolio

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// fiveFull are five nodes on demand, each full, that spot would replace for less.
const fiveFull = `
type a.4 4
type b.8 8
type c.5 5
market z a.4 spot 0.06
market z b.8 on-demand 0.80
market z b.8 spot 0.121
market z c.5 spot 0.0601
pool web steer=1
app api 2 pdb=16 replicas=20
node n1 web z b.8 on-demand
node n2 web z b.8 on-demand
node n3 web z b.8 on-demand
node n4 web z b.8 on-demand
node n5 web z b.8 on-demand
pod api n1 4
pod api n2 4
pod api n3 4
pod api n4 4
pod api n5 4`

// decided returns what is decided in the snapshot of text after change.
func decided(t *testing.T, text string, change func(*policy.Snapshot)) (*policy.Snapshot, policy.Plan) {
	t.Helper()
	s, m, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	p, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := p.Decide(s, m)
	return s, plan
}

// TestRoundKeepsLimits: whatever the pool's limit or the quota leaves, all that one round
// buys is within it, also where the provider chooses the largest of the markets that a
// launch names, and where all nodes are under notice.
func TestRoundKeepsLimits(t *testing.T) {
	changes := map[string]func(*policy.Snapshot, int64){
		"limit": func(s *policy.Snapshot, left int64) {
			s.Pools[0].Used.CPU, s.Pools[0].Limits.CPU = 40_000, 40_000+left*1000
		},
		"quota": func(s *policy.Snapshot, left int64) {
			s.Quotas = []policy.Quota{{Region: s.Markets[0].Region, Capacity: policy.Spot, VCPU: left}}
		},
		"notice": func(s *policy.Snapshot, left int64) {
			s.Quotas = []policy.Quota{{Region: s.Markets[0].Region, Capacity: policy.Spot, VCPU: left}}
			for i := range s.Nodes {
				s.Nodes[i].Market, s.Nodes[i].ReclaimAt = 2, s.Now.Add(2*time.Minute)
			}
		},
	}
	for name, change := range changes {
		most := int64(0)
		for left := range int64(50) {
			s, plan := decided(t, fiveFull, func(s *policy.Snapshot) { change(s, left) })
			bought := int64(0)
			for i := range plan.Launches {
				largest := int64(0)
				for _, id := range plan.Launches[i].Markets {
					if s.Markets[id].Capacity == policy.Spot {
						largest = max(largest, s.Types[s.Markets[id].Type].VCPU)
					}
				}
				bought += largest
			}
			if most = max(most, bought); bought > left {
				t.Errorf("%s: the round buys %d vCPUs where %d are left:\n%s", name, bought, left, plan.Format(s))
			}
		}
		if most < 40 {
			t.Errorf("%s: no round buys more than %d vCPUs", name, most)
		}
	}
}

// TestRoundBuysElsewhere: where a quota leaves one node of the cheapest market, what one
// more would hold is bought in the next one.
func TestRoundBuysElsewhere(t *testing.T) {
	s, plan := decided(t, strings.ReplaceAll(fiveFull, "0.121", "0.10"), func(s *policy.Snapshot) {
		s.Quotas = []policy.Quota{{Region: s.Markets[0].Region, Capacity: policy.Spot, Families: []string{s.Types[1].Family}, VCPU: 8}}
	})
	if len(plan.Drains) != len(s.Nodes) || len(plan.Launches) != 9 {
		t.Errorf("%d of %d nodes are replaced by %d:\n%s", len(plan.Drains), len(s.Nodes), len(plan.Launches), plan.Format(s))
	}
}

// TestSmallNodes: where the cheapest nodes are so small that too many would take the place of
// one, larger ones do, however many of the small are cheaper.
func TestSmallNodes(t *testing.T) {
	for _, small := range []int{1, 70} {
		text := strings.ReplaceAll(fiveFull, "app api 2 pdb=16 replicas=20", "app api 1 pdb=36 replicas=40")
		for i := range 5 {
			text = strings.Replace(text, fmt.Sprintf("pod api n%d 4", i+1), fmt.Sprintf("pod api n%d 8", i+1), 1)
		}
		for i := range small {
			text = strings.Replace(text, "pool web", fmt.Sprintf("type s.%02d 1\nmarket z s.%02d spot 0.001\npool web", i, i), 1)
		}
		s, plan := decided(t, text, func(*policy.Snapshot) {})
		if len(plan.Drains) == 0 || len(plan.Launches) == 0 {
			t.Errorf("with %d small types %d nodes are drained and %d bought", small, len(plan.Drains), len(plan.Launches))
		}
		for i := range plan.Launches {
			if m := plan.Launches[i].Markets[0]; s.Types[s.Markets[m].Type].VCPU < 4 {
				t.Errorf("with %d small types one of %s is bought", small, s.Markets[m].Name)
			}
		}
	}
}
