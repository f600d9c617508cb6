package asg

import (
	"context"
	"fmt"
	"maps"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	managed "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go/middleware"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
)

// This file contains every write of the package: those to AWS, each of which calls the fence
// immediately before, and those to Nodes.

// fenced adds a middleware that calls the fence before each request that is not a read, so that no
// write can omit it. The fence is called once for all attempts: if it failed after the first
// attempt, it would not be certain that nothing was written.
func (c *cloud) fenced(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Fence",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput,
			middleware.Metadata, error) {
			if c.fence != nil && !strings.HasPrefix(middleware.GetOperationName(ctx), "Describe") {
				if err := c.fence(ctx); err != nil {
					return middleware.FinalizeOutput{}, middleware.Metadata{}, &backend.FencedError{Err: err}
				}
			}
			return next.HandleFinalize(ctx, in)
		}), "Retry", middleware.Before)
}

// once keeps the SDK from sending a request twice: repeating an absolute size may undo an increase
// by another client.
func once(o *autoscaling.Options) { o.Retryer = sdk.NopRetryer{} }

// setDesired requests a desired size. Only for managed node groups is the request repeated on
// errors, with the same token.
func (c *cloud) setDesired(ctx context.Context, g *group, n int, token string) error {
	size := sdk.Int32(int32(n))
	if g.managed.name != "" {
		_, err := c.managed.UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{ClusterName: &g.managed.cluster,
			NodegroupName:      &g.managed.name,
			ClientRequestToken: &token, ScalingConfig: &managed.NodegroupScalingConfig{DesiredSize: size}})
		return err
	}
	_, err := c.scaling.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: &g.name,
		DesiredCapacity: size,
		HonorCooldown:   sdk.Bool(false)}, once)
	return err
}

// terminate terminates an instance and decrements the desired size of its group. It sends one
// request.
func (c *cloud) terminate(ctx context.Context, id string) error {
	_, err := c.scaling.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: &id, ShouldDecrementDesiredCapacity: sdk.Bool(true)}, once)
	return err
}

// protect sets whether an instance is protected from scale-in.
func (c *cloud) protect(ctx context.Context, group, id string, on bool) error {
	_, err := c.scaling.SetInstanceProtection(ctx, &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: &group,
		InstanceIds: []string{id}, ProtectedFromScaleIn: &on})
	return err
}

// tag writes a tag of a group or of its managed node group. The tag is not propagated to instances.
func (c *cloud) tag(ctx context.Context, g *group, key, value string) error {
	if g.managed.name != "" {
		_, err := c.managed.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &g.managed.arn,
			Tags: map[string]string{key: value}})
		return err
	}
	_, err := c.scaling.CreateOrUpdateTags(ctx,
		&autoscaling.CreateOrUpdateTagsInput{Tags: []scaling.Tag{{ResourceId: &g.name,
			ResourceType: sdk.String("auto-scaling-group"), Key: &key, Value: &value, PropagateAtLaunch: sdk.Bool(false)}}})
	return err
}

// untag removes a tag. A missing tag is not an error.
func (c *cloud) untag(ctx context.Context, g *group, key string) error {
	if g.managed.name != "" {
		_, err := c.managed.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: &g.managed.arn, TagKeys: []string{key}})
		return err
	}
	_, err := c.scaling.DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []scaling.Tag{{ResourceId: &g.name,
		ResourceType: sdk.String("auto-scaling-group"), Key: &key}}})
	return err
}

// setMax sets the maximum size of a group.
func (c *cloud) setMax(ctx context.Context, g *group, n int) error {
	_, err := c.scaling.UpdateAutoScalingGroup(ctx,
		&autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &g.name, MaxSize: sdk.Int32(int32(n))})
	return err
}

// setOnDemand sets the on-demand percentage of a mixed group. The group then replaces its surplus
// instances.
func (c *cloud) setOnDemand(ctx context.Context, g *group, percent int) error {
	_, err := c.scaling.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &g.name,
		MixedInstancesPolicy: &scaling.MixedInstancesPolicy{InstancesDistribution: &scaling.InstancesDistribution{
			OnDemandPercentageAboveBaseCapacity: sdk.Int32(int32(percent))}}})
	return err
}

// annotate changes the annotations of a node. It reads the node from the API server and patches it
// with optimistic locking: after a conflict it reads the node and calls change again. A node that
// no longer exists is not an error.
func (k *kubeAPI) annotate(ctx context.Context, name string, change func(map[string]string)) error {
	const tries = 3
	var err error
	for range tries {
		var node corev1.Node
		err = k.reader.Get(ctx, client.ObjectKey{Name: name}, &node)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading node %s: %w", name, err)
		}
		before := node.DeepCopy()
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		change(node.Annotations)
		if maps.Equal(before.Annotations, node.Annotations) {
			return nil
		}
		err = k.client.Patch(ctx, &node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			fieldOwner)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsForbidden(err) {
		return backend.Hold(ReasonDenied, "annotating node %s: %v", name, err)
	}
	return fmt.Errorf("annotating node %s: %w", name, err)
}

// fieldOwner is the field manager of Spotter's writes in Kubernetes.
const fieldOwner = client.FieldOwner("spotter")
