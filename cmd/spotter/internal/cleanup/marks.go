package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/asg"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/gpubudget"
	"github.com/spotter-dev/spotter/live/karpenter"
)

// cleanupOwner is the field manager of the writes of cleanup, the same as that of the controller.
const cleanupOwner = drain.FieldOwner

// undo removes the marks of a controller from all objects and records what it did. It continues
// after errors and returns all of them, unless the server becomes unreachable.
func (c *cleaner) undo(ctx context.Context) error {
	var errs []error
	for _, k := range []struct {
		kind string
		list client.ObjectList
		take func(client.Object) []string
	}{
		{"node", &corev1.NodeList{}, takeNode},
		{"NodeClaim", &karpv1.NodeClaimList{}, takeClaim},
		{"pod", &corev1.PodList{}, takeCost},
		{"job", &batchv1.JobList{}, takePause},
	} {
		err := c.undoAll(ctx, k.kind, k.list, k.take)
		if errors.As(err, new(*cli.UnreachableError)) {
			return err
		}
		errs = append(errs, err)
	}
	errs = append(errs, c.undoNodePools(ctx))
	if c.call.aws {
		errs = append(errs, c.restoreGroups(ctx))
	}
	switch err := errors.Join(errs...); {
	case err != nil && c.call.dryRun:
		return fmt.Errorf("not all objects could be read: %w", err)
	case err != nil:
		return fmt.Errorf("not all marks could be taken away; run it again: %w", err)
	}
	c.result.complete = true
	return nil
}

// undoAll removes the marks from all objects of a kind. A kind that the cluster does not have has
// no objects.
func (c *cleaner) undoAll(ctx context.Context, kind string, list client.ObjectList,
	take func(client.Object) []string) error {
	if err := c.client.List(ctx, list); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("listing each %s: %w", kind, err)
	}
	c.looked = true
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range all {
		o := o.(client.Object)
		what, err := c.undoOne(ctx, o, take)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", kind, nameOf(o), err))
		}
		if len(what) > 0 {
			c.result.Objects = append(c.result.Objects, cleanedObject{kind, nameOf(o), what})
		}
	}
	return errors.Join(errs...)
}

func nameOf(o client.Object) string {
	return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// cleanupTries is the maximum number of attempts to write an object that another client changes.
const cleanupTries = 5

// undoOne removes the marks from one object, and returns the marks that it had. It returns none for
// an object that no longer exists.
func (c *cleaner) undoOne(ctx context.Context, o client.Object, take func(client.Object) []string) ([]string, error) {
	for try := 1; ; try++ {
		changed := o.DeepCopyObject().(client.Object)
		what := take(changed)
		if len(what) == 0 || c.call.dryRun {
			return what, nil
		}
		patch := client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
		err := c.client.Patch(ctx, changed, patch, client.FieldOwner(cleanupOwner))
		switch {
		case err == nil:
			return what, nil
		case apierrors.IsNotFound(err):
			return nil, nil
		case !apierrors.IsConflict(err) || try == cleanupTries:
			return nil, err
		}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
	}
}

// takeNode removes the marks of drains and swaps from a node. A cordon that Spotter did not make
// stays, even if an annotation claims it.
func takeNode(o client.Object) []string {
	n := o.(*corev1.Node)
	var what []string
	taints := len(n.Spec.Taints)
	switch ours, claimed := drain.Uncordon(n); {
	case ours:
		what = append(what, "a cordon")
	case claimed:
		what = append(what, drain.AnnotationCordon+" (the taint is missing, so the cordon stays)")
	}
	if len(n.Spec.Taints) < taints {
		what = append(what, "the taint "+drain.TaintDraining)
	}
	what = append(what, takeAnnotation(n, drain.AnnotationDrain)...)
	what = append(what, takeClaim(n)...)
	return append(what, takeSwap(n)...)
}

// takeClaim removes the annotations about the launch from a NodeClaim or from a Node, to which
// Karpenter copies them, and allows Karpenter to disrupt it again.
func takeClaim(o client.Object) []string {
	what := takeProtection(o)
	for _, key := range []string{karpenter.TokenAnnotation, karpenter.MarketsAnnotation, karpenter.ReplacesAnnotation} {
		what = append(what, takeAnnotation(o, key)...)
	}
	return what
}

// takeSwap removes the marks of a swap between groups from a node. An annotation that keeps the
// Cluster Autoscaler from removing the node stays if a user set it.
func takeSwap(n *corev1.Node) []string {
	if n.Annotations[asg.AnnotationKept] != "" && n.Annotations[asg.ScaleDownDisabled] == "true" {
		delete(n.Annotations, asg.ScaleDownDisabled)
	}
	return append(takeAnnotation(n, asg.AnnotationSwap), takeAnnotation(n, asg.AnnotationKept)...)
}

// takeProtection removes Spotter's protection from disruption by Karpenter.
func takeProtection(o client.Object) []string {
	what := takeAnnotation(o, karpenter.ProtectedAnnotation)
	if len(what) > 0 {
		takeAnnotation(o, karpv1.DoNotDisruptAnnotationKey)
	}
	return what
}

// takeCost removes a pod deletion cost that Spotter set, unless it was changed since.
func takeCost(o client.Object) []string {
	a := o.GetAnnotations()
	if cost, ours := a[drain.AnnotationCostOwner]; ours && cost == a[drain.AnnotationCost] {
		takeAnnotation(o, drain.AnnotationCost)
	}
	return takeAnnotation(o, drain.AnnotationCostOwner)
}

// takePause resumes a job that was suspended for a budget.
func takePause(o client.Object) []string {
	what := takeAnnotation(o, gpubudget.PausedBy)
	if j := o.(*batchv1.Job); len(what) > 0 && j.Spec.Suspend != nil && *j.Spec.Suspend {
		goOn := false
		j.Spec.Suspend = &goOn
	}
	return what
}

// takeAnnotation removes an annotation, and returns its name if it existed.
func takeAnnotation(o client.Object, key string) []string {
	a := o.GetAnnotations()
	if _, there := a[key]; !there {
		return nil
	}
	delete(a, key)
	o.SetAnnotations(a)
	return []string{key}
}

// undoNodePools undoes Spotter's changes to NodePools that another actor created. It also lists
// those that buy nothing because their markets were being narrowed: their earlier limits are
// unknown.
func (c *cleaner) undoNodePools(ctx context.Context) error {
	var pools karpv1.NodePoolList
	if err := c.client.List(ctx, &pools); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("listing each NodePool: %w", err)
	}
	var errs []error
	for i := range pools.Items {
		p := &pools.Items[i]
		if p.Annotations[karpenter.NarrowingAnnotation] != "" {
			c.result.BuyNothing = append(c.result.BuyNothing, p.Name)
		}
		fields := karpenter.Written(p)
		if len(fields) == 0 {
			continue
		}
		if !c.call.dryRun {
			if err := karpenter.Restore(ctx, c.client, p.Name); err != nil {
				errs = append(errs, fmt.Errorf("NodePool %s: %w", p.Name, err))
				continue
			}
		}
		c.result.Objects = append(c.result.Objects, cleanedObject{"NodePool", p.Name, fields})
	}
	return errors.Join(errs...)
}
