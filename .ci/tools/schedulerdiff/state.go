package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// A state is a cluster, and what happens in it: all that a comparison depends on.
type state struct {
	Seed           uint64                         `json:"seed"`
	Namespaces     []corev1.Namespace             `json:"namespaces"`
	Nodes          []corev1.Node                  `json:"nodes"`
	CSINodes       []storagev1.CSINode            `json:"csiNodes"`
	StorageClasses []storagev1.StorageClass       `json:"storageClasses"`
	Volumes        []corev1.PersistentVolume      `json:"volumes,omitempty"`
	Claims         []corev1.PersistentVolumeClaim `json:"claims,omitempty"`
	Services       []corev1.Service               `json:"services,omitempty"`
	ReplicaSets    []appsv1.ReplicaSet            `json:"replicaSets,omitempty"`
	StatefulSets   []appsv1.StatefulSet           `json:"statefulSets,omitempty"`
	Budgets        []policyv1.PodDisruptionBudget `json:"budgets,omitempty"`

	// Pods with a node are bound to it at the start; the others are pending.
	Pods []corev1.Pod `json:"pods"`

	// Steps happen one after the other.
	Steps []step `json:"steps"`
}

// A step is one event. What it names may be gone by then: it is left out.
type step struct {
	// Do is "schedule", "terminate" or "remove" for a pod, "cordon" or "uncordon"
	// for a node, or "retry": the victims so far are gone, and all pods that found
	// no node are tried again in the order of the queue.
	Do string `json:"do"`
	On string `json:"on,omitempty"`
}

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

// queued sorts pods as the scheduler's queue: by priority, then age
// (pkg/scheduler/framework/plugins/queuesort).
func queued(pods []*corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// claimsOf returns the names of the claims of a pod.
func claimsOf(p *corev1.Pod) (names []string) {
	for i := range p.Spec.Volumes {
		if v := p.Spec.Volumes[i].PersistentVolumeClaim; v != nil {
			names = append(names, v.ClaimName)
		}
	}
	return names
}
