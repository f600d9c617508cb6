//go:build !karpenter115

package main

import (
	"context"

	"github.com/awslabs/operatorpkg/controller"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

// controllersOf returns Karpenter's controllers, up to 1.14.
func controllersOf(ctx context.Context, op *operator.Operator, decorated,
	undecorated cloudprovider.CloudProvider) ([]controller.Controller, error) {
	cluster := state.NewCluster(op.Clock, op.GetClient(), decorated)
	return controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated, undecorated, cluster, op.InstanceTypeStore,
	), nil
}
