package karpenter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// nodeClassKinds lists the kinds of node class of the known Karpenter providers.
var nodeClassKinds = []schema.GroupKind{
	{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass"},
	{Group: "eks.amazonaws.com", Kind: "NodeClass"}, // EKS Auto Mode
	{Group: "karpenter.azure.com", Kind: "AKSNodeClass"},
	{Group: "karpenter.k8s.gcp", Kind: "GCENodeClass"},
	{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"},
}

// A classFinder finds Karpenter and its node classes. Its state is a cache that can be rebuilt.
type classFinder struct {
	cfg *Config
	api *apiReader

	mu     sync.Mutex
	found  schema.GroupKind // kind of node class that was found last
	absent policy.Time      // when Karpenter was last found not to be installed
	known  classList
}

// kind returns the kind of node class to use.
func (f *classFinder) kind() (schema.GroupVersionKind, error) {
	if !f.cfg.NodeClass.Empty() {
		return f.cfg.NodeClass, nil
	}
	// A missing kind costs a request to the API server each time, so the kind found last is tried
	// first.
	f.mu.Lock()
	kinds := append([]schema.GroupKind{f.found}, nodeClassKinds...)
	f.mu.Unlock()
	for _, k := range kinds {
		if k.Empty() {
			continue
		}
		m, err := f.api.client.RESTMapper().RESTMapping(k)
		if err == nil {
			f.mu.Lock()
			f.found = k
			f.mu.Unlock()
			return m.GroupVersionKind, nil
		}
		if !meta.IsNoMatchError(err) {
			return schema.GroupVersionKind{}, err
		}
	}
	return schema.GroupVersionKind{}, backend.Hold("NodeClassMissing", "the API server has no node class of Karpenter")
}

// of returns the node class of a pool: the one that the pool names, or the first by name that
// matches its selector. The list of node classes may be up to age old.
func (f *classFinder) of(ctx context.Context, pool *v1alpha1.CapacityPool,
	age time.Duration) (karpv1.NodeClassReference, error) {
	kind, err := f.kind()
	if err != nil {
		return karpv1.NodeClassReference{}, err
	}
	ref := karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind}
	k := pool.Spec.Backend.Karpenter
	if k == nil {
		return ref, backend.Hold("OtherBackend", "pool %s has no Karpenter backend", pool.Name)
	}
	if ref.Name = k.NodeClassName; ref.Name != "" {
		return ref, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(k.NodeClassSelector)
	if err != nil || selector.Empty() && k.NodeClassSelector == nil {
		return ref, backend.Hold("NodeClassMissing", "pool %s names no node class, and its selector is not valid: %v",
			pool.Name, err)
	}
	all, err := f.list(ctx, kind, age)
	if err != nil {
		return ref, err
	}
	for i := range all { // ascending by name
		if selector.Matches(labels.Set(all[i].GetLabels())) {
			ref.Name = all[i].GetName()
			return ref, nil
		}
	}
	return ref, backend.Hold("NodeClassMissing", "no %s has the labels %s", kind.Kind, selector)
}

// A classList is the list of node classes at a time, sorted by name.
type classList struct {
	at    policy.Time
	items []unstructured.Unstructured
}

// list returns the node classes, sorted by name, from a read that is less than age old. Clusters
// have few of them.
func (f *classFinder) list(ctx context.Context, kind schema.GroupVersionKind,
	age time.Duration) ([]unstructured.Unstructured, error) {
	f.mu.Lock()
	known := f.known
	f.mu.Unlock()
	if known.at != 0 && f.cfg.now().Sub(known.at) < age {
		return known.items, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := f.api.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	slices.SortFunc(list.Items, func(x, y unstructured.Unstructured) int {
		return strings.Compare(x.GetName(),
			y.GetName())
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = classList{f.cfg.now(), list.Items}
	return list.Items, nil
}

// ready returns a Held if the node class of a NodePool does not exist or is not ready: Karpenter
// would delete a claim that uses it at once. The data may be up to age old.
func (f *classFinder) ready(ctx context.Context, name string, age time.Duration) error {
	kind, err := f.kind()
	if err != nil {
		return err
	}
	all, err := f.list(ctx, kind, age)
	if err != nil {
		return err
	}
	u := find(all, name)
	if u == nil {
		return backend.Hold("NodeClassMissing", "%s %s does not exist", kind.Kind, name)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if x, ok := c.(object); ok && x["type"] == "Ready" && x["status"] != "True" {
			return backend.Hold("NodeClassNotReady", "%s %s is not ready: %v", kind.Kind, name, x["message"])
		}
	}
	return nil
}

// googleClass is the kind of the node classes of Google Cloud, and these are the keys under which its
// provider writes to a Node the name of its class, and to both a hash of the class's settings. The
// hash on the Node is that of its launch (cloudpilot-ai/karpenter-provider-gcp,
// pkg/apis/v1alpha1/labels.go).
const (
	googleClass      = "GCENodeClass"
	googleClassLabel = "karpenter.k8s.gcp/gcenodeclass"
	googleClassHash  = "karpenter.k8s.gcp/gcenodeclass-hash"
)

// googleLead returns the time from a notice on a Node of Google Cloud to its reclaim that its node
// class requested at its launch; 0 if this is not known. A machine keeps the setting that it was
// launched with, so a class that has changed since says nothing. It sends no request.
func (f *classFinder) googleLead(n *corev1.Node) time.Duration {
	name := n.Labels[googleClassLabel]
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" || f.found.Kind != googleClass {
		return 0
	}
	u := find(f.known.items, name)
	if u == nil || u.GetKind() != googleClass || n.Annotations[googleClassHash] == "" ||
		u.GetAnnotations()[googleClassHash] != n.Annotations[googleClassHash] {
		return 0
	}
	seconds, _, _ := unstructured.NestedInt64(u.Object, "spec", "preemptionNoticeDuration")
	lead, _ := policy.GoogleNotice(seconds)
	return lead
}

// readGoogle reads the node classes if they are those of Google Cloud, so that a notice at the start
// of the controller is understood too.
func (f *classFinder) readGoogle(ctx context.Context) error {
	if kind, err := f.kind(); err == nil && kind.Kind == googleClass {
		_, err = f.list(ctx, kind, judgedFor)
		return err
	}
	return nil // the classes of another provider are read when they are needed
}

// installed returns a Held if Karpenter is not installed. It repeats a failed check only after
// judgedFor, since each check is a request to the API server.
func (f *classFinder) installed() error {
	f.mu.Lock()
	absent := f.absent != 0 && f.cfg.now().Sub(f.absent) < judgedFor
	f.mu.Unlock()
	if absent {
		return heldMissing
	}
	_, err := f.api.client.RESTMapper().RESTMapping(nodePoolKind.GroupKind(), groupVersion.Version)
	if missing(err) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.absent = f.cfg.now()
	}
	return heldIfMissing(err)
}
