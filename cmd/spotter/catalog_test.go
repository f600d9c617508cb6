package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios/catalog"
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
		if code != exitGood || !strings.Contains(stdout, want) {
			t.Errorf("spotter catalog %s: exit code %d, %q is missing in\n%s%s", shell(args), code, want, stdout, stderr)
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
		"--min-vcpu: -1 is negative":                      {"--min-vcpu", "-1"},
	} {
		code, stdout, stderr := call(t, append([]string{"catalog"}, args...)...)
		if code != exitWrong || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("spotter catalog %s: exit code %d, %q is missing in %q", shell(args), code, want, stderr)
		}
	}
}

// The formats agree, and each modelled price says what it was derived from.
func TestCatalogFormats(t *testing.T) {
	_, asCSV, _ := call(t, "catalog", "--provider", "all", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(asCSV)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	_, asJSON, _ := call(t, "catalog", "--provider", "all", "--format", "json")
	var doc struct {
		Lists []catalogList
		Types []catalogRow
	}
	if err := json.Unmarshal([]byte(asJSON), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Lists) != len(catalog.Providers()) || len(doc.Types) != len(rows)-1 || len(doc.Types) < 2000 {
		t.Fatalf("%d lists and %d types in JSON, %d rows in CSV", len(doc.Lists), len(doc.Types), len(rows))
	}
	for i := range doc.Types {
		r := &doc.Types[i]
		if got, want := strings.Join(rows[i+1], ","), strings.Join(r.cells(), ","); got != want {
			t.Errorf("%s: %q in CSV, %q in JSON", r.Type, got, want)
		}
		spotOnly := r.Type == "a3-highgpu-1g" // Google sells it on demand in eights
		if (r.Basis != "") != (r.Provider == catalog.Rackspace || spotOnly) {
			t.Errorf("%s of %s: its price is derived from %q", r.Type, r.Provider, r.Basis)
		}
	}
}
