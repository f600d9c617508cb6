// Package budget is what becomes of GPUBudgets in a cluster: the objects as the
// policy sees them, the ledgers that survive restarts, the gate in their status
// that an admission policy obeys, evictions and suspended jobs, and their status.
// What is decided about them is policy/budget's.
package budget
