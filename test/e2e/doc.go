// Package e2e plays a compressed day on the real stack: the API server, its controllers
// and scheduler, Karpenter, and Spotter as its chart installs it. See docs/e2e.md.
package e2e
