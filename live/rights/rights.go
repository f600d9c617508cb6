// Package rights says what a controller must be let do, of the API server and of AWS,
// by the mode it runs in and by what of it is used. The documentation is written from
// it, and tests hold the chart and the logs of servers against it: what is not here is
// not done, and what is here is.
package rights

import "slices"

// A Part is something of a controller that may be used or not.
type Part string

// The parts. Core is what every controller has.
const (
	Core           Part = "core"
	LeaderElection Part = "leader-election" // --leader-elect, the default
	SecureMetrics  Part = "secure-metrics"  // metrics.secure, the default
	Karpenter      Part = "karpenter"       // --backends karpenter, the default
	Groups         Part = "asg"             // --backends asg
	Rackspace      Part = "rackspace"       // --backends rackspace
	Prices         Part = "prices"          // --region, without --trace
	Queue          Part = "queue"           // notices.queueURL
	Bucket         Part = "bucket"          // recording.bucket
	Prometheus     Part = "prometheus"      // usage.prometheus
)

// A Scope is where a right of the API server is granted.
type Scope string

// The scopes. Those of the cluster are granted by a ClusterRole and its binding,
// the others by a Role: in the namespace that the controller keeps its own objects in,
// or in that of the secrets which CapacityPools name.
const (
	Cluster      Scope = "cluster"
	OwnNamespace Scope = "own namespace"
	Secrets      Scope = "namespace of the secret"
)

// A Setup is how a controller is run.
type Setup struct {
	// Active says that it may act, and not only look: --mode active.
	Active bool

	// Parts are those that are used; Core always is.
	Parts []Part

	// What a policy of AWS is limited to: the regions, the name of the cluster, the URL
	// of the queue, the bucket as s3://bucket/prefix, and the key of its objects.
	Regions                     []string
	Cluster, Queue, Bucket, Key string
}

// needs reports whether a right of a part counts, which may be needed by an active
// controller only.
func (s Setup) needs(p Part, active bool) bool {
	return (s.Active || !active) && (p == Core || slices.Contains(s.Parts, p))
}

// Needs reports whether a controller uses what a right grants.
func (s Setup) Needs(r *Right) bool {
	return s.needs(r.Part, r.Active) && (r.Unless == "" || !s.needs(r.Unless, false))
}

// A Right is a kind of request to the API server.
type Right struct {
	Part Part

	// Active means that only an active controller makes it.
	Active bool

	// Unless is the part that replaces it: a controller that uses that part does not make the
	// request. It may be empty.
	Unless Part

	Scope     Scope
	Group     string // empty is that of pods and nodes
	Resources []string

	// Names are those of the only objects that are requested; empty means all.
	Names []string
	Verbs []string

	// Without says what happens where it is not granted; empty where the controller
	// does not work then.
	Without string

	// Why says what it is for, in words for the documentation.
	Why string
}

// A Permission is a kind of request to AWS.
type Permission struct {
	Part Part

	// Active means that only an active controller makes it.
	Active bool

	// Action is that of IAM, as "sqs:ReceiveMessage".
	Action string

	// On is what the statement that allows it may be limited to; "*" where IAM knows
	// no narrower resource.
	On string

	// Without says what happens where it is not allowed; empty where that part of the
	// controller does not work then.
	Without string

	// Why says what it is for, in words for the documentation.
	Why string
}
