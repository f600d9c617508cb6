package capture

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/scenarios"
)

// readBeta reads the NodePools and EC2NodeClasses of a Karpenter before 1.0 and converts them to
// v1.
func (l *listed) readBeta(ctx context.Context, c client.Reader) {
	if len(l.objects[reflect.TypeFor[*karpv1.NodePool]()]) > 0 {
		return
	}
	pools, err := listBeta(ctx, c, "karpenter.sh", "NodePool")
	if apierrors.IsForbidden(err) && !slices.ContainsFunc(l.missing,
		func(m string) bool { return strings.Contains(m, "nodepools") }) {
		l.missing = append(l.missing,
			"the right to list nodepools.karpenter.sh is missing: a NodePool allows the capacity types that its nodes have")
		return
	}
	if err != nil || len(pools) == 0 {
		return // no NodePools, or a missing right that was reported
	}
	const read = "the NodePools are of karpenter.sh/v1beta1"
	classes, err := listBeta(ctx, c, "karpenter.k8s.aws", "EC2NodeClass")
	if err != nil {
		classes = nil // a NodePool without its class is captured from its nodes, which is reported
	}
	objects, notes, err := scenarios.ConvertOld(append(pools, classes...))
	if err == nil {
		err = l.fileConverted(objects)
	}
	if err != nil {
		l.missing = append(l.missing, fmt.Sprintf("%s: %v", read, err))
		return
	}
	l.missing = append(l.missing,
		read+": they and their EC2NodeClasses are written as v1; Spotter itself needs Karpenter 1.0 or later")
	l.missing = append(l.missing, notes[1:]...) // the first names every object
}

// fileConverted adds NodePools and EC2NodeClasses of v1 as if they had been listed.
func (l *listed) fileConverted(objects []map[string]any) error {
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		if u.GetKind() != "NodePool" {
			l.objects[reflect.TypeOf(u)] = append(l.objects[reflect.TypeOf(u)], u)
			continue
		}
		p := &karpv1.NodePool{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, p); err != nil {
			return fmt.Errorf("NodePool %s: %w", u.GetName(), err)
		}
		l.objects[reflect.TypeOf(p)] = append(l.objects[reflect.TypeOf(p)], p)
	}
	return nil
}

// listBeta lists objects of the API version v1beta1.
func listBeta(ctx context.Context, c client.Reader, group, kind string) ([]map[string]any, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: kind + "List"})
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	out := make([]map[string]any, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Object
	}
	return out, nil
}
