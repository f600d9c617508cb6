// Package sim runs a policy in a simulated cluster on a simulated market: a
// discrete-event simulation in integer milliseconds, driven by the same
// driver as the live controller.
package sim
