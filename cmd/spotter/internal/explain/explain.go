// Package explain implements the command that explains a recorded decision.
package explain

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
)

// explainFlags are the flags of the command explain.
type explainFlags struct {
	run, at, from, to string
	query             record.Query
	noMinor           bool
	limit             int
	form              cli.Form
}

// Command returns the command explain.
func Command(p *cli.Program) *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain --run DIR [--at TIME|--step N]",
		Short: "Say why something was done at a time, or why nothing was",
		Long: "explain reads a recording, of sim --record or of a cluster, and says of one\n" +
			"decision what was known, what was decided, the reason in words, the dollars on\n" +
			"both sides and what came second; and where nothing was done, what speaks for it.\n" +
			"With --node or --pool it is about that one, else about the whole plan.\n" +
			"\n" +
			"Without --at and --step it lists what was done when, with the steps to ask about.",
		Example: "  spotter explain --run steps --node general-17\n" +
			"  spotter explain --run steps --from 2026-01-03 --to 2026-01-04\n" +
			"  spotter explain --run steps --step 200\n" +
			"  spotter explain --run steps --at 2026-01-03T14:00:00Z --pool general\n" +
			"  spotter explain --run steps --at 2026-01-03 --node general-17",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("step") && f.query.Number < 1 {
				return cli.Invalid(fmt.Errorf("--step: %d is not above 0", f.query.Number), "steps count from 1")
			}
			return run(p, &f)
		},
	}
	f.form.Register(c)
	flags := c.Flags()
	flags.StringVar(&f.run, "run", "", "the recording: the folder `DIR` that --record wrote")
	flags.StringVar(&f.at, "at", "", "the decision in force at `TIME`, as 2026-01-03 or RFC 3339")
	flags.Int64Var(&f.query.Number, "step", 0, "the decision of number `N`, from 1")
	flags.StringVar(&f.from, "from", "", "list what was done at `TIME` and after it")
	flags.StringVar(&f.to, "to", "", "list what was done before `TIME`")
	flags.BoolVar(&f.noMinor, "no-minor", false, "in a list, leave out what changes nothing: what was held back, and the order of removals")
	flags.IntVar(&f.limit, "limit", 0, "in a list, the first `N` entries (default: all)")
	flags.StringVar(&f.query.Node, "node", "", "about the node called `NAME`")
	flags.StringVar(&f.query.Pool, "pool", "", "about the pool called `NAME`")
	cli.CompleteBy(c, "node", f.complete(func(s *policy.Snapshot) (names []string) {
		for i := range s.Nodes {
			if name := s.Nodes[i].Name; name != "" {
				names = append(names, name)
			}
		}
		return names
	}))
	cli.CompleteBy(c, "pool", f.complete(func(s *policy.Snapshot) (names []string) {
		for i := range s.Pools {
			names = append(names, s.Pools[i].Name)
		}
		return names
	}))
	return c
}

// complete completes names from the last snapshot of the recording.
func (f *explainFlags) complete(names func(*policy.Snapshot) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		r, err := record.OpenPlain(f.run)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		last, err := r.Last()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(last.Snapshot), cobra.ShellCompDirectiveNoFileComp
	}
}

func run(p *cli.Program, f *explainFlags) error {
	const next = "run `spotter explain --help`"
	one := f.at != "" || f.query.Number != 0
	switch {
	case f.run == "":
		return cli.Invalid(errors.New("--run is missing"), next)
	case f.at != "" && f.query.Number != 0:
		return cli.Invalid(errors.New("--at and --step exclude each other"), next)
	case one && (f.from != "" || f.to != ""):
		return cli.Invalid(errors.New("--from and --to list what was done, and --at and --step ask about one decision"), next)
	case f.limit < 0:
		return cli.Invalid(fmt.Errorf("--limit: %d is below 0", f.limit), next)
	case f.query.Node != "" && f.query.Pool != "":
		return cli.Invalid(errors.New("--node and --pool exclude each other"), next)
	}
	var from, to policy.Time
	err := cmp.Or(input.TimeFlag("at", f.at, &f.query.At), input.TimeFlag("from", f.from, &from), input.TimeFlag("to", f.to, &to))
	if err != nil {
		return err
	}
	r, err := input.OpenRecording(p, f.run)
	if err != nil {
		return err
	}
	if !one {
		return list(p, f, r, from, to)
	}
	return explain(p, f, r)
}

// explain prints the explanation of one decision.
func explain(p *cli.Program, f *explainFlags, r *record.Recording) error {
	text, step, err := r.Explain(f.query)
	switch {
	case errors.Is(err, record.ErrNoSuch):
		return cli.Invalid(err, "the whole plan of a step, without --node and --pool, names what it is about")
	case errors.Is(err, record.ErrNoStep):
		return cli.Invalid(err, "choose another --step or --at")
	case err != nil:
		return input.RecordingError(err)
	}
	if text := bundles.Mismatch(step.Meta, step.Meta.Bundle); text != "" {
		fmt.Fprintf(p.Stderr, "warning: %s\n", text)
	}
	entries, err := f.query.Entries(step)
	if err != nil {
		return err
	}
	return p.Print(&f.form, decision{step.Number, step.Snapshot.Now.String(), step.Meta.Policy, step.Meta.Scenario,
		entries, strings.Split(strings.TrimSpace(text), "\n")},
		func(w io.Writer, _ bool) error {
			_, err := io.WriteString(w, text)
			return err
		})
}

// list lists the changes between two times, and minor entries where they are wanted: what was held
// back, and the order in which nodes should be removed.
func list(p *cli.Program, f *explainFlags, r *record.Recording, from, to policy.Time) error {
	entries, err := r.History(f.query, from, to)
	switch {
	case errors.Is(err, record.ErrNoSuch):
		return cli.Invalid(err, "without --node and --pool the list names what was touched")
	case err != nil:
		return input.RecordingError(err)
	}
	all := len(entries)
	if f.noMinor || f.form.String() == cli.FormTable {
		entries = slices.DeleteFunc(entries, func(x record.PastEntry) bool { return x.Minor })
	}
	minor := all - len(entries)
	if n := len(entries); f.limit > 0 && n > f.limit {
		fmt.Fprintf(p.Stderr, "The first %d of %d entries are listed; --from %s lists the next.\n", f.limit, n, entries[f.limit].At)
		entries = entries[:f.limit]
	}
	return p.Print(&f.form, entries, func(w io.Writer, _ bool) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		if len(entries) > 0 {
			fmt.Fprintln(t, "STEP\tAT\tWHAT AND WHY")
		}
		for i := range entries {
			x := &entries[i]
			fmt.Fprintf(t, "%d\t%s\t%s\n", x.Step, strings.Replace(x.At[:19], "T", " ", 1), x.Line)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if len(entries) == 0 {
			fmt.Fprintln(w, "nothing was done")
		}
		if minor > 0 && !f.noMinor {
			fmt.Fprintf(w,
				"Left out, and shown by -o wide: %d entries that hold something back or say which node should go first.\n", minor)
		}
		if len(entries) > 0 {
			fmt.Fprintf(w, "A decision with what was known then: spotter explain --run %s --step %d\n", f.run, entries[0].Step)
		}
		return nil
	})
}

// A decision is the explanation of a step in machine-readable form.
type decision struct {
	Step     int64              `json:"step"`
	At       string             `json:"at"`
	Policy   string             `json:"policy"`
	Scenario string             `json:"scenario,omitempty"`
	Entries  []record.PlanEntry `json:"entries"`

	// Explanation is the explanation in words, line by line.
	Explanation []string `json:"explanation"`
}
