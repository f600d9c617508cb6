package catalog

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// The formats agree, and each modelled price says what it was derived from.
func TestCatalogFormats(t *testing.T) {
	asCSV := printed(t, "--provider", "all", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(asCSV)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	asJSON := printed(t, "--provider", "all", "--format", "json")
	var doc struct {
		Lists []source
		Types []row
	}
	if err := json.Unmarshal([]byte(asJSON), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Lists) != len(catalog.Providers()) || len(doc.Types) != len(rows)-1 || len(doc.Types) < 2000 {
		t.Fatalf("%d lists and %d types in JSON, %d rows in CSV", len(doc.Lists), len(doc.Types), len(rows))
	}
	for i := range doc.Types {
		r := &doc.Types[i]
		for k, c := range slices.Concat(narrowColumns, wideColumns) {
			if got, want := rows[i+1][k], c.value(r); got != want || rows[0][k] != c.name {
				t.Errorf("%s: %s is %q in CSV, %q in JSON", r.Type, rows[0][k], got, want)
			}
		}
		spotOnly := r.Type == "a3-highgpu-1g" // Google sells it on demand in eights
		if (r.Basis != "") != (r.Provider == catalog.Rackspace || spotOnly) {
			t.Errorf("%s of %s: its price is derived from %q", r.Type, r.Provider, r.Basis)
		}
	}
}

// printed returns what the command prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	p := &cli.Program{Args: append([]string{"catalog"}, args...), Stdout: &out, Stderr: &out}
	if code := p.Run(t.Context(), func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} }); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, out.String())
	}
	return out.String()
}
