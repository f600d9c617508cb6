// Package config is the configuration of `spotter run`: the file that --config names, as
// other components of Kubernetes have one. It reads and checks the file and says what of
// it can change while the program runs; it reaches for nothing that the file names.
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

// The type of a file.
const (
	APIVersion = "config.spotter.dev/v1alpha1"
	Kind       = "SpotterConfiguration"
)

// A SpotterConfiguration is what the file of --config says. What the file leaves out is
// as [Default] has it. What carries the tag reload is applied while the program runs;
// all else takes a restart.
type SpotterConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Mode limits the mode of every pool: `shadow` changes nothing, `active` allows the `spec.mode`
	// of each CapacityPool, and `approve` does too but makes only those voluntary changes that a
	// person has approved.
	Mode string `json:"mode"`

	// Policies is the policy of all pools, as `NAME[:key=value…]`. `manifest` is what
	// each CapacityPool names, and `portfolio` for those that name none.
	Policies string `json:"policies"`

	// Namespace holds the lease, the memory and the kill switch. Empty is the pod's own,
	// else `spotter`.
	Namespace string `json:"namespace"`

	// Backends are what provisions nodes: any of `asg`, `karpenter` and `rackspace`.
	Backends []string `json:"backends"`

	// Provider is who sells the nodes that do not say it themselves.
	Provider string `json:"provider"`

	// SpotLabels mark Spot nodes, as `name` or `name=value`. They take precedence over all known
	// labels.
	SpotLabels []string `json:"spotLabels"`

	// StepInterval is the longest time between two decisions. What happens is answered
	// sooner.
	StepInterval metav1.Duration `json:"stepInterval" reload:"true"`

	// ShutdownTimeout bounds what is done to finish or undo drains when the process is
	// asked to end. Raising it above the pod's termination grace does nothing.
	ShutdownTimeout metav1.Duration `json:"shutdownTimeout"`

	// KillSwitch names the ConfigMap in the namespace whose annotation
	// `spotter.dev/kill-switch: "true"` stops everything. Empty has none.
	KillSwitch string `json:"killSwitch"`

	// PanicDir is the folder of the snapshots on which a policy panicked. Empty is
	// `spotter-panics` in the folder for temporary files.
	PanicDir string `json:"panicDir"`

	// LeaderElection says how replicas agree on who acts.
	LeaderElection LeaderElection `json:"leaderElection"`

	// Writes bounds how fast the API server is written to.
	Writes Writes `json:"writes"`

	// Prices says where prices come from.
	Prices Prices `json:"prices"`

	// Notices says where interruption warnings come from.
	Notices Notices `json:"notices"`

	// Notifications says whom events such as a drain that was undone are sent to.
	Notifications Notifications `json:"notifications"`

	// Models is about trained models.
	Models Models `json:"models"`

	// Usage says who measures what nodes use.
	Usage Usage `json:"usage"`

	// Recording says where decisions are recorded.
	Recording Recording `json:"recording"`

	// Discounts are what commitments save off the price on demand. They are for
	// comparison only.
	Discounts Discounts `json:"discounts"`

	// Metrics says where metrics are served.
	Metrics Metrics `json:"metrics"`

	// Health says where `/healthz` and `/readyz` are served.
	Health Address `json:"health"`

	// Pprof says where the Go profiler is served.
	Pprof Address `json:"pprof"`

	// Logging says what is logged.
	Logging Logging `json:"logging"`
}

