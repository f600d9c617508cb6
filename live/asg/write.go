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

// This file holds every write of this package: to AWS, each of which asks the fence
// right before, and to Nodes.

// fenced calls the fence right before each request that is not a read, so that no request can be
// forgotten. It is called once for all attempts: after the first it would no longer be certain that
// nothing was written.
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

// once keeps the SDK from sending a request twice: an absolute size that is sent again may undo a
// raise by another client.
func once(o *autoscaling.Options) { o.Retryer = sdk.NopRetryer{} }

// setDesired requests a size, once.
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

// terminate ends an instance and lowers what its group is to hold, once.
func (c *cloud) terminate(ctx context.Context, id string) error {
	_, err := c.scaling.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: &id, ShouldDecrementDesiredCapacity: sdk.Bool(true)}, once)
	return err
}

// protect sets whether the group may choose an instance when it scales in.
func (c *cloud) protect(ctx context.Context, group, id string, on bool) error {
	_, err := c.scaling.SetInstanceProtection(ctx, &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: &group,
		InstanceIds: []string{id}, ProtectedFromScaleIn: &on})
	return err
}

// tag writes a tag of a group or of its managed node group. It is not passed on to
// instances.
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

// untag removes a tag; one that is not there is no error.
func (c *cloud) untag(ctx context.Context, g *group, key string) error {
	if g.managed.name != "" {
		_, err := c.managed.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: &g.managed.arn, TagKeys: []string{key}})
		return err
	}
	_, err := c.scaling.DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []scaling.Tag{{ResourceId: &g.name,
		ResourceType: sdk.String("auto-scaling-group"), Key: &key}}})
	return err
}

// setMax bounds a group.
func (c *cloud) setMax(ctx context.Context, g *group, n int) error {
	_, err := c.scaling.UpdateAutoScalingGroup(ctx,
		&autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &g.name, MaxSize: sdk.Int32(int32(n))})
	return err
}

// setOnDemand sets the part that a mixed group buys on demand. The group replaces
// what it has too many of.
func (c *cloud) setOnDemand(ctx context.Context, g *group, percent int) error {
	_, err := c.scaling.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &g.name,
		MixedInstancesPolicy: &scaling.MixedInstancesPolicy{InstancesDistribution: &scaling.InstancesDistribution{
			OnDemandPercentageAboveBaseCapacity: sdk.Int32(int32(percent))}}})
	return err
}

// annotate changes the annotations of a node as the API server has it, against its
// resource version: what another writes at the same time is read and decided on again. A node that is
// gone needs nothing.
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
