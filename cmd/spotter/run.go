package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/live"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A liveCall is what the flags of run say.
type liveCall struct {
	live.Config
	serving live.Serving

	mode, policies        string
	kubeconfig, context   string
	backends              []string
	record                recordingCall
	panics                string
	trace, cache          string
	pricesEvery           time.Duration // 0 is as suits each source
	regions, families     []string
	provider, awsEndpoint string
	queue                 string
	labels                []string
	level, format         string
	compat                []string
	modelLate             time.Duration
	models                string
	usage                 usageCall

	// runs makes the policies, and has verified the bundle that --policies names.
	runs *runner
}

// The backends that --backends may name.
var backendNames = []string{"asg", "karpenter", "rackspace"}

func (p *program) runCommand() *cobra.Command {
	f := liveCall{Config: live.DefaultConfig()}
	c := &cobra.Command{
		Use:   "run",
		Short: "Decide for a running cluster; without --mode active nothing is changed",
		Long: "run observes a cluster, decides as sim does, and carries out what it decides. With\n" +
			"--mode shadow, the default, it changes nothing: it shows in the status of each\n" +
			"CapacityPool, in metrics and in the record what it would have done. With --mode\n" +
			"active each pool goes as far as its own spec.mode says.\n\n" +
			"Several replicas may run: one leads, and the next takes over within seconds. A\n" +
			"ConfigMap stops everything at once, see --kill-switch.",
		Example: "  spotter run --kubeconfig ~/.kube/config --leader-elect=false --region us-east-1\n" +
			"  spotter run --mode active --region us-east-1 --record /var/lib/spotter/record\n" +
			"  spotter run --trace prices --policies portfolio --log-format text",
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return p.live(c.Context(), &f) },
	}
	f.register(c.Flags())
	complete(c, "mode", []string{"shadow", "active"})
	complete(c, "policies", registry.Names())
	complete(c, "backends", backendNames)
	complete(c, "region", catalog.Regions(catalog.AWS))
	complete(c, "record-encryption", []string{"AES256", "aws:kms"})
	complete(c, "log-level", []string{"debug", "info", "warn", "error"})
	complete(c, "log-format", []string{"json", "text"})
	complete(c, "compat-metrics", metrics.Systems)
	return c
}

