// Package config defines the configuration file of `spotter run`, which --config names. It reads
// and validates the file and determines which fields can change while the program runs. It opens
// nothing that the file refers to.
package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/keep"
	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/policy/registry"
)

// The apiVersion and kind that a configuration file must have.
const (
	APIVersion = "config.spotter.dev/v1alpha1"
	Kind       = "SpotterConfiguration"
)

// A SpotterConfiguration is the content of the file that --config names. Fields that the file omits
// have the values of [Default]. Fields with the tag reload are applied while the program runs; all
// others require a restart.
type SpotterConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Mode limits the mode of every pool. `shadow` changes nothing, `active` allows the `spec.mode`
	// of each CapacityPool, and `approve` allows it too but makes only those voluntary changes that
	// a person has approved.
	Mode string `json:"mode"`

	// Policies is the policy of all pools, in the form `NAME[:key=value…]`. `manifest` uses the
	// policy that each CapacityPool names, and `portfolio` for CapacityPools that name none.
	Policies string `json:"policies"`

	// Namespace is the namespace of the lease, the memory and the kill switch. If empty, it is the
	// namespace of the pod, or `spotter` outside a pod.
	Namespace string `json:"namespace"`

	// Backends are the systems that provision nodes: any of `asg`, `karpenter` and `rackspace`.
	Backends []string `json:"backends"`

	// Provider is the cloud provider of nodes that do not state one.
	Provider string `json:"provider"`

	// SpotLabels are labels that mark Spot nodes, in the form `name` or `name=value`. They take
	// precedence over all known labels.
	SpotLabels []string `json:"spotLabels"`

	// StepInterval is the longest time between two decisions. Events cause earlier decisions.
	StepInterval metav1.Duration `json:"stepInterval" reload:"true"`

	// ShutdownTimeout bounds the time for finishing or undoing drains after the process receives a
	// termination signal. Raising it above the pod's termination grace period has no effect.
	ShutdownTimeout metav1.Duration `json:"shutdownTimeout"`

	// KillSwitch is the name of a ConfigMap in the namespace. Its annotation
	// `spotter.dev/kill-switch: "true"` stops all changes. If empty, there is no kill switch.
	KillSwitch string `json:"killSwitch"`

	// PanicDir is the folder for snapshots on which a policy panicked. If empty, it is
	// `spotter-panics` in the folder for temporary files.
	PanicDir string `json:"panicDir"`

	// LeaderElection configures how replicas elect the leader, the only replica that acts.
	LeaderElection LeaderElection `json:"leaderElection"`

	// Writes limits the rate of writes to the API server.
	Writes Writes `json:"writes"`

	// Prices configures the source of prices.
	Prices Prices `json:"prices"`

	// Notices configures the source of interruption warnings.
	Notices Notices `json:"notices"`

	// Notifications configures where events, such as a drain that was undone, are sent.
	Notifications Notifications `json:"notifications"`

	// Models configures trained models.
	Models Models `json:"models"`

	// Usage configures the source of the resource usage of nodes.
	Usage Usage `json:"usage"`

	// Recording configures where decisions are recorded.
	Recording Recording `json:"recording"`

	// Discounts are the discounts of commitments on the on-demand price. They are used only for
	// comparison.
	Discounts Discounts `json:"discounts"`

	// Metrics configures where metrics are served.
	Metrics Metrics `json:"metrics"`

	// Health configures where `/healthz` and `/readyz` are served.
	Health Address `json:"health"`

	// Pprof configures where the Go profiler is served.
	Pprof Address `json:"pprof"`

	// Logging configures the log.
	Logging Logging `json:"logging"`
}

