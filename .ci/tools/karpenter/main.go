// Command karpenter-kwok is Karpenter's core with its kwok provider, for tests on
// a real API server: nodes are objects without machines.
//
// The kwok provider sells everything at any time. Here the file that
// REFUSED_MARKETS_FILE names lists markets that refuse: one a line, as
// "instance-type/zone/capacity-type", each part a pattern as of path.Match. A launch
// that only they could serve fails for lack of capacity; what refused is then shown
// as unavailable for REFUSED_FOR (3m without it), as cloud providers do.
package main

import (
	"context"
	"fmt"
	"os"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "karpenter-kwok:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, op := operator.NewOperator()
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		return fmt.Errorf("reading the instance types: %w", err)
	}
	scarce, err := newScarcity(os.Getenv("REFUSED_MARKETS_FILE"), os.Getenv("REFUSED_FOR"))
	if err != nil {
		return err
	}
	undecorated := &provider{CloudProvider: kwok.NewCloudProvider(ctx, op.GetClient(), types), scarcity: scarce}
	provider := overlay.Decorate(undecorated, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), provider)
	op.WithControllers(ctx, controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, provider, undecorated, cluster, op.InstanceTypeStore,
	)...).Start(ctx)
	return context.Cause(ctx)
}
