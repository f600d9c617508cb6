// Package run implements the command that runs the controller of a cluster: its configuration, and
// the construction of the parts of a controller. Package live implements what they do.
package run

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/keep"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A liveCall is the configuration of run from the file and the flags.
type liveCall struct {
	config.SpotterConfiguration

	access access.Cluster

	// version is the version of this program.
	version string

	// printPolicy only prints the IAM policy, limited to the Auto Scaling groups of the cluster
	// clusterName.
	printPolicy bool
	clusterName string

	// file is the file of --config. flags are the flags of the call, which override the file.
	file  string
	flags *pflag.FlagSet

	level    slog.LevelVar
	identity string
	record   keep.Config
	usage    cluster.UsageSource // Prometheus, or nil if none is configured

	// runs creates the policies. It has verified the bundle that the policy names.
	runs *runner.Runner
}

// Command returns the command run.
func Command(p *cli.Program) *cobra.Command {
	f := liveCall{version: p.Version, SpotterConfiguration: *config.Default()}
	c := &cobra.Command{
		Use:   "run",
		Short: "Decide for a running cluster; without --mode active nothing is changed",
		Long: "run observes a cluster, decides as sim does, and carries out what it decides. With\n" +
			"--mode shadow, the default, it changes nothing: it shows in the status of each\n" +
			"CapacityPool, in metrics and in the record what it would have done. With --mode\n" +
			"active each pool follows its own spec.mode.\n\n" +
			"Several replicas may run: one leads, and the next takes over within seconds. A\n" +
			"ConfigMap stops everything at once: killSwitch of the file names it.\n\n" +
			"All settings are fields of the file of --config, of apiVersion\n" +
			config.APIVersion + " and kind " + config.Kind + ". Some are flags too; a flag\n" +
			"that is given holds instead of the file.",
		Example: "  spotter run --kubeconfig ~/.kube/config --leader-elect=false --region us-east-1\n" +
			"  spotter run --config /etc/spotter/config.yaml\n" +
			"  spotter run --trace prices --policies portfolio --log-format text",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.printPolicy {
				return printIAMPolicy(p, &f)
			}
			return run(c.Context(), p, &f)
		},
	}
	f.flags = c.Flags()
	f.register(f.flags)
	c.SetFlagErrorFunc(movedFlag)
	f.access.Complete(c)
	cli.Complete(c, "mode", config.Modes)
	cli.CompleteBy(c, "policies", input.CompletePolicies)
	cli.Complete(c, "backends", config.Backends)
	cli.Complete(c, "region", catalog.Regions(catalog.AWS))
	cli.Complete(c, "azure-region", catalog.Regions(catalog.Azure))
	cli.Complete(c, "log-level", config.Levels)
	cli.Complete(c, "log-format", config.Formats)
	return c
}

// register adds the flags. Their default values are those of f.
func (f *liveCall) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "config", f.file, "read settings from `FILE`, a "+config.Kind+" of "+config.APIVersion)
	f.access.Register(flags)
	flags.StringVar(&f.Mode, "mode", f.Mode,
		"`MODE` shadow changes nothing; approve waits for a person before what is done by choice; active follows each pool's spec.mode")
	flags.StringVar(&f.Policies, "policies", f.Policies,
		"policy `P` for all pools, as NAME[:key=value…]; manifest is what each pool names, "+registry.DefaultPolicy+" where it names none")
	flags.StringVar(&f.Namespace, "namespace", f.Namespace,
		"keep the lease, the memory and the kill switch in namespace `NAME` (default: the pod's own, else spotter)")
	flags.StringSliceVar(&f.Backends, "backends", f.Backends,
		"what provisions nodes here: `NAME,…` of "+strings.Join(config.Backends, ", "))
	flags.StringSliceVar(&f.Prices.Regions, "region", f.Prices.Regions,
		"ask AWS for the prices of `REGION,…`, and for the groups of --backends asg")
	flags.StringSliceVar(&f.Prices.AzureRegions, "azure-region", f.Prices.AzureRegions,
		"ask Azure for the prices of `REGION,…`")
	flags.StringVar(&f.Prices.Trace, "trace", f.Prices.Trace,
		"take prices from the trace `DIR`, as `spotter trace record --follow` fills it")
	flags.StringVar(&f.Recording.Dir, "record", f.Recording.Dir,
		"record every decision as Parquet in the folder `DIR`; replicas may share one")
	flags.BoolVar(&f.LeaderElection.Enabled, "leader-elect", f.LeaderElection.Enabled,
		"act only while holding the lease; false is for a single process")
	flags.BoolVar(&f.printPolicy, "print-iam-policy", false,
		"print the IAM policy that a controller with these settings needs, and do nothing")
	flags.StringVar(&f.clusterName, "cluster-name", "", "limit --print-iam-policy to the groups of the cluster `NAME`")
	flags.StringVar(&f.Logging.Level, "log-level", f.Logging.Level, "log from `LEVEL` on: debug, info, warn, error")
	flags.StringVar(&f.Logging.Format, "log-format", f.Logging.Format, "log as `FORMAT` json or text")
	cli.Section(flags, "Logging", "log-level", "log-format")
	cli.Section(flags, "Rights", "print-iam-policy", "cluster-name")
}

