// Command karpenter-kwok is Karpenter's core with its kwok provider, for tests on a real
// API server: nodes are objects without machines.
//
// The kwok provider always has capacity, at constant prices, and reclaims no nodes. This
// command changes that:
//
//   - REFUSED_MARKETS_FILE names a file of the markets that refuse launches: one per line,
//     as "instance-type/zone/capacity-type", where each part is a pattern as in path.Match.
//     A launch that only these markets could serve fails for lack of capacity; the markets
//     that refused it are then reported as unavailable for REFUSED_FOR (3m by default), as
//     cloud providers do;
//   - PRICES_FILE names a JSON file of prices over time: by market, named as above without
//     patterns, a list of {"at": milliseconds since 1970, "price": millionths of a dollar
//     per hour}, ascending by time. A market that is not in the file keeps the price of its
//     type;
//   - TAKEN_FILE names a file of announcements, one per line: "reclaim NODE TIME" means
//     that the machine of a node is gone from TIME on, which is in RFC 3339 format, and
//     "recommend NODE" that its user is advised to leave it. NODE is the last part of the
//     node's provider ID; the node need not have joined yet. With
//     INTERRUPTION_CONTROLLER=true Karpenter receives both and does what Karpenter for AWS
//     does and the core does not: it makes an Event for each and, for a reclaim, deletes
//     the NodeClaim and reports the market as unavailable for REFUSED_FOR;
//   - with INSTANCE_IDS=true nodes and their machines have names in the form of AWS's
//     instance IDs, so that AWS's warnings can name them;
//   - nodes have the capacity of their instance types, and not what pods request;
//   - with JOIN_AFTER=30s-60s each node joins the cluster after a delay drawn uniformly
//     between the two, unless its NodeClaim is deleted first.
//
// With the argument crds the command prints the definitions of its kinds as JSON and exits.
//
// A launch takes any of several markets with the same price, as the kwok provider does.
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
