// Package gpubudget carries out GPUBudgets in a cluster: the objects as the policy sees them, the
// ledgers that survive restarts, the gate in their status that an admission policy obeys, evictions
// and suspended jobs, and their status. Package policy/gpubudget decides about them.
package gpubudget