func (f *liveCall) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "mode", "shadow", "`MODE` shadow changes nothing; active goes as far as each pool's spec.mode")
	flags.StringVar(&f.policies, "policies", registry.Manifest, "policy `P` for all pools, as NAME[:key=value…]; manifest is what each pool names, "+registry.DefaultPolicy+" where it names none")
	flags.StringVar(&f.models, "models-dir", "", "open bundles and runtime files that pools name in the folder `DIR` and nowhere else (default: pools can name none)")
	flags.DurationVar(&f.modelLate, "model-timeout", 5*time.Second, "let a bundle that a policy names take at most `TIME` for a forecast; the closed form stands in for one that is late")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "reach the cluster by `FILE` (default: KUBECONFIG, the pod's service account, ~/.kube/config)")
	flags.StringVar(&f.context, "context", "", "use the context `NAME` of the kubeconfig")
	flags.StringVar(&f.Namespace, "namespace", "", "keep the lease, the memory and the kill switch in namespace `NAME` (default: the pod's own, else spotter)")
	flags.StringSliceVar(&f.backends, "backends", []string{"karpenter"}, "what provisions nodes here: `NAME,…` of "+strings.Join(backendNames, ", "))

	flags.BoolVar(&f.LeaderElect, "leader-elect", true, "act only while holding the lease; false is for a single process")
	flags.StringVar(&f.KillSwitch, "kill-switch", f.KillSwitch, "stop while the ConfigMap `NAME` in the namespace has the annotation "+live.KillSwitchAnnotation+": \"true\"; empty has none")
	flags.DurationVar(&f.StepMax, "step", f.StepMax, "decide at least every `TIME`")
	flags.DurationVar(&f.Shutdown, "shutdown-timeout", f.Shutdown, "finish or undo drains for at most `TIME` when asked to end")

	flags.StringVar(&f.serving.Metrics, "metrics-bind-address", ":8443", "serve metrics on `ADDRESS`; 0 serves none")
	flags.BoolVar(&f.serving.Secure, "metrics-secure", true, "serve metrics over TLS, to those whom the API server lets")
	flags.StringVar(&f.serving.CertDir, "metrics-cert-dir", "", "serve metrics with the certificate tls.crt and the key tls.key in the folder `DIR`, which are read again as they change (default: made for each start)")
	flags.StringVar(&f.serving.Probes, "health-probe-bind-address", ":8081", "serve /healthz and /readyz on `ADDRESS`; 0 serves none")
	flags.StringVar(&f.serving.Pprof, "pprof-bind-address", "", "serve the Go profiler on `ADDRESS` (default: off)")
	flags.StringSliceVar(&f.compat, "compat-metrics", nil, "serve metrics also under the names of `SYSTEM,…`: "+strings.Join(metrics.Systems, ", "))

	f.record.register(flags)
	flags.StringVar(&f.panics, "panic-dir", "", "keep the snapshots on which a policy panicked in the folder `DIR` (default: spotter-panics in the folder for temporary files)")

	f.usage.register(flags)

	flags.StringVar(&f.trace, "trace", "", "take prices from the trace `DIR`, as `spotter trace record --follow` fills it")
	flags.StringSliceVar(&f.regions, "region", nil, "ask AWS for the prices of `REGION,…`, and for the groups of --backends asg")
	flags.StringSliceVar(&f.families, "families", nil, "ask AWS for instance types of `FAMILY,…` only, as m5,c6i")
	flags.DurationVar(&f.pricesEvery, "price-interval", 0, "read spot prices every `TIME` (default: every 5m from AWS, every 1m from a trace and from Rackspace)")
	flags.StringVar(&f.cache, "price-cache", "", "keep prices in `FILE`, so that a restart asks only for what is new")
	flags.StringVar(&f.queue, "queue-url", "", "read notices from the SQS queue `URL`, which nobody else reads")
	flags.StringVar(&f.provider, "provider", "aws", "take nodes that do not say who sells them for those of `NAME`")
	flags.StringArrayVar(&f.labels, "spot-label", nil, "take nodes with the label `NAME[=VALUE]` for spot, before all labels that are known; may be given again")
	flags.Float64Var(&f.Discount1y, "discount-1y", f.Discount1y, "compare savings with commitments of one year that save the part `X`")
	flags.Float64Var(&f.Discount3y, "discount-3y", f.Discount3y, "compare savings with commitments of three years that save the part `X`")

	flags.StringVar(&f.level, "log-level", "info", "log from `LEVEL` on: debug, info, warn, error")
	flags.StringVar(&f.format, "log-format", "json", "log as `FORMAT` json or text")
	flags.StringVar(&f.awsEndpoint, "endpoint", "", "send requests for AWS to `URL` (default: AWS_ENDPOINT_URL, else AWS)")
	if err := flags.MarkHidden("endpoint"); err != nil {
		panic(err)
	}
}

// pricesEveryMax leaves time for a second reading before prices are too old to be believed.
const pricesEveryMax = time.Hour

// check finds what is wrong with the flags before anything is reached.
func (f *liveCall) check() error {
	modes := map[string]policy.Mode{"shadow": policy.ModeShadow, "active": policy.ModeActive}
	mode, known := modes[f.mode]
	if !known {
		return wrong(fmt.Errorf("--mode: %q is neither shadow nor active", f.mode), "shadow changes nothing, and is the default")
	}
	f.Mode = mode
	for _, b := range f.backends {
		if !slices.Contains(backendNames, b) {
			return wrong(fmt.Errorf("--backends: %q is not known", b), "known are "+strings.Join(backendNames, ", "))
		}
	}
	if slices.Contains(f.backends, "asg") && len(f.regions) == 0 {
		return wrong(errors.New("--backends asg needs --region: where the groups lie"), "give --region, as us-east-1,us-west-2")
	}
	for _, s := range f.compat {
		if !slices.Contains(metrics.Systems, s) {
			return wrong(fmt.Errorf("--compat-metrics: %q is not known", s), "known are "+strings.Join(metrics.Systems, ", "))
		}
	}
	if f.serving.CertDir != "" {
		if !f.serving.Secure {
			return wrong(errors.New("--metrics-cert-dir: metrics are not served over TLS with --metrics-secure=false"), "leave one of them out")
		}
		if _, err := tls.LoadX509KeyPair(filepath.Join(f.serving.CertDir, "tls.crt"), filepath.Join(f.serving.CertDir, "tls.key")); err != nil {
			return wrong(fmt.Errorf("--metrics-cert-dir: %w", err), "give a folder with tls.crt and tls.key in PEM")
		}
	}
	for _, l := range f.labels {
		if _, err := kube.ParseCapacityLabel(l); err != nil {
			return wrong(fmt.Errorf("--spot-label: %w", err), "write it as name or name=value")
		}
	}
	if f.pricesEvery != 0 && (f.pricesEvery < time.Second || f.pricesEvery > pricesEveryMax) {
		return wrong(fmt.Errorf("--price-interval: %v is not from 1s to %v", f.pricesEvery, pricesEveryMax), "give it as 5m")
	}
	if f.trace != "" {
		if _, err := livemarket.NewFolder(livemarket.FolderConfig{Path: f.trace, Every: time.Minute}); err != nil {
			return wrong(fmt.Errorf("--trace: %w", err), "give the folder of a trace, as `spotter trace record` writes it")
		}
	}
	if err := f.checkPolicy(); err != nil {
		return err
	}
	if f.Namespace == "" {
		f.Namespace = ownNamespace()
	}
	f.Identity = identity()
	if err := f.Validate(); err != nil {
		return wrong(err, "run `spotter run --help`")
	}
	if err := f.record.check(f.regions); err != nil {
		return err
	}
	if err := f.usage.check(); err != nil {
		return err
	}
	_, err := f.logger(io.Discard)
	return err
}

