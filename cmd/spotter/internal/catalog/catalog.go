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
	var filter catalog.Filter
	var form cli.Form
	c := &cobra.Command{
		Use:   "catalog",
		Short: "List instance types with their size and on-demand price",
		Long: "catalog lists the instance types that scenarios may use: size, the part that\n" +
			"pods may use, and the on-demand price in a region, or in the provider's cheapest\n" +
			"one. Rackspace publishes no on-demand prices: prices derived from others are\n" +
			"marked, with what they were derived from.",
		Example: "  spotter catalog --region us-east-1 --families m5,c6i\n" +
			"  spotter catalog --provider gcp --region us-central1 --categories n\n" +
			"  spotter catalog --provider all --min-gpus 1 --format csv",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return run(p, &filter, &form) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&filter.Providers, "provider", []string{catalog.AWS},
		"of `PROVIDER,…`: aws, gcp, azure, rackspace; or all")
	cli.Complete(c, "provider", append(catalog.Providers(), allProviders))
	flags.StringVar(&filter.Region, "region", "", "prices of `REGION` (default: the cheapest of each provider)")
	flags.StringSliceVar(&filter.Families, "families", nil, "only `FAMILY,…`, as m5,c6i")
	flags.StringSliceVar(&filter.Categories, "categories", nil, "only `CATEGORY,…`, as m,c")
	flags.StringVar(&filter.Arch, "arch", "", "only `ARCH`: amd64 or arm64")
	flags.Int64Var(&filter.MinVCPU, "min-vcpu", 0, "at least `N` vCPU")
	flags.Int64Var(&filter.MaxVCPU, "max-vcpu", 0, "at most `N` vCPU; 0 is no bound")
	flags.Int64Var(&filter.MinGPUs, "min-gpus", 0, "at least `N` GPUs")
	form.Register(c, formCSV)
	return c
}

// A row is an instance type in the output. The JSON names of its fields are the columns of the CSV.
type row struct {
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
	Network    int64   `json:"network_mbps"` // 0 if it is not published
	Region     string  `json:"region"`
	OnDemandHr float64 `json:"on_demand_usd_per_hour"`

	// Basis describes what the price was derived from. It is empty for a published price.
	Basis string `json:"on_demand_basis,omitempty"`
}

// A column is a column of the CSV and of the table.
type column struct {
	name, heading string // in the CSV and in the table
	value         func(*row) string
}

// narrowColumns are in every table, wideColumns are added to a wide one. The CSV has all of them.
var (
	narrowColumns = []column{
		{"instance_type", "type", func(r *row) string { return r.Type }},
		{"arch", "arch", func(r *row) string { return r.Arch }},
		{"vcpu", "vCPU", func(r *row) string { return strconv.FormatInt(r.VCPU, 10) }},
		{"memory_gib", "GiB", func(r *row) string { return decimal(r.Memory) }},
		{"allocatable_cpu", "usable CPU", func(r *row) string { return decimal(r.UsableCPU) }},
		{"allocatable_memory_gib", "usable GiB", func(r *row) string { return decimal(r.UsableMem) }},
		{"max_pods", "pods", func(r *row) string { return strconv.FormatInt(r.Pods, 10) }},
		{"gpus", "GPUs", func(r *row) string { return strconv.FormatInt(r.GPUs, 10) }},
		{"gpu", "GPU", func(r *row) string { return r.GPU }},
		{networkColumn, "Mbit/s", func(r *row) string { return strconv.FormatInt(r.Network, 10) }},
		{"region", "region", func(r *row) string { return r.Region }},
		{priceColumn, "$/h", func(r *row) string { return decimal(r.OnDemandHr) }},
	}
	wideColumns = []column{
		{"provider", "provider", func(r *row) string { return r.Provider }},
		{"family", "family", func(r *row) string { return r.Family }},
		{"on_demand_basis", "price derived from", func(r *row) string { return r.Basis }},
	}
)

// The columns that the table shows in another form than the CSV.
const (
	networkColumn = "network_mbps"
	priceColumn   = "on_demand_usd_per_hour"
)

// cell returns the text of a column in the table, in which a tilde marks derived prices.
func (c *column) cell(r *row) string {
	switch {
	case c.name == networkColumn && r.Network == 0:
		return ""
	case c.name == priceColumn && r.Basis != "":
		return "~" + c.value(r)
	}
	return c.value(r)
}

// decimal formats x with the least number of digits that represents it exactly.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func run(p *cli.Program, filter *catalog.Filter, form *cli.Form) error {
	if err := normalize(filter); err != nil {
		return err
	}
	list := catalog.List(*filter)
	if len(list) == 0 {
		return cli.Invalid(fmt.Errorf("no instance type fits"), "run `spotter catalog --provider all` to see all of them")
	}
	rows := make([]row, len(list))
	for i := range list {
		rows[i] = rowOf(&list[i])
	}
	if form.String() == formCSV {
		return p.Output("", func(w io.Writer) error { return writeCSV(w, rows) })
	}
	object := struct {
		Lists []source `json:"lists"`
		Types []row    `json:"types"`
	}{sourcesOf(filter.Providers), rows}
	return p.Print(form, object, func(w io.Writer, wide bool) error { return writeTable(w, object.Lists, rows, wide) })
}

