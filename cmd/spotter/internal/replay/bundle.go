package replay

import (
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/policy/record"
)

// A judgedBundle is a bundle that has been compared with that of a recording.
type judgedBundle struct{ name, sum, dir string }

// judge records it if a policy names another bundle than the one that made the recorded forecasts.
// Each pair is compared once, since a recording has thousands of steps.
func (a *replay) judge(meta *record.Meta, dir string) {
	pair := judgedBundle{meta.Bundle, meta.BundleSHA256, dir}
	if a.judged[pair] {
		return
	}
	a.judged[pair] = true
	if text := bundles.Mismatch(meta, dir); text != "" {
		a.others = once(a.others, text)
	}
}
