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

// cleanupOwner is the manager of the fields that cleanup writes: the controller's own.
const cleanupOwner = drain.FieldOwner

// undo takes the marks of a controller off all objects, and says what it did. What
// cannot be done is reported in the end, after the rest, unless the server is gone.
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
	c.done.whole = true
	return nil
}

// undoAll takes the marks off all objects of a kind. A kind that the cluster does not
// know has no objects.
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
			c.done.Objects = append(c.done.Objects, unmarked{kind, nameOf(o), what})
		}
	}
	return errors.Join(errs...)
}

func nameOf(o client.Object) string {
	return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// cleanupTries is how often an object is read again after a write by another client.
const cleanupTries = 5

// undoOne takes the marks off one object as the API server has it, and returns which
// there were. One that is gone has none.
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

// takeNode takes off a node the marks of drains and of swaps. A cordon that Spotter did not
// make stays, also where an annotation claims it.
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

// takeClaim takes off a NodeClaim what it says of the launch that it came from, which
// Karpenter copies to its Node, and lets Karpenter act on it again.
func takeClaim(o client.Object) []string {
	what := takeProtection(o)
	for _, key := range []string{karpenter.TokenAnnotation, karpenter.MarketsAnnotation, karpenter.ReplacesAnnotation} {
		what = append(what, takeAnnotation(o, key)...)
	}
	return what
}

// takeSwap takes off a node the marks of a swap between groups. That the Cluster
// Autoscaler leaves it alone stays where the user wants it.
func takeSwap(n *corev1.Node) []string {
	if n.Annotations[asg.AnnotationKept] != "" && n.Annotations[asg.ScaleDownDisabled] == "true" {
		delete(n.Annotations, asg.ScaleDownDisabled)
	}
	return append(takeAnnotation(n, asg.AnnotationSwap), takeAnnotation(n, asg.AnnotationKept)...)
}

// takeProtection removes Spotter's protection from Karpenter.
func takeProtection(o client.Object) []string {
	what := takeAnnotation(o, karpenter.ProtectedAnnotation)
	if len(what) > 0 {
		takeAnnotation(o, karpv1.DoNotDisruptAnnotationKey)
	}
	return what
}

// takeCost removes from a pod a deletion cost that has not changed since.
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

// takeAnnotation takes an annotation off, and returns its name if it was there.
func takeAnnotation(o client.Object, key string) []string {
	a := o.GetAnnotations()
	if _, there := a[key]; !there {
		return nil
	}
	delete(a, key)
	o.SetAnnotations(a)
	return []string{key}
}

// undoNodePools takes back what was written of NodePools that another actor made, and finds
// those that were left buying nothing while their markets were being narrowed: what they
// bought before is not known any more.
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
			c.done.Stopped = append(c.done.Stopped, p.Name)
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
		c.done.Objects = append(c.done.Objects, unmarked{"NodePool", p.Name, fields})
	}
	return errors.Join(errs...)
}
