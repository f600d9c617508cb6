package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// CompactCommand returns the command trace compact.
func CompactCommand(p *cli.Program) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "compact SRC --out DIR",
		Short: "Lay a trace out so that a run reads only its part of it",
		Long: "compact writes a trace, of any form, as one file for each region and month,\n" +
			"provider=P/region=R/month=M/part-0.parquet, with all rows of a market together (and\n" +
			"part-1 and so on of a region of over 40 million rows),\n" +
			"and trace.json, which lists the files and holds the span and the digest. Of it\n" +
			"sim, eval and the like read the months and regions of a run by path and the zones\n" +
			"and types of its pools by the bounds of row groups. A pool that names its region\n" +
			"is what keeps that little. Results and hashes are those of the trace read whole.\n" +
			"Both SRC and DIR may be s3:// names. An on-demand price that is unknown for a\n" +
			"time becomes the one before, else the first after, as runs take it. Three million\n" +
			"rows at a time are in memory. A compact trace is not added to: record to another\n" +
			"folder and lay it out again.",
		Example: "  spotter trace compact prices --out compact\n" +
			"  spotter trace compact prices --out s3://traces/2026\n" +
			"  spotter eval web-week --trace s3://traces/2026",
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return runCompact(c.Context(), p, args[0], out) },
	}
	c.Flags().StringVar(&out, "out", "",
		"write the trace to the folder or s3:// name `DIR`; a trace that is in a folder is replaced")
	return c
}

func runCompact(ctx context.Context, p *cli.Program, src, out string) error {
	if out == "" {
		return cli.Invalid(errors.New("--out is missing: where the trace should go"), "run `spotter trace compact --help`")
	}
	dir := out
	var store objects.Store
	if objects.Remote(out) {
		found, err := store.List(ctx, out)
		if err != nil {
			return input.TraceError(out, err)
		}
		if len(found) > 0 {
			return cli.Invalid(fmt.Errorf("%s: %w: it holds %s", out, trace.ErrTarget, found[0].Name),
				"give --out an empty prefix")
		}
		temp, err := os.MkdirTemp("", "spotter-compact-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = filepath.Join(temp, "trace")
	}
	index, err := trace.Compact(ctx, src, input.StoreOf(src), dir)
	if errors.Is(err, trace.ErrTarget) {
		return cli.Invalid(err, "give --out a folder that is new or holds a trace, where it can be written")
	}
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		return input.TraceError(src, err)
	}
	if objects.Remote(out) {
		if err := upload(ctx, &store, dir, out, index); err != nil {
			return err
		}
	}
	return p.Output("", func(w io.Writer) error {
		bytes := int64(0)
		for _, size := range index.Sizes {
			bytes += size
		}
		fmt.Fprintf(w, "%d rows of %d markets from %s to %s in %d files of %d bytes\n",
			index.Rows, index.Markets, cli.Minute(index.From), cli.Minute(index.To), len(index.Sizes), bytes)
		_, err := fmt.Fprintf(w, "written to %s; compare policies on it with `spotter eval --trace %s`\n", out,
			cli.Shell([]string{out}))
		return err
	})
}

// upload uploads the files of the compact trace in dir to a prefix. The index is last, since the
// trace is not complete without it.
func upload(ctx context.Context, store *objects.Store, dir, prefix string, index *trace.Index) error {
	for _, name := range append(slices.Sorted(maps.Keys(index.Sizes)), trace.IndexName) {
		if err := put(ctx, store, dir, prefix, name); err != nil {
			return err
		}
	}
	return nil
}

// put uploads the file name of a trace in dir to a prefix. The key is the prefix and name.
func put(ctx context.Context, store *objects.Store, dir, prefix, name string) error {
	return store.Create(ctx, objects.Join(prefix, filepath.ToSlash(name)), func(w io.Writer) error {
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}
