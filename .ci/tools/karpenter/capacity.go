package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// Capacities are those of instance types by name. The kwok provider takes what pods request
// for the capacity of their node, so that the limits of a NodePool count too little.
type capacities map[string]corev1.ResourceList

func capacitiesOf(types []*cloudprovider.InstanceType) capacities {
	all := capacities{}
	for _, t := range types {
		all[t.Name] = t.Capacity
	}
	return all
}

// set gives a claim that was launched the capacity of its type.
func (c capacities) set(claim *v1.NodeClaim) {
	claim.Status.Capacity = c[claim.Labels[corev1.LabelInstanceTypeStable]].DeepCopy()
}

// A sizing client is one whose nodes have the capacity of their types.
type sizing struct {
	client.Client
	capacities
}

// Create implements client.Client.
func (s sizing) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if n, ok := o.(*corev1.Node); ok {
		n = n.DeepCopy()
		n.Status.Capacity = s.capacities[n.Labels[corev1.LabelInstanceTypeStable]].DeepCopy()
		o = n
	}
	return s.Client.Create(ctx, o, options...)
}
