package fidelity

import (
	"time"

	"github.com/spotter-dev/spotter/sim"
)

// How long things take in both clusters. Nodes join as on EC2. Pods state their start-up
// time in their manifests, since no image is pulled on a node of kwok's.
const (
	joinLeast, joinMost = 30 * time.Second, 60 * time.Second
	podDelete           = 5 * time.Second
	refusedFor          = 3 * time.Minute
)

// delays are those of the simulated cluster: the defaults, which are Karpenter's, and
// those of the real one where these are set.
func delays() *sim.Delays {
	d := sim.DefaultDelays()
	d.RegisterMin, d.RegisterMax = joinLeast, joinMost
	// A node of kwok's is ready when it joins; the rest is what Karpenter and the
	// controller manager take to initialize it and to remove its taints, as measured.
	d.Initialize = time.Second
	d.Pull, d.Start, d.Ready, d.Shutdown = 0, 0, 0, 0
	d.Terminate = podDelete
	// The Node of a machine that was taken is gone at once. The garbage collector of
	// pods looks every 20 s for those whose Node is gone for 40 s.
	d.Detect = 50 * time.Second
	d.Unavailable = refusedFor
	return &d
}
