// Package sweep searches for good values of settings: parameters of a policy and fields of a
// scenario. Candidates compete on the same seeds, and those that are worse beyond chance are
// dropped. The chosen candidate is run again on fresh seeds, which did not affect the choice.
package sweep
