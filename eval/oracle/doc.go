// Package oracle computes a lower bound on the sum of bill and outage cost of any policy in a
// scenario. It knows the prices, the demand and the weather of the whole window in advance. It does
// not depend on how comparisons are run or reported.
//
// # Why the bound holds
//
// Cut the window wherever a price, an offer or a demand changes. In each piece, assign prices of
// resources to every kind of node (its capacity without its DaemonSet pods, and the workloads that
// may run there), such that the price of its whole capacity is at most the cost of the node in the
// cheapest market in which one can be alive. The total price of the requests of the pods on a node
// is then at most the cost of the node. A pod of a workload therefore costs at least the price of
// its requests on the kind where that price is lowest: its rate. A missing pod costs 2 × pod value,
// so no rate needs to be higher.
//
//   - A service that requires d pods and has r pays at least rate·r + 2·value·(d−r), which is at
//     least rate·d.
//   - A job that is released early enough that its delay is never excused does each hour of its
//     work between its release and its end, with at most as many pods at once as it has, or pays
//     2·value for it. Work that can be done before the window costs nothing. For jobs that are
//     released later, each completion includes the start of a pod. The cheapest pieces that are
//     long enough for the work cost no more than any others.
//
// Prices of pods give a higher bound than prices of resources: they must be such that no whole pods
// that fit on a node of a kind are together worth more than the node costs. They are the rates of
// the pods. An exact search verifies this condition. For a kind whose search takes too long, the
// prices of resources are used.
//
// Any prices give a bound. The best ones are used: they come from the linear program whose columns
// are nodes of a kind, each with pods that just fit, whose rows are the workloads, and in which a
// pod may remain unserved. The resulting rates are computed again from the prices alone, always
// rounded down, so an error of the solver can only lower the bound. The times of the work of jobs
// are found iteratively: they determine the quality of the bound, but not its validity.
//
// What was paid in advance is a node of a kind that costs nothing while the amount lasts. Assign
// each commitment a value per unit. Then such a node costs the part of that value that it uses, for
// as many nodes as the amount covers, and the value of the whole amount is subtracted from the
// bound. Any values are valid; the best ones come from the linear program, which has a row for each
// commitment.
//
// Node fees are part of a node's price: the lowest fees of any pool that may launch it, and 0 for
// nodes that commitments cover.
//
// Everything that is ignored can only lower the bound: surplus CPU credits, whole nodes, the
// start-up of nodes, overlap, reclaims and refusals, slots, spreading over zones, disruption
// budgets, shares and limits. A market only counts as closed while none of its slots can have a
// node. When this is the case depends on the weather, so the bound of a seed is higher than that of
// all seeds.
//
// # Slots
//
// In a given weather, a Spot market has a limited number of nodes at once: each node occupies a
// slot, a slot loses its node at the instants of its calendar and in shortages, and no slot is
// available while the market is closed or less deep. Let c be the maximum number of nodes of market
// m in a piece of the window, and p the lowest cost of one there. Assign any price P to every kind
// of node, and any rates to the pods such that no set of pods that fits on a node of a kind is
// worth more than P. Then a node in m costs p, and the pods on it are worth at most
//
//	P ≤ p + max(0, P − p),
//
// so all served pods are worth at most the cost of the nodes plus c · max(0, P − p) for every
// market. Pools share the slots of a market, so the kind for which this term is largest is used.
// Demand × rates minus this term is a bound for any P. The best P are the prices of the linear
// program in which nodes of a kind are launched in its cheapest markets first, each up to its
// slots: the classic Lagrangian relaxation, whose multiplier is the rent of a slot.
//
// Everything that is ignored can only lower this bound too: the time of launches, the provider's
// choice of placement, the waiting of a provisioner after a refusal, and the lower depth of a
// market while nodes that were launched earlier still run.
package oracle
