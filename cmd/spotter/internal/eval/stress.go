package eval

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
)

// checkStress returns an error for flags and formats that --stress does not support.
func (f *evalFlags) checkStress(targets []target) error {
	for _, name := range []string{"truth", "compare", "compare-scenarios", "report"} {
		if f.given(name) {
			return cli.Invalid(fmt.Errorf("--stress: it does not go with --%s", name),
				"leave one of them out; --truth compares under one truth, with everything that eval has")
		}
	}
	for _, t := range targets {
		if !slices.Contains(format.StressFormats(), t.format) {
			return cli.Invalid(fmt.Errorf("--stress: it has no format %q", t.format),
				"give one of "+formatNames(format.StressFormats()))
		}
	}
	return nil
}

// A stressed is a stress report.
type stressed struct{ *eval.Stress }

func (s stressed) write(w io.Writer, f format.Format, o format.Options) error {
	return format.WriteStress(w, s.Stress, f, o)
}

// outcome implements [result]. A gate must hold under every truth. A run that broke takes
// precedence over a failed gate.
func (s stressed) outcome(shown bool) error {
	if s.Stopped {
		return cli.Incomplete("stopped before every truth was compared")
	}
	var gate error
	for i, r := range s.Reports {
		err := compared{r}.outcome(shown)
		if err == nil {
			continue
		}
		err = fmt.Errorf("under truth %v: %w", s.Truths[i], err)
		if !errors.Is(err, cli.ErrGate) {
			return err
		}
		if gate == nil {
			gate = err
		}
	}
	return gate
}
