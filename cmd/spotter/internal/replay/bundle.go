package replay

import (
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/policy/record"
)

// A judged bundle is one that was compared with that of a recording.
type judgedBundle struct{ name, sum, dir string }

// judge takes note of it when a policy names another bundle than the one whose
// forecasts it is given. Each pair is looked at once: a recording has thousands of
// steps.
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
