package autoscaler_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/autoscaler"
)

type goldenReason struct{ Node, Reason, Pod, Why string }

type goldenGoing struct{ Empty, Drain []string }

// What is expected of a state of scale-down.
type goldenDown struct {
	First struct {
		Candidates  []string
		Utilization map[string]float64
		Unneeded    []struct {
			Node         string
			Moves        [][2]string
			Risky        bool
			Daemons      []string
			OnCompletion []string `json:"on_completion"`
		}
		Unremovable []goldenReason
	}
	Candidates  []string       `json:"second_candidates"`
	Unneeded    []string       `json:"second_unneeded"`
	Unremovable []goldenReason `json:"second_unremovable"`
	MayGo       []goldenGoing  `json:"may_go"`
	Goes        []goldenGoing
	Held        []goldenReason
}

// TestGoldenScaleDown compares which nodes are unneeded, where their pods go, and why others stay, in a
// first look and in one ten minutes later, and which nodes may then be deleted.
func TestGoldenScaleDown(t *testing.T) {
	for _, version := range []string{"", "1.35.2"} {
		t.Run("scale-down "+version, func(t *testing.T) {
			y := newTally()
			for _, s := range goldenStates(t, "scale-down", version) {
				var want goldenDown
				if err := json.Unmarshal(s.Expected, &want); err != nil {
					t.Fatal(err)
				}
				compareDown(t, y, s.load(goldenVersions[version], false), &want)
			}
			y.report(t)
		})
	}
}

func compareDown(t *testing.T, y *tally, c *goldenCluster, want *goldenDown) {
	s := c.state
	var m autoscaler.Memory
	before := c.fingerprint()
	first := c.FindUnneeded(&m)
	c.compareFirst(t, y, first, want)
	if after := c.fingerprint(); before != after {
		t.Errorf("%s: the look changed the cluster:\n%s\n%s", s.ID, before, after)
	}
	c.Now = goldenNow.Add(10 * time.Second)
	c.FindUnneeded(&m)
	c.Now = goldenNow.Add(10*time.Minute + 20*time.Second)
	second := c.FindUnneeded(&m)
	unneeded := slices.Sorted(slices.Values(c.unneededIn(second))) // these lists are by name
	y.count(t, "second candidates", s, slices.Equal(c.namesOf(second.Candidates), want.Candidates), "%v, want %v",
		c.namesOf(second.Candidates), want.Candidates)
	y.count(t, "second unneeded", s, slices.Equal(unneeded, want.Unneeded), "%v, want %v", unneeded, want.Unneeded)
	reasons := c.reasonsOf(second.Unremovable)
	slices.SortFunc(reasons, func(a, b goldenReason) int { return cmp.Compare(a.Node, b.Node) })
	y.count(t, "second reasons", s, slices.Equal(reasons, want.Unremovable), "%v, want %v", reasons, want.Unremovable)
	c.compareGoing(t, y, &m, second, want)
}

func (c *goldenCluster) compareFirst(t *testing.T, y *tally, got *autoscaler.Look, want *goldenDown) {
	s := c.state
	y.count(t, "candidates", s, slices.Equal(c.namesOf(got.Candidates), want.First.Candidates), "%v, want %v",
		c.namesOf(got.Candidates), want.First.Candidates)
	for i := range c.Nodes {
		if u, asked := want.First.Utilization[c.Nodes[i].Name]; asked {
			x := c.Utilization(c.Nodes[i].ID)
			y.count(t, "utilization", s, max(x-u, u-x) < 1e-9, "%s: %v, want %v", c.Nodes[i].Name, x, u)
		}
	}
	var nodes []string
	var plans, wanted []string
	byPriority := func(a, b [2]string) int { return c.priorityOf(b[0]) - c.priorityOf(a[0]) }
	for _, u := range want.First.Unneeded {
		nodes = append(nodes, u.Node)
		wanted = append(wanted, fmt.Sprint(u.Node, u.Moves, u.Risky, u.Daemons, u.OnCompletion))
	}
	for i := range got.Unneeded {
		u := &got.Unneeded[i]
		var moves [][2]string
		for _, x := range u.Moves {
			moves = append(moves, [2]string{c.Pods[x.Pod].Name, c.Nodes[x.To].Name})
		}
		slices.SortStableFunc(moves, byPriority) // as the vectors list them, whatever the order of moving
		plans = append(plans, fmt.Sprint(c.Nodes[u.Node].Name, moves, u.Risky, c.podNames(u.Daemons), c.podNames(u.Completing)))
	}
	y.count(t, "unneeded", s, slices.Equal(c.unneededIn(got), nodes), "%v, want %v", c.unneededIn(got), nodes)
	y.count(t, "moves", s, slices.Equal(plans, wanted), "\n%v, want\n%v", plans, wanted)
	reasons := c.reasonsOf(got.Unremovable)
	y.count(t, "reasons", s, slices.Equal(reasons, want.First.Unremovable), "\n%v, want\n%v", reasons, want.First.Unremovable)
}

