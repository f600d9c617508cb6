package main

import (
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A state is all that a comparison depends on: the objects of Kueue, and what happens to them.
// Workloads with an admission have quota at the start; those that a step submits come later.
type state struct {
	Seed      uint64                 `json:"seed"`
	Flavors   []kueue.ResourceFlavor `json:"flavors"`
	Cohorts   []kueue.Cohort         `json:"cohorts,omitempty"`
	Queues    []kueue.ClusterQueue   `json:"queues"`
	Workloads []kueue.Workload       `json:"workloads"`
	Steps     []step                 `json:"steps"`
}

// A step is one event. What it names may not be there: it is left out.
type step struct {
	// Do is "cycle", "submit" or "finish" for a workload, or "requeue": all workloads that are
	// being evicted, or only the one that is named, lose their quota and wait again.
	Do string `json:"do"`
	On string `json:"on,omitempty"`
}

// start is the time of the first step; each takes a second.
var start = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

const namespace = "default"

func readState(path string) (*state, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var st state
	if err := yaml.UnmarshalStrict(text, &st); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &st, nil
}

func (st *state) write(path string) error {
	text, err := yaml.Marshal(st)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// later reports whether a step submits a workload.
func (st *state) later(name string) bool {
	for _, s := range st.Steps {
		if s.Do == "submit" && s.On == name {
			return true
		}
	}
	return false
}

func (st *state) workload(name string) *kueue.Workload {
	for i := range st.Workloads {
		if st.Workloads[i].Name == name {
			return &st.Workloads[i]
		}
	}
	return nil
}

// localQueues makes one LocalQueue for each ClusterQueue, of the same name.
func (st *state) localQueues() []kueue.LocalQueue {
	var all []kueue.LocalQueue
	for i := range st.Queues {
		name := st.Queues[i].Name
		all = append(all, kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)},
		})
	}
	return all
}

// requestsOf returns what one pod of a set requests.
func requestsOf(set *kueue.PodSet) corev1.ResourceList {
	return set.Template.Spec.Containers[0].Resources.Requests
}
