package scenarios

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A StartCluster is the cluster in which the warm-up of a run starts.
type StartCluster uint8

const (
	// StartEmpty is a cluster without nodes in which all pods are pending. The provisioner of each
	// policy launches the first nodes, under the rules of each pool.
	StartEmpty StartCluster = iota

	// StartOnDemand is the cheapest on-demand packing of the pods, the same for every policy.
	// It measures a migration from on-demand nodes.
	StartOnDemand

	// StartNodes is the cluster with the nodes in spec.nodes, the same for every policy.
	StartNodes
)

// String returns the name used in flags and scenarios.
func (s StartCluster) String() string { return [...]string{"empty", "on-demand", "nodes"}[s] }

// Nodes describes the first nodes in a few words.
func (s StartCluster) Nodes() string {
	return [...]string{"no nodes", "on-demand nodes", "the nodes of spec.nodes"}[s]
}

// Describe returns the description of the start cluster in reports.
func (s StartCluster) Describe() string {
	return [...]string{
		"an empty cluster: each policy launches its first nodes during the warm-up",
		"on-demand nodes for every policy: a migration from the cheapest on-demand packing",
		"the nodes of spec.nodes for every policy",
	}[s]
}

// ErrStart is returned for a start cluster that is unknown or contradicts the scenario.
var ErrStart = errors.New("start")

// ParseStartCluster parses "empty" or "on-demand".
func ParseStartCluster(text string) (StartCluster, error) {
	for _, s := range []StartCluster{StartEmpty, StartOnDemand} {
		if text == s.String() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: %q is not empty or on-demand", ErrStart, text)
}

// startIn sets the cluster in which the warm-up starts. If wanted is nil, it is that of sc.
func (w *BoundScenario) startIn(sc *Scenario, wanted *StartCluster) error {
	switch {
	case len(sc.nodes) > 0 && wanted != nil:
		return fmt.Errorf("%w: %v contradicts spec.nodes of %s, which lists the nodes that every policy starts from",
			ErrStart, *wanted, sc.Name)
	case len(sc.nodes) > 0:
		w.StartCluster = StartNodes
	case wanted != nil:
		w.StartCluster = *wanted
	}
	return nil
}

// A startSpec contains the time at which metering starts and the cluster in which the warm-up
// starts: one of them as a scalar, or both as a mapping.
type startSpec struct {
	// At is the time at which metering starts; nil means the first time of the trace.
	At *metav1.Time `json:"at"`

	// Cluster is "empty" or "on-demand"; by default empty.
	Cluster startWord `json:"cluster"`
}

func (s *startSpec) cluster() StartCluster {
	c, _ := ParseStartCluster(string(s.Cluster))
	return c
}

// readScalar parses a time or the name of a start cluster.
func (s *startSpec) readScalar(text string) error {
	if _, err := ParseStartCluster(text); err == nil {
		s.Cluster = startWord(text)
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("want a time such as 2026-01-31T00:00:00Z, empty or on-demand, got %q", text)
	}
	s.At = &metav1.Time{Time: t}
	return nil
}

// A startWord is the name of a StartCluster.
type startWord string

func (w *startWord) readScalar(text string) error {
	if _, err := ParseStartCluster(text); err != nil {
		return fmt.Errorf("want empty or on-demand, got %q", text)
	}
	*w = startWord(text)
	return nil
}
