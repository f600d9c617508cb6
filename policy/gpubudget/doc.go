// Package gpubudget bounds what pods may use of an accelerator, in device-hours
// and in dollars, within a sliding window. It keeps a ledger in
// [policy.Memory], so that pods which were deleted still count, and adds gates,
// pauses and evictions to the plan of any policy.
//
// The budgets come with the Snapshot, as the other objects of the cluster do.
// Without one the plan of the policy inside stays as it is.
package gpubudget
