// Command karpenter-kwok is Karpenter's core with its kwok provider, for tests on
// a real API server: nodes are objects without machines.
//
// The kwok provider sells everything at any time, at prices that never move, and
// takes nothing back. Here
//
//   - the file that REFUSED_MARKETS_FILE names lists markets that refuse: one a line,
//     as "instance-type/zone/capacity-type", each part a pattern as of path.Match. A
//     launch that only they could serve fails for lack of capacity; what refused is
//     then shown as unavailable for REFUSED_FOR (3m without it), as cloud providers do;
//   - the file that PRICES_FILE names holds prices over time, as JSON: by market, named
//     as above without patterns, a list of {"at": milliseconds since 1970, "price":
//     millionths of a dollar for an hour}, ascending by time. A market that is not in it
//     keeps the price of its type;
//   - the file that TAKEN_FILE names says, a line each, what is announced: "reclaim NODE
//     TIME" is a node whose machine is gone from that time on, which is written as of
//     RFC 3339, and "recommend NODE" one that its user is advised to leave. NODE is the
//     last part of its provider ID, and need not have joined yet. With
//     INTERRUPTION_CONTROLLER=true Karpenter is told of both and does what Karpenter for
//     AWS does, which the core does not: of each it makes an Event, and of the first it
//     deletes the NodeClaim and shows the market as unavailable for REFUSED_FOR;
//   - with INSTANCE_IDS=true nodes and their machines are named as AWS names instances,
//     so that its warnings can be of them;
//   - nodes have the capacity of their instance types, and not what pods request;
//   - with JOIN_AFTER=30s-60s nodes join the cluster so long after their launch, each
//     after a time drawn evenly between the two, unless their NodeClaim is deleted before.
//
// With the argument crds it prints the definitions of its kinds as JSON and ends.
//
// Among markets of one price a launch takes any, as the kwok provider does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "crds" {
		if err := json.NewEncoder(os.Stdout).Encode(slices.Concat(apis.CRDs, kwokapis.CRDs)); err != nil {
			fmt.Fprintln(os.Stderr, "karpenter-kwok:", err)
			os.Exit(1)
		}
		return
	}
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
	priced, err := newTariff(os.Getenv("PRICES_FILE"))
	if err != nil {
		return err
	}
	if file := os.Getenv("TAKEN_FILE"); file != "" {
		r := &reclaimer{file: file, client: op.GetClient(), events: op.EventRecorder, markets: scarce,
			interrupts: os.Getenv("INTERRUPTION_CONTROLLER") == "true"}
		if err := op.Add(manager.RunnableFunc(r.run)); err != nil {
			return err
		}
	}
	named, err := newLatecomer(op.GetClient(), os.Getenv("JOIN_AFTER"))
	if err != nil {
		return err
	}
	asInstances := os.Getenv("INSTANCE_IDS") == "true"
	if asInstances {
		named = instances{named}
	}
	sizes := capacitiesOf(types)
	undecorated := &provider{CloudProvider: kwok.NewCloudProvider(ctx, sizing{named, sizes}, types), scarcity: scarce,
		tariff:     priced,
		capacities: sizes, instances: asInstances}
	provider := overlay.Decorate(undecorated, op.GetClient(), op.InstanceTypeStore)
	all, err := controllersOf(ctx, op, provider, undecorated)
	if err != nil {
		return err
	}
	op.WithControllers(ctx, all...).Start(ctx)
	return context.Cause(ctx)
}
