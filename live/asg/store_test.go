package asg

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A store is an API server for nodes and one capacity pool, without pods and volumes
// and with nothing else but what a swap needs, since a thousand of them are run.
type store struct {
	client.WithWatch
	mu      sync.Mutex
	nodes   map[string]*corev1.Node
	version int
}

func newStore() *store { return &store{nodes: map[string]*corev1.Node{}} }

var nodesResource = schema.GroupResource{Resource: "nodes"}

func (s *store) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[key.Name]
	if n == nil {
		return apierrors.NewNotFound(nodesResource, key.Name)
	}
	n.DeepCopyInto(o.(*corev1.Node))
	return nil
}

func (s *store) List(_ context.Context, o client.ObjectList, _ ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch list := o.(type) {
	case *corev1.NodeList:
		for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
			list.Items = append(list.Items, *s.nodes[name].DeepCopy())
		}
	case *v1alpha1.CapacityPoolList:
		list.Items = append(list.Items, *capacityPool("web"))
	}
	return nil
}

func (s *store) put(n *corev1.Node) {
	s.version++
	n.ResourceVersion = strconv.Itoa(s.version)
	s.nodes[n.Name] = n.DeepCopy()
}

func (s *store) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[o.GetName()] != nil {
		return apierrors.NewAlreadyExists(nodesResource, o.GetName())
	}
	s.put(o.(*corev1.Node))
	return nil
}

func (s *store) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.nodes[o.GetName()]; {
	case n == nil:
		return apierrors.NewNotFound(nodesResource, o.GetName())
	case n.ResourceVersion != o.GetResourceVersion():
		return apierrors.NewConflict(nodesResource, o.GetName(), nil)
	}
	s.put(o.(*corev1.Node))
	return nil
}

// Patch takes o as patched, and every patch for one with optimistic lock.
func (s *store) Patch(ctx context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return s.Update(ctx, o)
}

func (s *store) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, o.GetName())
	return nil
}
