// Package oracle computes a lower bound on what any policy pays in a scenario:
// bill and outage cost together. It knows prices, demand and weather of the whole
// window in advance, and nothing of how comparisons are run or reported.
//
// # Why the bound holds
//
// Cut the window wherever a price, an offer or a demand changes. In each piece let every kind of
// node (its capacity without its DaemonSet pods, and the workloads that may run there) have a price
// per resource such that its whole capacity is priced at no more than the node costs, in the
// cheapest market in which one can be alive. The requests of the pods on a node are then priced at
// no more than the node, so a pod of a workload costs at least the price of its requests on the
// kind where that price is lowest: its rate. And a pod that is missing costs 2 × pod value, so no
// rate need be above that.
//
//   - A service that wants d pods and has r pays at least rate·r + 2·value·(d−r),
//     and this is at least rate·d.
//   - A job released early enough that no run is excused from it has each hour of
//     its work done between its release and its end, by at most as many pods at
//     once as it has, or pays 2·value for it. What can be done of it before the
//     window costs nothing; to every completion of the others belongs the start of
//     a pod. The cheapest pieces that can hold the work cost no more than any that
//     do.
//
// Sharper than prices of resources are prices of pods such that no whole pods
// that fit a node of a kind are together worth more than it costs: they are its
// pods' rates at once. Whether they are such is searched exactly; for a kind of
// which the search takes too long its prices of resources are left.
//
// Any prices give a bound. Those used are the best: they come from the linear
// program whose columns are nodes of a kind, each with pods that just fit, whose
// rows are the workloads, and in which a pod may stay unserved. The rates that it
// finds are worked out again from the prices alone, with every rounding downward,
// so that a fault of the solver can only lower the bound. Where work of jobs goes
// is found by turns: it decides how good the bound is and not whether it holds.
//
// What was paid for in advance is a node of a kind that costs nothing, as long as
// the amount lasts. Let each commitment have a value per unit: then such a node
// costs its part of that value, for as many as there are, and the value of the
// whole amount is taken off the bound. Any values will do, and the best are again
// those of the program, which has a row for each commitment.
//
// Fees of a node are a part of its price: the least of any pool that may buy it, and of
// nodes that commitments cover none.
//
// What is left out only lowers the bound: surplus CPU credits, whole nodes, the start-up of nodes,
// overlap, reclaims and refusals, slots, spreading over zones, disruption budgets,
// shares and limits. A market counts as closed only where no slot of it could hold
// a node: which is when depends on the weather, so that the bound of a seed is
// above that of all.
//
// # Slots
//
// In a weather a Spot market has a limited number of nodes at once: a node holds a slot, a slot is
// lost at the instants of its calendar and in shortages, and no slot is available while the market
// is closed or less deep. Let c be the most nodes that market m may have in a piece of the window,
// and p the least cost of one there. Let every kind of node have any price P at all, and the pods
// any rates at which no set of pods that fits a node of a kind is worth more than P. Then a node in
// m costs p, and the pods on it are worth no more than
//
//	P ≤ p + max(0, P − p),
//
// so that all pods served are worth no more than what the nodes cost and c ·
// max(0, P − p) for every market. What is subtracted holds for the kind of the
// market where that is most, since pools share its slots. Demand × rates, less
// that, is a bound for any P, and the best P are the prices of the linear program
// in which nodes of a kind are bought in its cheapest markets first, each up to
// its slots: the classic Lagrangian relaxation, whose multiplier is the rent of a
// slot.
//
// What is left out only lowers this bound too: that launches take time, that a
// provider places nodes as it likes, that a refusal makes a provisioner wait, and
// how shallow a market is while nodes that it gave before run on.
package oracle
