package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/registry"
)

func (p *program) policiesCommand() *cobra.Command {
	var form cli.Form
	c := &cobra.Command{
		Use:               "policies [NAME…]",
		Short:             "List policies, and the parameters of those named",
		Example:           "  spotter policies\n  spotter policies portfolio static\n  spotter policies -o json",
		ValidArgsFunction: input.CompletePolicy,
		RunE: func(_ *cobra.Command, names []string) error {
			all := registry.Describe()
			for _, name := range names {
				if !slices.ContainsFunc(all, func(d registry.Description) bool { return d.Name == name }) {
					_, err := registry.New(name, registry.Options{})
					return cli.Invalid(err, "run `spotter policies` for all of them")
				}
			}
			if len(names) > 0 {
				all = slices.DeleteFunc(all, func(d registry.Description) bool { return !slices.Contains(names, d.Name) })
			}
			return p.Print(&form, all, func(w io.Writer, wide bool) error {
				return writePolicies(w, p.Width(""), all, wide ||
					len(names) > 0)
			})
		},
	}
	form.Register(c)
	return c
}

// writePolicies writes each policy, followed by its parameters if these are requested.
func writePolicies(w io.Writer, width int, all []registry.Description, parameters bool) error {
	if !parameters {
		var rows [][]string
		for _, d := range all {
			rows = append(rows, []string{d.Name, d.About})
		}
		return cli.WrappedColumns(w, width, nil, rows)
	}
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := cli.WrappedColumns(w, width, nil, [][]string{{d.Name + ": " + d.About}}); err != nil {
			return err
		}
		var rows [][]string
		for _, s := range d.Parameters {
			value := cmp.Or(s.Default, "-")
			if others := s.Others(); len(others) > 0 {
				value += " (or " + strings.Join(others, ", ") + ")"
			}
			about := s.About
			if s.Expert {
				about = "(expert) " + about
			}
			rows = append(rows, []string{"  :" + s.Key + "=", value, about})
		}
		if len(rows) > 0 {
			rows = append([][]string{{"  PARAMETER", "DEFAULT", "WHAT IT DOES"}}, rows...)
		}
		if err := cli.WrappedColumns(w, width, nil, rows); err != nil {
			return err
		}
	}
	return nil
}

// A listedMetric is a metric in the list.
type listedMetric struct {
	Name     string `json:"name"`
	Unit     string `json:"unit"`
	About    string `json:"about"`
	Interval bool   `json:"interval"`
}

func (p *program) metricsCommand() *cobra.Command {
	var form cli.Form
	c := &cobra.Command{
		Use:     "metrics",
		Short:   "List the metrics of a comparison, which gates name, and their statistics",
		Example: "  spotter metrics\n  spotter metrics -o json",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			var all []listedMetric
			for _, m := range eval.Metrics() {
				all = append(all, listedMetric{m.Name, m.Unit, m.About, m.Interval})
			}
			return p.Print(&form, all, func(w io.Writer, wide bool) error { return writeMetrics(w, p.Width(""), all, wide) })
		},
	}
	form.Register(c)
	return c
}

func writeMetrics(w io.Writer, width int, all []listedMetric, wide bool) error {
	heading := []string{"METRIC", "UNIT", "ABOUT"}
	if wide {
		heading = slices.Insert(heading, 2, "INTERVAL")
	}
	var rows [][]string
	for _, m := range all {
		row := []string{m.Name, m.Unit, m.About}
		if wide {
			row = slices.Insert(row, 2, map[bool]string{true: "yes", false: "no"}[m.Interval])
		}
		rows = append(rows, row)
	}
	if err := cli.WrappedColumns(w, width, heading, rows); err != nil {
		return err
	}
	var names []string
	for _, s := range eval.Statistics() {
		names = append(names, string(s))
	}
	_, err := fmt.Fprintf(w, "\nStatistics: %s.\n", strings.Join(names, ", "))
	return err
}
