package gpubudget

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// A watcher notes what the policy inside sees of the pods.
type watcher struct{ pinned []bool }

func (*watcher) Name() string { return "watcher" }

func (w *watcher) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	w.pinned = w.pinned[:0]
	for i := range s.Pods {
		w.pinned = append(w.pinned, s.Pods[i].DoNotDisrupt)
	}
	return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
}

// TestSettled shows the policy inside that pods which a closed gate would not admit
// again are not to be disrupted, and leaves the snapshot as it is.
func TestSettled(t *testing.T) {
	x, err := parseStory(`type big 96
market z big spot 8.00
pool p
node n1 p z big spot
node n2 p z big spot
app train 1
app web 1
gpus train 4
budget b train hours=100 action=Evict
pod train n1
pod web n1
pod train pending`)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	p := Around(w, DefaultConfig())
	for _, closed := range []bool{false, true, false} {
		x.s.Budgets[0].Closed = closed
		p.Decide(x.s, x.m)
		for i, want := range []bool{closed, false, false} {
			if w.pinned[i] != want {
				t.Errorf("gate closed %v: %s is not to be disrupted: %v", closed, x.s.Pods[i].Name, w.pinned[i])
			}
			if x.s.Pods[i].DoNotDisrupt {
				t.Fatalf("the snapshot was changed")
			}
		}
	}
}
