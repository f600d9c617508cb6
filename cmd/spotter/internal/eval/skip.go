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

// skip takes out of the policies of cfg those whose bundle cannot run for want
// of ONNX Runtime, and says so; the others are compared. A bundle that is wrong
// in itself stays, so that its fault is reported.
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