// check validates the settings before any connection is made.
func (f *liveCall) check() error {
	c, err := f.read()
	if err != nil {
		return err
	}
	f.SpotterConfiguration = *c
	f.identity = access.Identity()
	if err := f.checkPolicy(); err != nil {
		return err
	}
	if t := f.Prices.Trace; t != "" {
		if _, err := livemarket.NewFolder(livemarket.FolderConfig{Path: t, Every: time.Minute}); err != nil {
			return cli.Invalid(f.fault("prices.trace", err), "give the folder of a trace, as `spotter trace record` writes it")
		}
	}
	if d := f.Metrics.CertDir; d != "" {
		if _, err := tls.LoadX509KeyPair(filepath.Join(d, "tls.crt"), filepath.Join(d, "tls.key")); err != nil {
			return cli.Invalid(f.fault("metrics.certDir", err), "give a folder with tls.crt and tls.key in PEM")
		}
	}
	if err := f.checkRecord(); err != nil {
		return err
	}
	return f.checkUsage()
}

// checkPolicy validates the policy and the bundle that it names.
func (f *liveCall) checkPolicy() error {
	specs, err := registry.Parse(f.Policies)
	if err == nil && len(specs) != 1 {
		err = fmt.Errorf("%d policies are given, and one decides", len(specs))
	}
	f.runs = runner.New()
	f.runs.Models = runner.ModelsDir(f.Models.Dir)
	if err := f.runs.Models.Check(); err != nil {
		return cli.Invalid(f.fault("models.dir", err), "give the folder of the bundles, one folder each")
	}
	if err == nil {
		_, err = f.runs.LivePolicy(f.Policies)(nil)
	}
	if err != nil {
		return cli.Invalid(f.fault("policies", err), input.PolicyAdvice)
	}
	if _, err := f.runs.Forecaster(f.Policies); err != nil {
		return f.fault("policies", fmt.Errorf("%s: %w", f.Policies, err))
	}
	return nil
}

// logger returns a logger to w in the configured format. Its level follows f.level.
func (f *liveCall) logger(w io.Writer) *slog.Logger {
	f.setLevel(&f.SpotterConfiguration)
	o := &slog.HandlerOptions{Level: &f.level}
	if f.Logging.Format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// setLevel sets the level of the logger to that of c.
func (f *liveCall) setLevel(c *config.SpotterConfiguration) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Logging.Level)); err == nil { // the level has been validated
		f.level.Set(level)
	}
}

// controller returns the configuration of the controller.
func (f *liveCall) controller() live.Config {
	c := live.DefaultConfig()
	if f.Mode != "shadow" {
		c.Mode = policy.ModeActive
	}
	l := &f.LeaderElection
	c.Namespace, c.Identity, c.KillSwitch = f.Namespace, f.identity, f.KillSwitch
	c.LeaderElect, c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = l.Enabled, l.LeaseDuration.Duration, l.RenewDeadline.Duration, l.RetryPeriod.Duration
	c.Settings, c.Shutdown = settings(&f.SpotterConfiguration), f.ShutdownTimeout.Duration
	return c
}

// run runs the controller until it receives a termination signal.
func run(ctx context.Context, p *cli.Program, f *liveCall) error {
	if err := f.check(); err != nil {
		return err
	}
	log := f.logger(p.Log())
	cfg, err := f.access.Config(f.version)
	if err != nil {
		return err
	}
	w := wiring{f: f, log: log, rest: cfg, policies: f.runs}
	defer w.close()
	if err := w.connect(ctx); err != nil {
		return err
	}
	log.Info("starting", "version", f.version, "mode", f.Mode, "policies", f.Policies, "namespace", f.Namespace,
		"identity", f.identity, "backends", f.Backends, "config", f.file)
	log.Debug("settings in force", "configuration", config.Text(&f.SpotterConfiguration))
	err = w.manager.Start(ctx)
	if errors.Is(err, live.ErrSuperseded) {
		return &cli.StoppedError{Err: err, Next: "another replica leads: this one stopped and must be restarted"}
	}
	return err
}