// A LeaderElection says how replicas agree on who acts.
type LeaderElection struct {
	// Enabled lets several replicas run, of which one acts. False is for a single
	// process.
	Enabled bool `json:"enabled"`

	// LeaseDuration is how long after its last sign a leader that died is waited for.
	// Raising it lengthens the time without a leader after a crash.
	LeaseDuration metav1.Duration `json:"leaseDuration"`

	// RenewDeadline is how long a leader tries to renew before it stops. It must be
	// shorter than the lease.
	RenewDeadline metav1.Duration `json:"renewDeadline"`

	// RetryPeriod is the time between two tries. Raising it asks less of the API server.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Writes bounds how fast the API server is written to.
type Writes struct {
	// QPS is how many writes a second are sent in the long run. Raising it moves pods
	// sooner and leaves the API server less for others.
	QPS float64 `json:"qps" reload:"true"`

	// Burst is how many writes may be sent at once after a quiet time. What a step waits
	// for and what is written for nodes under a notice does not wait, and the other
	// writes make up for it.
	Burst int `json:"burst" reload:"true"`
}

// Prices says where prices come from.
type Prices struct {
	// Trace is the folder of a trace that `spotter trace record --follow` fills. Prices
	// are taken from it and not from AWS.
	Trace string `json:"trace"`

	// Regions are the AWS regions of the prices and of the groups of the backend `asg`. Empty
	// requests nothing from AWS.
	Regions []string `json:"regions"`

	// Families are the instance families whose prices are read, as `m5`. Empty is all.
	Families []string `json:"families"`

	// Interval is how often Spot prices are read, from 1s to 1h. 0 is every 5m from AWS, and every
	// 1m from a trace and from Rackspace.
	Interval metav1.Duration `json:"interval"`

	// CacheFile keeps prices, so that a restart asks only for what is new.
	CacheFile string `json:"cacheFile"`
}

// Notices says where interruption warnings come from.
type Notices struct {
	// QueueURL is the URL of an SQS queue with interruption warnings that has no other consumer.
	QueueURL string `json:"queueURL"`
}

// Notifications says who is sent what operators want to learn, as CloudEvents: the kill switch
// was turned, a drain was undone, a gate was closed or opened, a pool's ramp came to its next
// stage, and what was saved in a week.
type Notifications struct {
	// URL takes the events, by POST, in the structured mode of CloudEvents. Empty sends
	// nothing.
	URL string `json:"url"`

	// Source is the attribute `source` of each event, a URI reference. Empty is `/spotter/`
	// and the namespace.
	Source string `json:"source"`

	// Header is set in each request to what headerFile holds.
	Header string `json:"header"`

	// HeaderFile holds the value of the header, such as `Bearer …`, and is read again as it
	// is rotated. Empty sets none.
	HeaderFile string `json:"headerFile"`
}

// Models is about trained models.
type Models struct {
	// Dir is the folder in which bundles and runtime files that pools name are opened,
	// by their names, and nowhere else. Empty lets pools name none.
	Dir string `json:"dir"`

	// Timeout bounds one forecast of a bundle. The closed form replaces a forecast that is late.
	Timeout metav1.Duration `json:"timeout"`
}

// Usage says who measures what nodes use.
type Usage struct {
	// Prometheus is asked in place of metrics-server.
	Prometheus Prometheus `json:"prometheus"`
}

// Prometheus says what nodes use, or what else speaks its API.
type Prometheus struct {
	// URL is where it is, as `http://prometheus.monitoring:9090`. Empty asks
	// metrics-server.
	URL string `json:"url"`

	// TokenFile holds a bearer token, and is read again as it is rotated.
	TokenFile string `json:"tokenFile"`

	// CAFile holds the certificates to trust. Empty trusts those of the system.
	CAFile string `json:"caFile"`

	// CPUQuery returns the cores in use: one sample for each node, named by the label `node` or
	// `instance`.
	CPUQuery string `json:"cpuQuery"`

	// MemoryQuery returns the bytes in use, likewise.
	MemoryQuery string `json:"memoryQuery"`

	// Timeout is how long both queries together are waited for.
	Timeout metav1.Duration `json:"timeout"`
}

// Recording says where decisions are recorded.
type Recording struct {
	// Dir is the folder in which every decision is recorded as Parquet. Replicas may
	// share one. Empty records nothing.
	Dir string `json:"dir"`

	// Keep is how long the record stays in the folder. 0 is for ever.
	Keep metav1.Duration `json:"keep"`

	// KeepBytes is how much of it stays there. 0 is no limit.
	KeepBytes resource.Quantity `json:"keepBytes"`

	// Complete is after how long readers, such as `spotter tui --live`, find a decision
	// at the latest. Shorter makes more files.
	Complete metav1.Duration `json:"complete"`

	// Bucket is where the record is uploaded to as well.
	Bucket Bucket `json:"bucket"`
}

// A Bucket of S3 takes a copy of the record.
type Bucket struct {
	// URL names it, as `s3://bucket/prefix`. Empty uploads nothing.
	URL string `json:"url"`

	// Region is the region of the bucket. Empty is the first of `prices.regions`, else AWS_REGION.
	Region string `json:"region"`

	// Endpoint is the URL of a bucket that is not of AWS.
	Endpoint string `json:"endpoint"`

	// Encryption is `AES256`, `aws:kms`, or empty for what the bucket does by itself.
	Encryption string `json:"encryption"`

	// KMSKey is the key of `aws:kms`. Empty is the account's own.
	KMSKey string `json:"kmsKey"`
}

// Discounts are what commitments save off the price on demand.
type Discounts struct {
	// OneYear is what commitments of one year save, from 0 to 1.
	OneYear float64 `json:"1y" reload:"true"`

	// ThreeYears is what commitments of three years save, from 0 to 1.
	ThreeYears float64 `json:"3y" reload:"true"`
}

// Metrics says where metrics are served.
type Metrics struct {
	// BindAddress is where, as `:8443`. `0` serves none.
	BindAddress string `json:"bindAddress"`

	// Secure serves them over TLS, to those whom the API server lets get `/metrics`.
	Secure bool `json:"secure"`

	// CertDir has the certificate `tls.crt` and the key `tls.key` to serve them with, which
	// are read again as they change. Empty makes one for each start.
	CertDir string `json:"certDir"`

	// Compat serves them under the names of other systems too: any of `gpu-operator`,
	// `karpetrack`, `leftover`, `rescheduler` and `spotvortex`.
	Compat []string `json:"compat"`
}

// An Address is where something is served.
type Address struct {
	// BindAddress is where, as `:8081`. `0` or nothing serves none.
	BindAddress string `json:"bindAddress"`
}

// Logging says what is logged.
type Logging struct {
	// Level is `debug`, `info`, `warn` or `error`: what is logged from there on.
	Level string `json:"level" reload:"true"`

	// Format is `json` or `text`.
	Format string `json:"format"`
}

// Default returns the configuration that is used where no file is given.
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
		Prices:        Prices{Regions: []string{}, Families: []string{}},
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
