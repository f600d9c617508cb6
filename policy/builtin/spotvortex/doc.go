// Package spotvortex implements the deterministic policy of the SpotVortex agent (c8c8027): rules
// on risk scores, workload features and economics select one of six actions for each pool, which
// determine its Spot share.
//
// There are two variants. Compat reproduces the agent exactly, under its own guardrails and
// including its faults. The default variant applies the same rules and fixes the faults that
// defeated their purpose: an action moves the share by its own size and stops at the cap; a node is
// replaced before it is drained; pools without disruption budgets and small pools are not frozen;
// growth must pay back its cost in dollars, and waits for a calm market; notices and
// recommendations are obeyed; an emergency leaves Spot altogether.
package spotvortex
