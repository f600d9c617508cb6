// Package spotvortex decides as the deterministic policy of the SpotVortex agent (c8c8027) does:
// rules on risk scores, workload features and economics give each pool one of six actions, and the
// Spot share follows.
//
// Two forms are kept apart. Compat is to the letter, under the agent's own guardrails, faults
// included. The other, the default, applies the same rules and fixes the faults that kept them from
// their purpose: an action moves the share by its own size and stops at the cap; a node is replaced
// before it is drained; pools without disruption budgets and small pools are not frozen; growth
// must pay back its cost in dollars, and waits for a calm market; notices and recommendations are
// obeyed; an emergency leaves Spot altogether.
package spotvortex
