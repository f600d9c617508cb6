// Package catalog implements the command that lists instance types and their on-demand prices.
package catalog

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// allProviders is the value of --provider that selects every provider.
const allProviders = "all"

// formCSV is the output format with every column, for other programs.
const formCSV = "csv"

// Command returns the command catalog.
func Command(p *cli.Program) *cobra.Command {
	var f catalog.Filter
	var form cli.Form
	c := &cobra.Command{
		Use:   "catalog",
		Short: "List instance types with their size and on-demand price",
		Long: "catalog lists the instance types that worlds are made of: size, what pods may\n" +
			"use of it, and the on-demand price in a region, or in the provider's cheapest\n" +
			"one. Rackspace publishes no on-demand prices: their substitutes are marked\n" +
			"modelled and says what it was derived from.",
		Example: "  spotter catalog --region us-east-1 --families m5,c6i\n" +
			"  spotter catalog --provider gcp --region us-central1 --categories n\n" +
			"  spotter catalog --provider all --min-gpus 1 --format csv",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return run(p, &f, &form) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.Providers, "provider", []string{catalog.AWS},
		"of `PROVIDER,…`: aws, gcp, azure, rackspace; or all")
	cli.Complete(c, "provider", append(catalog.Providers(), allProviders))
	flags.StringVar(&f.Region, "region", "", "prices of `REGION` (default: the cheapest of each provider)")
	flags.StringSliceVar(&f.Families, "families", nil, "only `FAMILY,…`, as m5,c6i")
	flags.StringSliceVar(&f.Categories, "categories", nil, "only `CATEGORY,…`, as m,c")
	flags.StringVar(&f.Arch, "arch", "", "only `ARCH`: amd64 or arm64")
	flags.Int64Var(&f.MinVCPU, "min-vcpu", 0, "at least `N` vCPU")
	flags.Int64Var(&f.MaxVCPU, "max-vcpu", 0, "at most `N` vCPU; 0 is no bound")
	flags.Int64Var(&f.MinGPUs, "min-gpus", 0, "at least `N` GPUs")
	form.Register(c, formCSV)
	return c
}

// A catalogRow is an instance type in the output. Field names are column names.
type catalogRow struct {
	Provider   string  `json:"provider"`
	Type       string  `json:"instance_type"`
	Family     string  `json:"family"`
	Arch       string  `json:"arch"`
	VCPU       int64   `json:"vcpu"`
	Memory     float64 `json:"memory_gib"`
	UsableCPU  float64 `json:"allocatable_cpu"`
	UsableMem  float64 `json:"allocatable_memory_gib"`
	Pods       int64   `json:"max_pods"`
	GPUs       int64   `json:"gpus"`
	GPU        string  `json:"gpu"`
	Network    int64   `json:"network_mbps"`
	Region     string  `json:"region"`
	OnDemandHr float64 `json:"on_demand_usd_per_hour"`

	// Basis describes what the price was derived from. It is empty for a published price.
	Basis string `json:"on_demand_basis,omitempty"`
}

var catalogColumns = []string{
	"instance_type", "arch", "vcpu", "memory_gib", "allocatable_cpu", "allocatable_memory_gib",
	"max_pods", "gpus", "gpu", "network_mbps", "region", "on_demand_usd_per_hour",
	"provider", "family", "on_demand_basis",
}

func (r *catalogRow) cells() []string {
	return []string{
		r.Type, r.Arch, strconv.FormatInt(r.VCPU, 10), decimal(r.Memory), decimal(r.UsableCPU), decimal(r.UsableMem),
		strconv.FormatInt(r.Pods, 10), strconv.FormatInt(r.GPUs, 10), r.GPU, strconv.FormatInt(r.Network, 10),
		r.Region, decimal(r.OnDemandHr), r.Provider, r.Family, r.Basis,
	}
}

