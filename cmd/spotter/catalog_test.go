package main

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

func TestCatalogProviders(t *testing.T) {
	for want, args := range map[string][]string{
		"n2-standard-8,amd64,8,32,": {"--provider", "gcp", "--families", "n2", "--format", "csv"},
		"Standard_D8ps_v5  arm64":   {"--provider", "azure", "--region", "westeurope", "--arch", "arm64"},
		"us-east-iad-1  ~0.":        {"--provider", "rackspace", "--categories", "gp"},
		"~ a modelled price":        {"--provider", "rackspace"},
		"aws, as of 20":             {"--min-gpus", "8"},
		"rackspace, as of 2026-07":  {"--provider", "all", "--region", "us-east-iad-1"},
		`"provider": "azure"`:       {"--provider", "aws,azure", "--format", "json", "--families", "Dsv5"},
	} {
		code, stdout, stderr := call(t, append([]string{"catalog"}, args...)...)
		if code != cli.ExitOK || !strings.Contains(stdout, want) {
			t.Errorf("spotter catalog %s: exit code %d, %q is missing in\n%s%s", cli.Shell(args), code, want, stdout, stderr)
		}
	}
	if _, stdout, _ := call(t, "catalog"); strings.Contains(stdout, "~") || strings.Contains(stdout, "gp.vs1") {
		t.Error("types of another provider are listed unasked")
	}
}

func TestCatalogRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`--provider: "ibm" is unknown`:                    {"--provider", "ibm"},
		"--provider: gcp is given twice":                  {"--provider", "gcp,gcp"},
		`--region: there are no prices for "us-east-1"`:   {"--provider", "gcp", "--region", "us-east-1"},
		`--region: there are no prices for "us-central1"`: {"--region", "us-central1"},
		"no instance type fits":                           {"--provider", "rackspace", "--min-vcpu", "1000"},
		"--min-vcpu: 8 is above --max-vcpu 4":             {"--min-vcpu", "8", "--max-vcpu", "4"},
		"--min-vcpu: -1 is negative":                      {"--min-vcpu", "-1"},
	} {
		code, stdout, stderr := call(t, append([]string{"catalog"}, args...)...)
		if code != cli.ExitInvalid || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("spotter catalog %s: exit code %d, %q is missing in %q", cli.Shell(args), code, want, stderr)
		}
	}
}
