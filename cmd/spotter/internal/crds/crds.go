// Package crds implements the command that prints the CustomResourceDefinitions of this version,
// and the command that migrates stored objects to the storage version.
package crds

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/crd"
)

// Command returns the command crds.
func Command(p *cli.Program) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "crds",
		Short: "Print the CustomResourceDefinitions of this version",
		Long: "crds prints the definitions of Spotter's kinds, and the admission\n" +
			"policy that keeps pods out while their budget is used up, as one stream of YAML. The\n" +
			"definitions are large: apply them with --server-side.",
		Example: "  spotter crds | kubectl apply --server-side -f -\n  spotter crds --out crds.yaml",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if out != "" {
				if err := cli.CheckWritable(out); err != nil {
					return cli.Invalid(fmt.Errorf("--out: %w", err), "give a file in a folder that can be written")
				}
			}
			return p.Output(out, write)
		},
	}
	c.AddCommand(migrateCommand(p))
	c.Flags().StringVar(&out, "out", "", "write to `FILE`")
	return c
}

// write writes every manifest. A manifest may contain several documents.
func write(w io.Writer) error {
	manifests := [][]byte{}
	for _, name := range crd.Files() {
		manifests = append(manifests, crd.File(name))
	}
	for _, text := range append(manifests, crd.GateFile()) {
		text = append([]byte("---\n"), bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("---")))...)
		if _, err := w.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}
