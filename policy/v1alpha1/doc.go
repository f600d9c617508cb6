// Package v1alpha1 holds the objects that users write and read: CapacityPool,
// GPUBudget, SpotNode and SpotPlan of the API group spotter.dev. The simulator reads the
// same manifests as the cluster.
//
// +kubebuilder:object:generate=true
// +groupName=spotter.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1 object crd:allowDangerousTypes=true paths=. output:crd:dir=../../live/crd

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "spotter.dev", Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&CapacityPool{}, &CapacityPoolList{},
		&GPUBudget{}, &GPUBudgetList{},
		&SpotNode{}, &SpotNodeList{},
		&SpotPlan{}, &SpotPlanList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