// decimal formats x with the least number of digits that represents it exactly.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func run(p *cli.Program, f *catalog.Filter, form *cli.Form) error {
	if err := checkCatalog(f); err != nil {
		return err
	}
	list := catalog.List(*f)
	if len(list) == 0 {
		return cli.Invalid(fmt.Errorf("no instance type fits"), "run `spotter catalog --provider all` to see all of them")
	}
	rows := make([]catalogRow, 0, len(list))
	for _, r := range list {
		const gib = 1 << 30
		t := &r.Type
		rows = append(rows, catalogRow{
			Provider: t.Provider, Type: t.Name, Family: t.Family, Arch: t.Arch,
			VCPU: t.VCPU, Memory: hundredths(float64(r.MemoryMiB) / 1024),
			UsableCPU: float64(t.Allocatable.CPU) / 1000, UsableMem: hundredths(float64(t.Allocatable.Memory) / gib),
			Pods: t.Allocatable.Pods, GPUs: t.Capacity.GPU, GPU: t.GPUName, Network: t.NetworkMbps,
			Region: r.Region, OnDemandHr: r.OnDemand.Float(), Basis: r.Basis,
		})
	}
	if form.String() == formCSV {
		return p.Output("", func(w io.Writer) error { return writeCSV(w, rows) })
	}
	lists := make([]catalogList, 0, len(f.Providers))
	for _, provider := range f.Providers {
		lists = append(lists, catalogList{provider, catalog.Date(provider), catalog.Sources(provider)})
	}
	object := struct {
		Lists []catalogList `json:"lists"`
		Types []catalogRow  `json:"types"`
	}{lists, rows}
	return p.Print(form, object, func(w io.Writer, wide bool) error {
		return writeCatalogTable(w, f.Providers, rows,
			wide)
	})
}

// checkCatalog replaces "all" by the names of all providers. It returns an error for unknown
// providers and regions and for negative bounds.
func checkCatalog(f *catalog.Filter) error {
	if slices.Contains(f.Providers, allProviders) || len(f.Providers) == 0 {
		f.Providers = catalog.Providers()
	}
	for _, bound := range [...]struct {
		flag  string
		value int64
	}{{"min-vcpu", f.MinVCPU}, {"max-vcpu", f.MaxVCPU}, {"min-gpus", f.MinGPUs}} {
		if bound.value < 0 {
			return cli.Invalid(fmt.Errorf("--%s: %d is negative", bound.flag, bound.value), "give a number from 0 up")
		}
	}
	var regions []string
	for i, provider := range f.Providers {
		if !slices.Contains(catalog.Providers(), provider) {
			return cli.Invalid(fmt.Errorf("--provider: %q is unknown%s", provider, cli.Meant(provider, catalog.Providers())),
				"give some of "+strings.Join(catalog.Providers(), ", ")+", or all")
		}
		if slices.Contains(f.Providers[:i], provider) {
			return cli.Invalid(fmt.Errorf("--provider: %s is given twice", provider), "give each provider once")
		}
		regions = append(regions, catalog.Regions(provider)...)
	}
	if f.Region != "" && !slices.Contains(regions, f.Region) {
		return cli.Invalid(fmt.Errorf("--region: there are no prices for %q%s", f.Region, cli.Meant(f.Region, regions)),
			"give one of "+strings.Join(regions, ", "))
	}
	return nil
}

func hundredths(x float64) float64 { return float64(int64(x*100+0.5)) / 100 }

// A catalogList describes the source of a provider's types.
type catalogList struct {
	Provider string `json:"provider"`
	Date     string `json:"date"`
	Sources  string `json:"sources"`
}

func writeCSV(w io.Writer, rows []catalogRow) error {
	c := csv.NewWriter(w)
	if err := c.Write(catalogColumns); err != nil {
		return err
	}
	for i := range rows {
		if err := c.Write(rows[i].cells()); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// writeCatalogTable writes rows as a table, in which a tilde marks modelled prices. With wide, it
// has all columns.
func writeCatalogTable(w io.Writer, providers []string, rows []catalogRow, wide bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	heading := []string{"type", "arch", "vCPU", "GiB", "usable CPU", "usable GiB", "pods", "GPUs", "GPU", "Mbit/s",
		"region", "$/h", "provider", "family", "price derived from"}
	const narrow = 12
	columns := narrow
	if wide {
		columns = len(heading)
	}
	fmt.Fprintf(t, "%s\t\n", strings.Join(heading[:columns], "\t"))
	for i := range rows {
		r := &rows[i]
		cells := r.cells()[:columns]
		if r.Basis != "" {
			cells[11] = "~" + cells[11]
		}
		if r.Network == 0 {
			cells[9] = "" // not published
		}
		fmt.Fprintf(t, "%s\t\n", strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%d types\n", len(rows)); err != nil {
		return err
	}
	for _, provider := range providers {
		if _, err := fmt.Fprintf(w, "%s, as of %s: %s\n", provider, catalog.Date(provider),
			catalog.Sources(provider)); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(rows, func(r catalogRow) bool { return r.Basis != "" }) {
		_, err := fmt.Fprintln(w, "~ a modelled price; -o wide says what it was derived from")
		return err
	}
	return nil
}