func rowOf(r *catalog.Row) row {
	const gib = 1 << 30
	t := &r.Type
	return row{
		Provider: t.Provider, Type: t.Name, Family: t.Family, Arch: t.Arch,
		VCPU: t.VCPU, Memory: hundredths(float64(r.MemoryMiB) / 1024),
		UsableCPU: float64(t.Allocatable.CPU) / 1000, UsableMem: hundredths(float64(t.Allocatable.Memory) / gib),
		Pods: t.Allocatable.Pods, GPUs: t.Capacity.GPU, GPU: t.GPUName, Network: t.NetworkMbps,
		Region: r.Region, OnDemandHr: r.OnDemand.Float(), Basis: r.Basis,
	}
}

// normalize replaces "all" by the names of all providers. It returns an error for unknown providers
// and regions, and for bounds that are negative or exclude each other.
func normalize(filter *catalog.Filter) error {
	if slices.Contains(filter.Providers, allProviders) || len(filter.Providers) == 0 {
		filter.Providers = catalog.Providers()
	}
	for _, bound := range [...]struct {
		flag  string
		value int64
	}{{"min-vcpu", filter.MinVCPU}, {"max-vcpu", filter.MaxVCPU}, {"min-gpus", filter.MinGPUs}} {
		if bound.value < 0 {
			return cli.Invalid(fmt.Errorf("--%s: %d is negative", bound.flag, bound.value), "give a number from 0 up")
		}
	}
	if filter.MaxVCPU > 0 && filter.MinVCPU > filter.MaxVCPU {
		return cli.Invalid(fmt.Errorf("--min-vcpu: %d is above --max-vcpu %d", filter.MinVCPU, filter.MaxVCPU),
			"give a lower --min-vcpu or a higher --max-vcpu")
	}
	var regions []string
	for i, provider := range filter.Providers {
		if !slices.Contains(catalog.Providers(), provider) {
			return cli.Invalid(fmt.Errorf("--provider: %q is unknown%s", provider, cli.Meant(provider, catalog.Providers())),
				"give some of "+strings.Join(catalog.Providers(), ", ")+", or all")
		}
		if slices.Contains(filter.Providers[:i], provider) {
			return cli.Invalid(fmt.Errorf("--provider: %s is given twice", provider), "give each provider once")
		}
		regions = append(regions, catalog.Regions(provider)...)
	}
	if filter.Region != "" && !slices.Contains(regions, filter.Region) {
		meant := cli.Meant(filter.Region, regions)
		return cli.Invalid(fmt.Errorf("--region: there are no prices for %q%s", filter.Region, meant),
			"give one of "+strings.Join(regions, ", "))
	}
	return nil
}

func hundredths(x float64) float64 { return float64(int64(x*100+0.5)) / 100 }

// A source describes the source of a provider's types.
type source struct {
	Provider string `json:"provider"`
	Date     string `json:"date"`
	Sources  string `json:"sources"`
}

func sourcesOf(providers []string) []source {
	list := make([]source, 0, len(providers))
	for _, provider := range providers {
		list = append(list, source{provider, catalog.Date(provider), catalog.Sources(provider)})
	}
	return list
}

func writeCSV(w io.Writer, rows []row) error {
	columns := slices.Concat(narrowColumns, wideColumns)
	records := make([][]string, len(rows)+1)
	for i := range columns {
		c := &columns[i]
		records[0] = append(records[0], c.name)
		for k := range rows {
			records[k+1] = append(records[k+1], c.value(&rows[k]))
		}
	}
	return csv.NewWriter(w).WriteAll(records)
}

// writeTable writes rows as a table, with wideColumns if wide is set.
func writeTable(w io.Writer, sources []source, rows []row, wide bool) error {
	columns := narrowColumns
	if wide {
		columns = slices.Concat(narrowColumns, wideColumns)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i := range columns {
		fmt.Fprintf(t, "%s\t", columns[i].heading)
	}
	fmt.Fprintln(t)
	for i := range rows {
		for k := range columns {
			fmt.Fprintf(t, "%s\t", columns[k].cell(&rows[i]))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%d types\n", len(rows)); err != nil {
		return err
	}
	for _, s := range sources {
		if _, err := fmt.Fprintf(w, "%s, as of %s: %s\n", s.Provider, s.Date, s.Sources); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.Basis != "" }) {
		_, err := fmt.Fprintln(w, "~ a modelled price; -o wide says what it was derived from")
		return err
	}
	return nil
}
