//go:build karpenter115

package main

import (
	"context"

	"github.com/awslabs/operatorpkg/controller"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

// controllersOf returns Karpenter's controllers, from 1.15 on.
func controllersOf(ctx context.Context, op *operator.Operator, decorated,
	undecorated cloudprovider.CloudProvider) ([]controller.Controller, error) {
	repairs, err := health.NewRepairPolicyMatcher(ctx, decorated)
	if err != nil {
		return nil, err
	}
	cluster := state.NewCluster(op.Clock, op.GetClient(), decorated, state.WithRepairPolicyMatcher(repairs))
	return controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated, undecorated, cluster, op.InstanceTypeStore, op.PredictionStore,
	), nil
}
