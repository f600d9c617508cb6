package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRunCall refuses what cannot be meant, by name and value, before it reaches for
// a cluster.
func TestRunCall(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for want, args := range map[string][]string{
		`--mode: Unsupported value: "on": supported values: "shadow", "approve", "active"`: {"--mode", "on"},
		`--backends[1]: Unsupported value: "gke"`:                                          {"--backends", "karpenter,gke"},
		`prices.regions: Required value: the backend asg`:                                  {"--backends", "asg"},
		`--policies: unknown policy "best"`:                                                {"--policies", "best"},
		`--policies: 2 policies are given, and one decides`:                                {"--policies", "static,spot"},
		`--log-level: Unsupported value: "loud"`:                                           {"--log-level", "loud"},
		`--log-format: Unsupported value: "xml"`:                                           {"--log-format", "xml"},
		`--trace:`:                                                                         {"--trace", nowhere},
		nowhere + ": no such file":                                                         {"--config", nowhere},
		`no cluster:`:                                                                      {"--kubeconfig", nowhere},
		`unknown flag: --moder`:                                                            {"--moder", "x"},
	} {
		wrongCallIs(t, want, append([]string{"run"}, args...)...)
	}
}

// TestRunFile refuses what a file cannot mean, by file, field and value.
func TestRunFile(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for want, settings := range map[string]string{
		`modus: Invalid value: "active": unknown field`:                                     "modus: active",
		`prices.intervall: Invalid value: "5m": unknown field`:                              "prices: {intervall: 5m}",
		`prices.interval: Invalid value: "often": must be a duration, as 10m`:               "prices: {interval: often}",
		`prices.interval: Invalid value: "2h0m0s": must be within 1s and 1h0m0s`:            "prices: {interval: 2h}",
		`prices.interval: Invalid value: "20ms": must be within 1s`:                         "prices: {interval: 20ms}",
		`prices: Invalid value: ["us-east-1"]: must be an object`:                           "prices: [us-east-1]",
		`prices.regions: Invalid value: "us-east-1": must be a list of strings`:             "prices: {regions: us-east-1}",
		`metrics.secure: Invalid value: "yes": must be true or false`:                       "metrics: {secure: 'yes'}",
		`metrics.compat[0]: Unsupported value: "datadog"`:                                   "metrics: {compat: [datadog]}",
		`spotLabels[1]: Invalid value: "=x": must be of the form name or name=value`:        "spotLabels: [a, =x]",
		`shutdownTimeout: Invalid value: "-1s"`:                                             "shutdownTimeout: -1s",
		`discounts.1y: Invalid value: 2: must be within 0 and 1`:                            "discounts: {1y: 2}",
		`writes.burst: Invalid value: 1.5: must be a whole number`:                          "writes: {burst: 1.5}",
		`writes.qps: Invalid value: 0: must be within 1 and 10000`:                          "writes: {qps: 0}",
		`leaderElection.renewDeadline: Invalid value: "1s": must be more than 1.2`:          "leaderElection: {renewDeadline: 1s}",
		`leaderElection.leaseDuration: Invalid value: "5s": must be more than`:              "leaderElection: {leaseDuration: 5s}",
		`mode: Invalid value: true: must be a string`:                                       "mode: on",
		`policies: unknown policy "best"`:                                                   "policies: best",
		`prices.trace: invalid setting: trace folder "` + nowhere:                           "prices: {trace: " + nowhere + "}",
		`[mode: Unsupported value: "on": supported values: "shadow", "approve", "active", `: "mode: 'on'\nwrites: {qps: 0}",
	} {
		path := configured(t, settings)
		if strings.HasPrefix(want, "[") {
			want = "[" + path + ": " + want[1:] + path + ": writes.qps"
		} else {
			want = path + ": " + want
		}
		wrongCallIs(t, want, "run", "--config", path)
	}
	for want, text := range map[string]string{
		`apiVersion: Required value: must be config.spotter.dev/v1alpha1`: "kind: SpotterConfiguration",
		`apiVersion: Unsupported value: "config.spotter.dev/v1"`:          "apiVersion: config.spotter.dev/v1\nkind: SpotterConfiguration",
		`kind: Unsupported value: "Spotter"`:                              "apiVersion: config.spotter.dev/v1alpha1\nkind: Spotter",
		`key "mode" already set in map`:                                   "mode: shadow\nmode: active",
		`"shadow" is not an object`:                                       "shadow",
	} {
		path := file(t, "config.yaml", text)
		wrongCallIs(t, path, "run", "--config", path)
		wrongCallIs(t, want, "run", "--config", path)
	}
}

// TestMovedFlagsAreNamed: a flag of earlier versions says which field it has become.
func TestMovedFlagsAreNamed(t *testing.T) {
	wrongCallIs(t, "--price-interval is prices.interval of the file of --config now", "run", "--price-interval", "5m")
	wrongCallIs(t, "--metrics-secure is metrics.secure of the file of --config now", "run", "--metrics-secure=false")
}
