package eval

import (
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/models/onnx"
	"github.com/spotter-dev/spotter/policy/registry"
)

// skip removes from cfg the policies whose bundle requires a missing ONNX Runtime, with a warning.
// The others are compared. An invalid bundle stays, so that its error is reported.
func skip(p *cli.Program, r *runner.Runner, cfg *eval.Config) error {
	var kept []string
	for _, spec := range cfg.Policies {
		want, err := registry.BundleOf(spec)
		if err == nil && want.Dir != "" {
			if err := r.CheckBundle(want.Dir); errors.Is(err, onnx.ErrUnavailable) {
				fmt.Fprintf(p.Stderr, "warning: skipped %s: %v; %s\n", spec, err, bundles.ONNXAdvice)
				continue
			}
		}
		kept = append(kept, spec)
	}
	if len(kept) == 0 {
		return cli.Invalid(errors.New("--policies: no policy is left"), bundles.ONNXAdvice)
	}
	cfg.Policies = kept
	return nil
}
