// Package gpubudget limits how much pods may use of an accelerator, in device-hours and in dollars,
// within a sliding window. It keeps a ledger in [policy.Memory], so that deleted pods still count,
// and adds gates, pauses and evictions to the plan of any policy.
//
// The budgets are part of the Snapshot, like the other objects of the cluster. Without budgets the
// plan of the inner policy is unchanged.
package gpubudget