// checkPolicy finds what is wrong with the policy and with the bundle that it names.
func (f *liveCall) checkPolicy() error {
	if f.modelLate <= 0 {
		return wrong(fmt.Errorf("--model-timeout: %v is not positive", f.modelLate), "give it as 5s")
	}
	specs, err := registry.Parse(f.policies)
	if err == nil && len(specs) != 1 {
		err = fmt.Errorf("%d policies are given, and one decides", len(specs))
	}
	f.runs = newRunner()
	f.runs.models = modelsDir(f.models)
	if err := f.runs.models.check(); err != nil {
		return wrong(fmt.Errorf("--models-dir: %w", err), "give the folder that bundles lie in, a folder each")
	}
	if err == nil {
		_, err = f.runs.livePolicy(f.policies)(nil)
	}
	if err != nil {
		return wrong(fmt.Errorf("--policies: %w", err), policyAdvice)
	}
	if _, err := f.runs.forecaster(f.policies); err != nil {
		return fmt.Errorf("--policies %s: %w", f.policies, err)
	}
	return nil
}

// livePolicy returns what makes a policy for pools that name these. Their bundles are
// opened by a [liveModel]: what is wrong with one is no fault of the policy, which
// then decides on the closed form. Only --policies may give paths: what pools name is
// taken from --models-dir.
func (r *runner) livePolicy(spec string) func([]string) (policy.Policy, error) {
	o := registry.Options{ReadRuntime: r.readRuntime, OpenBundle: func(string) error { return nil }}
	if spec == registry.Manifest {
		o.ReadRuntime, o.OpenBundle = r.models.readRuntime, r.models.has
	}
	return func(named []string) (policy.Policy, error) {
		o.Manifests = named
		return registry.New(spec, o)
	}
}

// logger writes to w as the flags say.
func (f *liveCall) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, wrong(fmt.Errorf("--log-level: %q is not known", f.level), "known are debug, info, warn and error")
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	}
	return nil, wrong(fmt.Errorf("--log-format: %q is neither json nor text", f.format), "json is for machines, text for people")
}

// ownNamespaceFile is where a pod finds the namespace that it runs in.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func ownNamespace() string {
	if b, err := os.ReadFile(ownNamespaceFile); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b))
	}
	return "spotter"
}

// identity names this process in the lease: a pod that is restarted keeps its name
// and is another leader all the same.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano())
}

// live runs the controller until it is asked to end.
func (p *program) live(ctx context.Context, f *liveCall) error {
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger(p.stderr)
	if err != nil {
		return err
	}
	if f.panics == "" {
		f.panics = filepath.Join(os.TempDir(), "spotter-panics")
	}
	cluster, err := f.cluster()
	if err != nil {
		return err
	}
	w := wiring{f: f, log: log, rest: cluster, policies: f.runs}
	defer w.close()
	if err := w.connect(ctx); err != nil {
		return err
	}
	log.Info("starting", "version", version, "mode", f.mode, "policies", f.policies, "namespace", f.Namespace, "identity", f.Identity, "backends", f.backends)
	err = w.manager.Start(ctx)
	if errors.Is(err, live.ErrSuperseded) {
		return &brokenOff{err: err, next: "another replica leads: this one has done nothing more, and is to be started again"}
	}
	return err
}