// compareGoing compares which nodes may be deleted, and which are. Of equal nodes the real one takes any, and
// its 16 answers do not show all: an answer is right if it takes as many nodes as one of those, and none that is
// held for another reason than the minimum size of its group.
func (c *goldenCluster) compareGoing(t *testing.T, y *tally, m *autoscaler.Memory, l *autoscaler.Look, want *goldenDown) {
	s := c.state
	empty, drain, held := c.Deletable(m, l)
	listed := func(answers []goldenGoing, empty, drain []policy.NodeID) bool {
		return !slices.ContainsFunc(c.namesOf(slices.Concat(empty, drain)), func(n string) bool {
			return !slices.Contains(want.Unneeded, n) || slices.ContainsFunc(want.Held, func(r goldenReason) bool {
				return r.Node == n && r.Reason != autoscaler.GroupMinSizeReached.String()
			})
		}) && slices.ContainsFunc(answers, func(a goldenGoing) bool { return len(a.Empty) == len(empty) && len(a.Drain) == len(drain) })
	}
	y.count(t, "may go", s, listed(want.MayGo, empty, drain), "%v and %v, want one of %v", c.namesOf(empty), c.namesOf(drain), want.MayGo)
	goes, drained := c.Crop(empty, drain, 0, 0)
	y.count(t, "goes", s, listed(want.Goes, goes, drained), "%v and %v, want one of %v", c.namesOf(goes), c.namesOf(drained), want.Goes)
	for _, r := range c.reasonsOf(held) {
		y.count(t, "held", s, slices.Contains(want.Held, r) ||
			r.Reason == autoscaler.GroupMinSizeReached.String(), "%v, want one of %v", r, want.Held)
	}
}

func (c *goldenCluster) priorityOf(pod string) int {
	i := slices.IndexFunc(c.Pods, func(p policy.Pod) bool { return p.Name == pod })
	return int(c.Templates[c.Pods[i].Template].Priority)
}

func (c *goldenCluster) namesOf(nodes []policy.NodeID) (names []string) {
	for _, n := range nodes {
		names = append(names, c.Nodes[n].Name)
	}
	return names
}

func (c *goldenCluster) podNames(pods []policy.PodID) (names []string) {
	for _, p := range pods {
		names = append(names, c.Pods[p].Name)
	}
	return names
}

func (c *goldenCluster) unneededIn(l *autoscaler.Look) (names []string) {
	for i := range l.Unneeded {
		names = append(names, c.Nodes[l.Unneeded[i].Node].Name)
	}
	return names
}

func (c *goldenCluster) reasonsOf(list []autoscaler.Unremovable) (out []goldenReason) {
	for _, u := range list {
		r := goldenReason{Node: c.Nodes[u.Node].Name, Reason: u.Reason.String()}
		if u.Reason == autoscaler.BlockedByPod {
			r.Pod, r.Why = c.Pods[u.Pod].Name, u.Blocking.String()
		}
		out = append(out, r)
	}
	return out
}

// fingerprint says which pods are where.
func (c *goldenCluster) fingerprint() string {
	var out []string
	for n := range c.Space.Nodes() {
		id := policy.NodeID(n)
		out = append(out, fmt.Sprint(c.Space.Pods(id), c.Space.Free(id), c.Space.Allocatable(id)))
	}
	return fmt.Sprint(out)
}
