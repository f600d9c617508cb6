package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/registry"
)

// convertFlags are the flags of the command convert.
type convertFlags struct {
	files      []string
	flags, out string
	Options
}

// Command returns the command convert.
func Command(p *cli.Program) *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "convert -f OLD…",
		Short: "Make CapacityPools and GPUBudgets of the configuration of older programs",
		Long: "convert reads LeftoverNodePools, SpotNodePools of Karpetrack, GPUWorkloadBudgets,\n" +
			"the config.yaml and runtime.json of SpotVortex or its ConfigMap, and the flags of\n" +
			"the K8s Spot Rescheduler, as a command line or in its Deployment of any API\n" +
			"version, and prints manifests that kubectl apply takes. Other objects are skipped\n" +
			"with a line. Everything that changes its meaning or is left out is a\n" +
			"warning, and a comment above the object. New pools are in mode shadow.",
		Example: "  spotter convert -f leftovernodepools.yaml --out pools.yaml\n" +
			"  spotter convert -f config/default.yaml config/runtime.json --pools web,batch\n" +
			"  spotter convert -f spotnodepools.yaml --org my-org --cloudspace my-cloudspace --credentials-secret spotter/rackspace\n" +
			"  spotter convert --from-flags '--spot-node-label=node-role/spot --node-drain-delay=5m'",
		Args: cli.Arguments(cobra.ArbitraryArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			f.files = append(f.files, args...)
			return run(p, &f)
		},
	}
	flags := c.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil,
		"old configuration in `FILE`, YAML or JSON; - is the input; may be repeated")
	flags.StringVar(&f.flags, "from-flags", "", "the command `LINE` of the K8s Spot Rescheduler")
	flags.StringVar(&f.out, "out", "", "write to `FILE` and not to the terminal")
	flags.StringSliceVar(&f.Pools, "pools", nil, "`NAMES` of pools where the old program found them in the cluster")
	flags.StringVar(&f.NodeClass, "node-class", "",
		"`NAME` of the node class of pools that Karpenter serves, where the old configuration names none")
	flags.StringVar(&f.Cloudspace, "cloudspace", "", "cloudspace `NAME` of Rackspace pools")
	flags.StringVar(&f.Org, "org", "", "organization `NAME` of Rackspace pools")
	flags.StringVar(&f.Secret, "credentials-secret", "",
		"secret with the refresh token of Rackspace pools, as `NAMESPACE/NAME`")
	return c
}

func run(p *cli.Program, f *convertFlags) error {
	const next = "see `spotter convert --help` for what it reads"
	if len(f.files) == 0 && f.flags == "" {
		return cli.Invalid(errors.New("-f is missing: there is nothing to convert"), next)
	}
	inputs := make([]Input, len(f.files))
	for i, name := range f.files {
		data, err := readInput(name)
		if err != nil {
			return cli.Invalid(err, "give a file of old configuration to -f")
		}
		inputs[i] = Input{Name: name, Data: data}
	}
	o := f.Options
	o.ReadBuckets = func(file, source string) ([]byte, error) { return runner.ReadBounds(file, source, os.ReadFile) }
	o.Check = f.checkPolicy
	r, err := Convert(inputs, f.flags, o)
	if err != nil {
		return cli.Invalid(fmt.Errorf("convert: %w", err),
			"fix the old configuration; what has no meaning there must be taken out; "+next)
	}
	if f.out != "" {
		if err := cli.CheckEnding("--out", f.out, ".yaml", ".yml"); err != nil {
			return err
		}
		if err := cli.CheckOut("--out", f.out); err != nil {
			return err
		}
	}
	if err := p.Output(f.out, func(w io.Writer) error {
		_, err := r.WriteTo(w)
		return err
	}); err != nil {
		return err
	}
	warned := map[string]bool{}
	for _, w := range r.All() {
		p.Warn(warned, []string{w.String()})
	}
	return nil
}

// readInput reads a file, or standard input for "-".
func readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is a folder")}
	}
	return os.ReadFile(name)
}

// checkPolicy returns an error if a policy does not accept its parameters. It accepts unknown
// policies, since the program in the cluster may have them. A runtime file that the policy names is
// looked up among the converted files.
func (f *convertFlags) checkPolicy(spec string) error {
	read := func(name string) (spotvortex.Config, error) {
		if i := slices.IndexFunc(f.files, func(path string) bool { return filepath.Base(path) == name }); i >= 0 {
			name = f.files[i]
		}
		return runner.New().ReadRuntime(name)
	}
	_, err := registry.New(spec, registry.Options{ReadRuntime: read})
	if errors.Is(err, registry.ErrUnknown) {
		return nil
	}
	return err
}
