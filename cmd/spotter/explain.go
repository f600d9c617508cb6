package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/policy/record"
)

// explainFlags are the flags of explain.
type explainFlags struct {
	run, at string
	query   record.Query
}

func (p *program) explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain --run DIR (--at TIME|--step N)",
		Short: "Say why something was done at a time, or why nothing was",
		Long: "explain reads a recording, of sim --record or of a cluster, and says of one\n" +
			"decision what was known, what was decided, the reason in words, the dollars on\n" +
			"both sides and what came second; and where nothing was done, what speaks for it.\n" +
			"With --node or --pool it is about that one, else about the whole plan.",
		Example: "  spotter explain --run steps --step 200\n" +
			"  spotter explain --run steps --at 2026-01-03T14:00:00Z --pool general\n" +
			"  spotter explain --run steps --at 2026-01-03 --node general-17",
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("step") && f.query.Number < 1 {
				return wrong(fmt.Errorf("--step: %d is not above 0", f.query.Number), "steps count from 1")
			}
			return p.explain(&f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.run, "run", "", "the recording: the folder `DIR` that --record wrote")
	flags.StringVar(&f.at, "at", "", "the decision in force at `TIME`, as 2026-01-03 or RFC 3339")
	flags.Int64Var(&f.query.Number, "step", 0, "the decision of number `N`, from 1")
	flags.StringVar(&f.query.Node, "node", "", "about the node called `NAME`")
	flags.StringVar(&f.query.Pool, "pool", "", "about the pool called `NAME`")
	return c
}

func (p *program) explain(f *explainFlags) error {
	const next = "run `spotter explain --help`"
	switch {
	case f.run == "":
		return wrong(errors.New("--run is missing"), next)
	case (f.at == "") == (f.query.Number == 0):
		return wrong(errors.New("exactly one of --at and --step is needed"), next)
	case f.query.Node != "" && f.query.Pool != "":
		return wrong(errors.New("--node and --pool exclude each other"), next)
	}
	if f.at != "" {
		at, err := parseTime(f.at)
		if err != nil {
			return wrong(fmt.Errorf("--at: %w", err), "give a date as 2026-01-03 or a time as 2026-01-03T14:00:00Z")
		}
		f.query.At = at
	}
	r, err := p.openSteps(f.run)
	if err != nil {
		return err
	}
	text, meta, err := r.Explain(f.query)
	switch {
	case errors.Is(err, record.ErrNoSuch):
		return wrong(err, "the whole plan of a step, without --node and --pool, names what it is about")
	case errors.Is(err, record.ErrNoStep):
		return wrong(err, "choose another --step or --at")
	case err != nil:
		return broken(err)
	}
	if text := otherBundle(meta, meta.Bundle); text != "" {
		fmt.Fprintf(p.stderr, "warning: %s\n", text)
	}
	return p.output("", func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// notInBucket refuses the URL of a bucket where a folder is wanted.
func notInBucket(what, dir string) error {
	if !strings.HasPrefix(dir, "s3://") {
		return nil
	}
	return wrong(fmt.Errorf("%s: %s lies in a bucket, and recordings are read from folders", what, dir), "fetch it with `aws s3 sync "+dir+" DIR` and give DIR")
}

// openSteps opens a recording of decisions and says what of it is not read.
func (p *program) openSteps(dir string) (*record.Recording, error) {
	if err := notInBucket("the recording", dir); err != nil {
		return nil, err
	}
	r, err := record.Open(dir)
	if err != nil {
		return nil, broken(err)
	}
	p.warn(map[string]bool{}, r.Warnings)
	return r, nil
}

// broken tells a recording that is none, or is damaged, from a fault of the
// program.
func broken(err error) error {
	for _, of := range []error{record.ErrNoRecording, record.ErrCorrupt, record.ErrSchema, fs.ErrNotExist} {
		if errors.Is(err, of) {
			return wrong(err, "give a folder that `spotter sim --record` or `spotter run --record` wrote")
		}
	}
	return err
}
