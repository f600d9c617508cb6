// Package rights lists the permissions that a controller needs at the API server and at AWS,
// depending on its mode and on the features that are used. The documentation is generated from it,
// and tests compare it with the chart and with the logs of servers: the controller makes exactly
// these requests.
package rights

import "slices"

// A Part is an optional part of a controller.
type Part string

// Parts. Every controller has Core.
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

// A Scope determines where a right at the API server is granted.
type Scope string

// Scopes. A ClusterRole and its binding grant those of the cluster. A Role grants the others, in
// the namespace of the controller or in that of the secrets to which CapacityPools refer.
const (
	Cluster      Scope = "cluster"
	OwnNamespace Scope = "own namespace"
	Secrets      Scope = "namespace of the secret"
)

// A Setup is the configuration of a controller, as it affects permissions.
type Setup struct {
	// Active reports whether the controller may change anything: --mode active.
	Active bool

	// Parts are the parts in use. Core is always in use.
	Parts []Part

	// Limits of an AWS policy: the regions, the name of the cluster, the URL of the queue, the
	// bucket as s3://bucket/prefix with its region, which may be empty if it is not known, and the
	// key of its objects.
	Regions                                   []string
	Cluster, Queue, Bucket, BucketRegion, Key string
}

// needs reports whether the controller needs a right of part p. active means that only an active
// controller needs the right.
func (s Setup) needs(p Part, active bool) bool {
	return (s.Active || !active) && (p == Core || slices.Contains(s.Parts, p))
}

// Needs reports whether the controller makes the requests that r allows.
func (s Setup) Needs(r *Right) bool {
	return s.needs(r.Part, r.Active) && (r.Unless == "" || !s.needs(r.Unless, false))
}

// A Right is a kind of request to the API server.
type Right struct {
	Part Part

	// Active means that only an active controller makes the request.
	Active bool

	// Unless is a part that replaces the request: a controller that uses it does not make the
	// request. It may be empty.
	Unless Part

	Scope     Scope
	Group     string // empty for the core group
	Resources []string

	// Names are the names of the only objects that are requested; empty means all.
	Names []string
	Verbs []string

	// Without describes the effect if the right is not granted. It is empty if the controller does
	// not work then.
	Without string

	// Why is the purpose of the request, for the documentation.
	Why string
}

// A Permission is a kind of request to AWS.
type Permission struct {
	Part Part

	// Active means that only an active controller makes the request.
	Active bool

	// Action is the IAM action, such as "sqs:ReceiveMessage".
	Action string

	// On is the narrowest limit of the statement that allows the action, "*" if IAM supports no
	// narrower resource.
	On Limit

	// Without describes the effect if the action is not allowed. It is empty if that part of the
	// controller does not work then.
	Without string

	// Why is the purpose of the request, for the documentation.
	Why string
}
