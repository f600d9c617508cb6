// Package doctor implements the command that checks whether Spotter can run: the cluster, rights,
// installed components, AWS, prices and the clock.
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

// marks maps a result to the symbol that marks it.
var marks = map[string]string{passed: "✓", failed: "✗", skipped: "–"}

// A check is one line of the report.
type check struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Text   string `json:"text"`

	// Next is what the user can do about a failed check.
	Next string `json:"next,omitempty"`
}

// A report is all checks in their order.
type report struct {
	Checks []check `json:"checks"`

	// unreachable is the reason why the API server cannot be reached, or nil.
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

// write writes each check, and below a failed one what to do, in lines of at most width runes. A
// width of 0 means no limit.
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

// err returns the error of the command: the reason why the API server cannot be reached, or
// [cli.ErrCheck] if a check failed.
func (r *report) err() error {
	switch {
	case r.unreachable != nil:
		return r.unreachable
	case slices.ContainsFunc(r.Checks, func(c check) bool { return c.Result == failed }):
		return cli.ErrCheck
	}
	return nil
}
