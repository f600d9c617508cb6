package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
)

// TestLives: a node has one key from its order to its end, which is when the first of
// its Node object and its machine went; also one that came and went between two
// snapshots is reported, and each once. The market of one that was never launched is
// where it was expected, and is not reported.
func TestLives(t *testing.T) {
	const spot = "aws/us-east-1/us-east-1a/m5.xlarge/spot"
	l := newLab(t, capacityPool("p"), node("old"))
	machine := backend.Machine{Name: "claim", Pool: "p", Market: spot, Phase: policy.NodeLaunching, Launched: at(0),
		ProviderID: "aws:///us-east-1a/i-n"}
	order := machine
	order.ProviderID = ""
	l.observer.SetMachine("karpenter", order)
	s := l.observe(time.Minute)
	if lives, _ := l.observer.Lives(); lives[nodeIn(t, s, "claim").ID] != (cluster.Life{Key: "claim", Ordered: true}) {
		t.Errorf("what is ordered is %+v", lives)
	}
	l.observer.SetMachine("karpenter", machine)
	l.put(node("n"))
	s = l.observe(2 * time.Minute)
	lives, gone := l.observer.Lives()
	if got := lives[nodeIn(t, s, "n").ID]; got != (cluster.Life{Key: "claim"}) || len(gone) != 0 {
		t.Errorf("the node of the claim is %+v, and gone are %+v", got, gone)
	}

	l.clock.SetTime(epoch.Add(130 * time.Second))
	l.remove(l.objects["node n"])
	for name, id := range map[string]string{"brief": "aws:///us-east-1a/i-b", "refused": ""} {
		l.observer.SetMachine("karpenter", backend.Machine{Name: name, Pool: "p", Market: spot, Phase: policy.NodeLaunching,
			Launched: at(2 * time.Minute), ProviderID: id})
	}
	l.clock.SetTime(epoch.Add(140 * time.Second))
	l.observer.DropMachine("karpenter", "brief")
	l.observer.DropMachine("karpenter", "refused")
	l.remove(l.objects["node old"])
	s = l.observe(3 * time.Minute)
	lives, gone = l.observer.Lives()
	if got := lives[nodeIn(t, s, "claim").ID]; got != (cluster.Life{Key: "claim", Ended: at(130 * time.Second)}) {
		t.Errorf("the claim of which the node is gone is %+v", got)
	}
	brief := cluster.Gone{Life: cluster.Life{Key: "brief", Ended: at(140 * time.Second)}, Launched: at(2 * time.Minute),
		Pool: "p", Market: spot}
	old := cluster.Gone{Life: cluster.Life{Key: "old", Ended: at(140 * time.Second)}, Launched: at(-time.Hour), Pool: "p", Market: spot}
	refused := brief
	refused.Key, refused.Market = "refused", ""
	if !slices.Equal(gone, []cluster.Gone{brief, refused, old}) {
		t.Errorf("gone are %+v", gone)
	}
	if _, again := l.observer.Lives(); len(again) != 0 {
		t.Errorf("reported twice: %+v", again)
	}

	l.observer.DropMachine("karpenter", "claim")
	l.observe(4 * time.Minute)
	if _, gone = l.observer.Lives(); len(gone) != 1 || gone[0].Key != "claim" || gone[0].Ended != at(130*time.Second) {
		t.Errorf("gone are %+v, want the claim since its node went", gone)
	}
}

// TestLivesThatTurnOutToBeOne: a Node and its machine are one life from when it is known,
// under the machine's key, and it is reported under which the Node went before.
func TestLivesThatTurnOutToBeOne(t *testing.T) {
	for name, early := range map[string]bool{"both were seen": true, "the Node was seen alone": false} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, capacityPool("p"))
			machine := backend.Machine{Name: "claim", Pool: "p", Phase: policy.NodeLaunching, Launched: at(0)}
			if early {
				l.observer.SetMachine("karpenter", machine)
			}
			n := node("n")
			n.Spec.ProviderID = "aws:///us-east-1a/i-n"
			l.put(n)
			s := l.observe(time.Minute)
			lives, _ := l.observer.Lives()
			if got := lives[nodeIn(t, s, "n").ID]; got != (cluster.Life{Key: "n"}) {
				t.Errorf("the Node alone is %+v", got)
			}
			machine.ProviderID = n.Spec.ProviderID
			l.observer.SetMachine("karpenter", machine)
			s = l.observe(2 * time.Minute)
			lives, gone := l.observer.Lives()
			if got := lives[nodeIn(t, s, "n").ID]; got != (cluster.Life{Key: "claim", Was: "n"}) || len(gone) != 0 {
				t.Errorf("both are %+v, and gone are %+v", got, gone)
			}
		})
	}
}
