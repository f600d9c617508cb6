// Package doctor is the command that checks whether Spotter can run here: the cluster, the
// rights, what is installed, AWS, prices and the clock.
package doctor

import (
	"fmt"
	"io"
	"slices"

	"github.com/spotter-dev/spotter/internal/cli"
)

// The results of a check.
const (
	passed  = "ok"
	failed  = "failed"
	skipped = "not applicable"
)

// marks are how results are shown.
var marks = map[string]string{passed: "✓", failed: "✗", skipped: "–"}

// A check is one line of the report.
type check struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Text   string `json:"text"`

	// Next is what the user can do about a check that failed.
	Next string `json:"next,omitempty"`
}

// A report is all checks in their order.
type report struct {
	Checks []check `json:"checks"`

	// unreachable is why the API server cannot be asked; nil where it answers.
	unreachable error
}

func (r *report) ok(name, format string, args ...any) {
	r.Checks = append(r.Checks, check{Name: name, Result: passed, Text: fmt.Sprintf(format, args...)})
}

func (r *report) skip(name, format string, args ...any) {
	r.Checks = append(r.Checks, check{Name: name, Result: skipped, Text: fmt.Sprintf(format, args...)})
}

func (r *report) fail(name, next, format string, args ...any) {
	r.Checks = append(r.Checks, check{Name: name, Result: failed, Text: fmt.Sprintf(format, args...), Next: next})
}

// write writes each check, and below one that failed what to do, in lines of at most width
// runes; 0 is any number.
func (r *report) write(w io.Writer, width int) error {
	var rows [][]string
	for _, c := range r.Checks {
		rows = append(rows, []string{marks[c.Result] + " " + c.Name, c.Text})
		if c.Next != "" {
			rows = append(rows, []string{"", "→ " + c.Next})
		}
	}
	return cli.WrappedColumns(w, width, nil, rows)
}

// err returns the error that the command ends with: that of the server where it is not
// reached, else [cli.ErrCheck] where a check failed.
func (r *report) err() error {
	switch {
	case r.unreachable != nil:
		return r.unreachable
	case slices.ContainsFunc(r.Checks, func(c check) bool { return c.Result == failed }):
		return cli.ErrCheck
	}
	return nil
}
