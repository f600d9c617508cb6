package run

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
)

// fieldAdvice is the advice about an invalid field.
const fieldAdvice = "see docs/reference-configuration.md for what each field may be"

// flagField maps a flag to its field in the configuration file.
var flagField = map[string]string{
	"mode": "mode", "policies": "policies", "namespace": "namespace", "backends": "backends", "region": "prices.regions",
	"azure-region": "prices.azureRegions",
	"trace":        "prices.trace",
	"record":       "recording.dir", "leader-elect": "leaderElection.enabled", "log-level": "logging.level", "log-format": "logging.format",
}

// movedFlags maps a flag of earlier versions to the field that replaced it.
var movedFlags = map[string]string{
	"model-timeout": "models.timeout", "kill-switch": "killSwitch", "step": "stepInterval", "shutdown-timeout": "shutdownTimeout",
	"metrics-bind-address": "metrics.bindAddress", "metrics-secure": "metrics.secure", "compat-metrics": "metrics.compat",
	"health-probe-bind-address": "health.bindAddress", "pprof-bind-address": "pprof.bindAddress", "panic-dir": "panicDir",
	"record-bucket": "recording.bucket.url", "record-region": "recording.bucket.region", "record-endpoint": "recording.bucket.endpoint",
	"record-encryption": "recording.bucket.encryption", "record-kms-key": "recording.bucket.kmsKey",
	"record-keep": "recording.keep", "record-keep-bytes": "recording.keepBytes", "record-complete": "recording.complete",
	"prometheus-url": "usage.prometheus.url", "prometheus-token-file": "usage.prometheus.tokenFile", "prometheus-ca-file": "usage.prometheus.caFile",
	"prometheus-cpu-query": "usage.prometheus.cpuQuery", "prometheus-memory-query": "usage.prometheus.memoryQuery", "prometheus-timeout": "usage.prometheus.timeout",
	"families": "prices.families", "price-interval": "prices.interval", "price-cache": "prices.cacheFile", "queue-url": "notices.queueURL",
	"provider": "provider", "spot-label": "spotLabels", "discount-1y": "discounts.1y", "discount-3y": "discounts.3y",
}

// movedFlag returns the error for an unknown flag, with the field that replaced it if there is one.
func movedFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if to := movedFlags[unknown.GetSpecifiedName()]; to != "" {
			return cli.Invalid(fmt.Errorf("--%s is %s of the file of --config now", unknown.GetSpecifiedName(), to), fieldAdvice)
		}
	}
	return cli.Invalid(err, "run `"+c.CommandPath()+" --help`")
}

// read returns the settings of the file, overridden by the flags that are set. It changes nothing,
// so that it may be called again while the program runs.
func (f *liveCall) read() (*config.SpotterConfiguration, error) {
	read := liveCall{SpotterConfiguration: *config.Default()}
	if f.file != "" {
		c, err := config.Load(f.file)
		if err != nil {
			return nil, cli.Invalid(err, fieldAdvice)
		}
		read.SpotterConfiguration = *c
	}
	over := pflag.NewFlagSet("run", pflag.ContinueOnError)
	read.register(over)
	var failed error
	f.flags.Visit(func(given *pflag.Flag) {
		to := over.Lookup(given.Name)
		if to == nil { // a flag of all commands
			return
		}
		if list, is := given.Value.(pflag.SliceValue); is {
			failed = errors.Join(failed, to.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		failed = errors.Join(failed, to.Value.Set(given.Value.String()))
	})
	if failed != nil {
		return nil, failed
	}
	c := &read.SpotterConfiguration
	c.Namespace = cmp.Or(c.Namespace, access.OwnNamespace())
	all := c.Validate()
	for _, x := range all {
		x.Field = f.where(x.Field)
	}
	if len(all) > 0 {
		return nil, cli.Invalid(all.ToAggregate(), fieldAdvice)
	}
	return c, nil
}

// where returns the location of a field: the flag that sets it, otherwise the file.
func (f *liveCall) where(field string) string {
	whole, _, _ := strings.Cut(field, "[")
	for flag, of := range flagField {
		if of == whole && f.flags != nil && f.flags.Changed(flag) {
			return "--" + flag + field[len(whole):]
		}
	}
	if f.file != "" {
		return f.file + ": " + field
	}
	return field
}

// fault returns an error with the location of its field.
func (f *liveCall) fault(field string, err error) error {
	return fmt.Errorf("%s: %w", f.where(field), err)
}
