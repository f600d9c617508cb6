// Package scenarios reads worlds: a scenario file of Kubernetes manifests, and
// the trace whose prices it is run on.
package scenarios
