package main

import (
	"path/filepath"
	"testing"
)

// TestRunCall refuses what cannot be meant, by name and value, before it reaches for
// a cluster.
func TestRunCall(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for want, args := range map[string][]string{
		`--mode: "on" is neither shadow nor active`:         {"--mode", "on"},
		`--backends: "gke" is not known`:                    {"--backends", "karpenter,gke"},
		`--backends asg needs --region`:                     {"--backends", "asg"},
		`--policies: unknown policy "best"`:                 {"--policies", "best"},
		`--policies: 2 policies are given, and one decides`: {"--policies", "static,spot"},
		`--log-level: "loud" is not known`:                  {"--log-level", "loud"},
		`--log-format: "xml" is neither json nor text`:      {"--log-format", "xml"},
		`--trace:`: {"--trace", nowhere},
		`--compat-metrics: "datadog" is not known`:                 {"--compat-metrics", "datadog"},
		`--spot-label: "=x" is not of the form name or name=value`: {"--spot-label", "=x"},
		`Shutdown -1s is not positive`:                             {"--shutdown-timeout", "-1s"},
		`--price-interval: 2h0m0s is not from 1s to 1h0m0s`:        {"--price-interval", "2h"},
		`--price-interval: 20ms is not from 1s`:                    {"--price-interval", "20ms"},
		`Discount1y 2 is not in [0, 1]`:                            {"--discount-1y", "2"},
		`no cluster:`:                                              {"--kubeconfig", nowhere},
	} {
		wrongCallIs(t, want, append([]string{"run"}, args...)...)
	}
}