// A LeaderElection configures how replicas elect the leader, the only replica that acts.
type LeaderElection struct {
	// Enabled elects one leader among several replicas. Set it to false only for a single process.
	Enabled bool `json:"enabled"`

	// LeaseDuration is the time after the leader's last renewal at which other replicas may take
	// over. Raising it lengthens the time without a leader after a crash.
	LeaseDuration metav1.Duration `json:"leaseDuration"`

	// RenewDeadline is the time for which a leader tries to renew the lease before it stops. It
	// must be shorter than the lease duration.
	RenewDeadline metav1.Duration `json:"renewDeadline"`

	// RetryPeriod is the time between two attempts. Raising it sends fewer requests to the API
	// server.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Writes limits the rate of writes to the API server.
type Writes struct {
	// QPS is the sustained number of writes per second. Raising it moves pods sooner and leaves
	// less capacity of the API server for other clients.
	QPS float64 `json:"qps" reload:"true"`

	// Burst is the number of writes that may be sent at once after a quiet period. Writes that a
	// step waits for and writes for nodes under a notice are not delayed; the other writes are
	// delayed accordingly.
	Burst int `json:"burst" reload:"true"`
}

// Prices configures the source of prices.
type Prices struct {
	// Trace is the folder of a trace that `spotter trace record --follow` writes. If set, prices
	// come from it and not from AWS or Azure.
	Trace string `json:"trace"`

	// Regions are the AWS regions whose prices, and whose groups for the backend `asg`, are read.
	// If empty, nothing is requested from AWS.
	Regions []string `json:"regions"`

	// AzureRegions are the Azure regions whose prices are read, such as `westeurope`. The price API
	// is public. If empty, nothing is requested from Azure.
	AzureRegions []string `json:"azureRegions"`

	// Families are the instance families of AWS whose prices are read, such as `m5`. If empty, all
	// are read.
	Families []string `json:"families"`

	// Interval is the time between two reads of Spot prices, from 1s to 1h. 0 means every 5m for
	// AWS, every 30m for Azure, and every 1m for a trace and for Rackspace.
	Interval metav1.Duration `json:"interval"`

	// CacheFile is a file that stores prices, so that after a restart only new prices are
	// requested.
	CacheFile string `json:"cacheFile"`
}

// Notices configures the source of interruption warnings.
type Notices struct {
	// QueueURL is the URL of an SQS queue of interruption warnings that has no other consumer.
	QueueURL string `json:"queueURL"`
}

// Notifications configures where events for operators are sent, as CloudEvents: the kill switch was
// turned on or off, a drain was undone, a gate was closed or opened, a pool's ramp reached its next
// stage, and the savings of a week.
type Notifications struct {
	// URL receives the events, by POST, in the structured mode of CloudEvents. If empty, nothing is
	// sent.
	URL string `json:"url"`

	// Source is the attribute `source` of each event, a URI reference. If empty, it is `/spotter/`
	// followed by the namespace.
	Source string `json:"source"`

	// Header is the name of the HTTP header that each request sets to the content of headerFile.
	Header string `json:"header"`

	// HeaderFile is the file with the value of the header, such as `Bearer …`. It is read again
	// when it is rotated. If empty, no header is set.
	HeaderFile string `json:"headerFile"`
}

// Models configures trained models.
type Models struct {
	// Dir is the only folder from which bundles and runtime files that pools name are opened, by
	// their file names. If empty, pools cannot name any.
	Dir string `json:"dir"`

	// Timeout bounds one forecast of a bundle. A forecast that is late is replaced by the closed
	// form.
	Timeout metav1.Duration `json:"timeout"`
}

// Usage configures the source of the resource usage of nodes.
type Usage struct {
	// Prometheus is queried instead of metrics-server.
	Prometheus Prometheus `json:"prometheus"`
}

// Prometheus configures a server with the API of Prometheus that returns the resource usage of
// nodes.
type Prometheus struct {
	// URL is the address of the server, such as `http://prometheus.monitoring:9090`. If empty,
	// metrics-server is queried.
	URL string `json:"url"`

	// TokenFile is the file with a bearer token. It is read again when it is rotated.
	TokenFile string `json:"tokenFile"`

	// CAFile is the file with the CA certificates to trust. If empty, those of the system are
	// trusted.
	CAFile string `json:"caFile"`

	// CPUQuery is the query that returns the cores in use: one sample for each node, identified by
	// the label `node` or `instance`.
	CPUQuery string `json:"cpuQuery"`

	// MemoryQuery is the query that returns the bytes in use, in the same form.
	MemoryQuery string `json:"memoryQuery"`

	// Timeout bounds the time that both queries together may take.
	Timeout metav1.Duration `json:"timeout"`
}

// Recording configures where decisions are recorded.
type Recording struct {
	// Dir is the folder in which every decision is recorded as Parquet. Replicas may share a
	// folder. If empty, nothing is recorded.
	Dir string `json:"dir"`

	// Keep is the time after which records are deleted from the folder. 0 keeps them forever.
	Keep metav1.Duration `json:"keep"`

	// KeepBytes is the maximum size of the records in the folder. 0 means no limit.
	KeepBytes resource.Quantity `json:"keepBytes"`

	// Complete is the longest time until a decision is visible to readers such as `spotter tui
	// --live`. Lowering it writes more files.
	Complete metav1.Duration `json:"complete"`

	// Bucket is an S3 bucket to which the record is uploaded as well.
	Bucket Bucket `json:"bucket"`
}

// A Bucket is an S3 bucket that receives a copy of the record.
type Bucket struct {
	// URL is the address of the bucket, in the form `s3://bucket/prefix`. If empty, nothing is
	// uploaded.
	URL string `json:"url"`

	// Region is the region of the bucket. If empty, it is the first of `prices.regions`, else
	// AWS_REGION.
	Region string `json:"region"`

	// Endpoint is the URL of an S3-compatible service other than AWS.
	Endpoint string `json:"endpoint"`

	// Encryption is `AES256`, `aws:kms`, or empty for the default of the bucket.
	Encryption string `json:"encryption"`

	// KMSKey is the key for `aws:kms`. If empty, it is the default key of the account.
	KMSKey string `json:"kmsKey"`
}

// Discounts are the discounts of commitments on the on-demand price.
type Discounts struct {
	// OneYear is the discount of one-year commitments, in [0, 1].
	OneYear float64 `json:"1y" reload:"true"`

	// ThreeYears is the discount of three-year commitments, in [0, 1].
	ThreeYears float64 `json:"3y" reload:"true"`
}

// Metrics configures where metrics are served.
type Metrics struct {
	// BindAddress is the address to listen on, such as `:8443`. `0` disables metrics.
	BindAddress string `json:"bindAddress"`

	// Secure serves metrics over TLS, and only to users that the API server allows to get
	// `/metrics`.
	Secure bool `json:"secure"`

	// CertDir is the folder with the certificate `tls.crt` and the key `tls.key` for serving
	// metrics. They are read again when they change. If empty, a certificate is generated at each
	// start.
	CertDir string `json:"certDir"`

	// Compat also serves metrics under the names of other systems: any of `gpu-operator`,
	// `karpetrack`, `leftover`, `rescheduler` and `spotvortex`.
	Compat []string `json:"compat"`
}

// An Address configures where an endpoint is served.
type Address struct {
	// BindAddress is the address to listen on, such as `:8081`. `0` or empty disables the endpoint.
	BindAddress string `json:"bindAddress"`
}

// Logging configures the log.
type Logging struct {
	// Level is the lowest level that is logged: `debug`, `info`, `warn` or `error`.
	Level string `json:"level" reload:"true"`

	// Format is the format of the log: `json` or `text`.
	Format string `json:"format"`
}

// Default returns the configuration that is used if no file is given.
func Default() *SpotterConfiguration {
	l, w, k, p := live.DefaultConfig(), limit.DefaultConfig(), keep.DefaultConfig(), cluster.DefaultPrometheusConfig()
	d := func(t time.Duration) metav1.Duration { return metav1.Duration{Duration: t} }
	return &SpotterConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Mode:     "shadow", Policies: registry.Manifest, Backends: []string{"karpenter"}, Provider: "aws", SpotLabels: []string{},
		StepInterval: d(l.StepMax), ShutdownTimeout: d(l.Shutdown), KillSwitch: l.KillSwitch,
		LeaderElection: LeaderElection{Enabled: true, LeaseDuration: d(l.LeaseDuration), RenewDeadline: d(l.RenewDeadline),
			RetryPeriod: d(l.RetryPeriod)},
		Writes:        Writes{QPS: w.QPS, Burst: w.Burst},
		Prices:        Prices{Regions: []string{}, AzureRegions: []string{}, Families: []string{}},
		Notifications: Notifications{Header: "Authorization"},
		Models:        Models{Timeout: d(5 * time.Second)},
		Usage:         Usage{Prometheus{CPUQuery: p.CPU, MemoryQuery: p.Memory, Timeout: d(p.Timeout)}},
		Recording: Recording{Keep: d(k.Keep), KeepBytes: *resource.NewQuantity(k.KeepBytes, resource.BinarySI),
			Complete: d(k.Complete)},
		Discounts: Discounts{OneYear: l.Discount1y, ThreeYears: l.Discount3y},
		Metrics:   Metrics{BindAddress: ":8443", Secure: true, Compat: []string{}},
		Health:    Address{BindAddress: ":8081"},
		Logging:   Logging{Level: "info", Format: "json"},
	}
}
