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
	// StartEmpty is a cluster without nodes in which all pods are pending: each policy's own
	// provisioner launches the first nodes, under the rules of each pool.
	StartEmpty StartCluster = iota

	// StartOnDemand is the cheapest on-demand packing of the pods, the same for every policy.
	// It measures a migration from on-demand nodes.
	StartOnDemand

	// StartNodes is what spec.nodes lists, the same for every policy.
	StartNodes
)

// String returns the name that flags and scenarios use.
func (s StartCluster) String() string { return [...]string{"empty", "on-demand", "nodes"}[s] }

// Nodes returns what the first nodes are, in a few words.
func (s StartCluster) Nodes() string {
	return [...]string{"no nodes", "on-demand nodes", "the nodes of spec.nodes"}[s]
}

// Describe returns what the output says of a start.
func (s StartCluster) Describe() string {
	return [...]string{
		"an empty cluster: each policy launches its first nodes during the warm-up",
		"on-demand nodes for every policy: a migration from the cheapest on-demand packing",
		"the nodes of spec.nodes for every policy",
	}[s]
}

// ErrStart is returned for a start that is not known, or that contradicts the scenario.
var ErrStart = errors.New("start")

// ParseStartCluster reads empty or on-demand.
func ParseStartCluster(text string) (StartCluster, error) {
	for _, s := range []StartCluster{StartEmpty, StartOnDemand} {
		if text == s.String() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: %q is not empty or on-demand", ErrStart, text)
}

// startIn chooses the cluster in which the warm-up starts; wanted is nil for that of sc.
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

// A startSpec says when metering starts and in which cluster the warm-up starts: one of them
// as a scalar, or both as a mapping.
type startSpec struct {
	// At is when metering starts; nil means the trace's first time.
	At *metav1.Time `json:"at"`

	// Cluster is empty or on-demand; none means empty.
	Cluster startWord `json:"cluster"`
}

func (s *startSpec) cluster() StartCluster {
	c, _ := ParseStartCluster(string(s.Cluster))
	return c
}

// readScalar reads a time or a name of a start.
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
