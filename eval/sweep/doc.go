// Package sweep looks for good values of settings: of parameters of a policy and of fields of a
// scenario. Candidates race on the same seeds, and those that are worse beyond chance drop out.
// What is chosen is run again on seeds that had no part in the choice.
package sweep
