// Package gpubudget enforces GPUBudgets in a cluster. It contains their conversion for the policy,
// the ledgers that survive restarts, the gate in their status that an admission policy obeys,
// evictions and suspensions of Jobs, and the updates of their status. Package policy/gpubudget
// makes the decisions.
package gpubudget
