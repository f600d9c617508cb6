// Package sim runs a policy in a simulated cluster on a simulated market: a discrete-event
// simulation in integer milliseconds. It uses the same driver as the live controller.
package sim
