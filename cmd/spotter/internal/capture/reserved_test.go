package capture

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// reservedNode has a node be of reserved capacity, in a reservation if it is named.
func reservedNode(n *policy.Node, id string) {
	n.Labels = slices.DeleteFunc(slices.Clone(n.Labels), func(l policy.Label) bool {
		return slices.Contains([]string{"eks.amazonaws.com/capacityType", karpv1.CapacityTypeLabelKey, labelReservation}, l.Key)
	})
	n.Labels = append(n.Labels, policy.Label{Key: karpv1.CapacityTypeLabelKey, Value: karpv1.CapacityTypeReserved})
	if id != "" {
		n.Labels = append(n.Labels, policy.Label{Key: labelReservation, Value: id})
	}
	slices.SortFunc(n.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
}

// withReservations is the cluster of owned, whose class selects a reservation that its second
// node is in and another without nodes.
func withReservations(t *testing.T) (*policy.Snapshot, Options) {
	t.Helper()
	s, o := owned(t)
	read(t, strings.Replace(ownNodePool, "values: [spot, on-demand]", "values: [reserved, spot, on-demand]", 1), &o.NodePools[0])
	read(t, strings.NewReplacer("  role:", "  capacityReservationSelectorTerms: [{tags: {owner: secret}}]\n  role:", "  subnets:",
		`  capacityReservations:
  - {id: cr-secret1, instanceType: m5.2xlarge, availabilityZone: us-east-1b, ownerID: "123456789012", reservationType: default, instanceMatchCriteria: targeted, state: active}
  - {id: cr-secret2, instanceType: m5.large, availabilityZone: us-east-1a, ownerID: "123456789012", instanceMatchCriteria: open}
  subnets:`).Replace(ownNodeClass), &o.NodeClasses[0].Object)
	reservedNode(&s.Nodes[1], "cr-secret1")
	s.Templates[0].NodeSelector = []policy.Label{team}
	s.Templates[0].Tolerations = []policy.Toleration{{Key: "team", Exists: true}}
	return s, o
}

// capturedDay captures a cluster for a day, and reads what is written.
func capturedDay(t *testing.T, s *policy.Snapshot, o Options) (*Captured, *scenarios.BoundScenario, string) {
	t.Helper()
	c, err := Take(s, o)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Draw(1, drawnMax, s.Now, s.Now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Write(Run{Start: s.Now, Duration: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := bind(t, "captured.yaml", text, tr)
	return c, w, string(text)
}

// capturedRun runs such a day.
func capturedRun(t *testing.T, s *policy.Snapshot, o Options) (*Captured, *scenarios.BoundScenario, *sim.Result, string) {
	t.Helper()
	c, w, text := capturedDay(t, s, o)
	runs, job := runner.New(), eval.Job{Case: eval.Case{Scenario: w.Name, Bound: w}, Policy: asIs, Seed: 1}
	cfg, err := runs.Config(job)
	if err != nil {
		t.Fatal(err)
	}
	res, err := runs.Simulate(t.Context(), job, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, w, res, text
}

// TestReservations writes the reservations that NodePools may launch into, with as many nodes as are in
// them, and these nodes in them: they cost nothing more. What is not known is said by name.
func TestReservations(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		s, o := withReservations(t)
		o.Anonymise = hidden
		c, w, res, text := capturedRun(t, s, o)
		id := map[bool]string{false: "cr-secret1", true: "reservation-1"}[hidden]
		if len(w.Reservations) != 1 || w.Reservations[0].ID != id || w.Reservations[0].Count != 1 {
			t.Fatalf("reservations %+v\n%s", w.Reservations, text)
		}
		pool := map[bool]string{false: "web-team", true: c.own[0].pool.Metadata.Name}[hidden]
		if seeds := seedsOf(w); seeds[pool+" aws/us-east-1/us-east-1b/m5.2xlarge/reserved/"+id] != 1 {
			t.Errorf("nodes %v\n%s", seeds, text)
		}
		if res.Spared <= 0 || res.CommitmentFee <= 0 {
			t.Errorf("spared are %v of a fee of %v", res.Spared, res.CommitmentFee)
		}
		said := func(list []string, want string) bool {
			return slices.ContainsFunc(list, func(l string) bool { return strings.Contains(l, want) })
		}
		if !said(c.Assumed, "capacity reservation "+id+" holds the nodes that are in it, 1,") ||
			!said(c.Left, "1 capacity reservations that no node is in") {
			t.Errorf("assumed %q, left out %q", c.Assumed, c.Left)
		}
		if strings.Contains(text, "123456789012") || strings.Contains(text, "secret") == hidden {
			t.Errorf("names that people chose are there, hidden %v\n%s", hidden, text)
		}
	}
}

// TestReservedUnknown has a commitment pay for reserved nodes whose reservation is not known.
func TestReservedUnknown(t *testing.T) {
	for name, change := range map[string]func(*policy.Snapshot, *Options){
		"no reservation is named":        func(s *policy.Snapshot, _ *Options) { reservedNode(&s.Nodes[1], "") },
		"the class selects another":      func(s *policy.Snapshot, _ *Options) { reservedNode(&s.Nodes[1], "cr-3") },
		"the class may not be read":      func(_ *policy.Snapshot, o *Options) { o.NodeClasses = nil },
		"the NodePool allows it no more": func(_ *policy.Snapshot, o *Options) { read(t, ownNodePool, &o.NodePools[0]) },
	} {
		s, o := withReservations(t)
		change(s, &o)
		c, w, res, text := capturedRun(t, s, o)
		if len(w.Commitments) != 1 || w.Commitments[0].Name != "reserved-m5.2xlarge-us-east-1b" ||
			w.Commitments[0].Amount != 1 || res.Spared <= 0 {
			t.Errorf("%s: commitments %+v, spared %v\n%s", name, w.Commitments, res.Spared, text)
		}
		if !strings.Contains(fmt.Sprint(c.Assumed), "1 nodes of reserved capacity are nodes on demand that spec.commitments pays") {
			t.Errorf("%s: assumed %q", name, c.Assumed)
		}
	}
}
