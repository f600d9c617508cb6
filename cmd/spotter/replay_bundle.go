package main

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
)

// bundleSum returns the bundle that specs name and the SHA-256 of its manifest, as
// a recording states them; nothing where none is named or can be had.
func (r *runner) bundleSum(specs ...string) (name, sum string) {
	want, err := bundleOf(specs, func(one []string) (policy.Policy, error) { return newPolicies().make(one[0], nil) })
	if err != nil || want.Dir == "" {
		return "", ""
	}
	b, err := r.bundles.get(want.Dir)
	if err != nil {
		return "", ""
	}
	return want.Dir, b.Fingerprint
}

// A judged bundle is one that was set beside that of a recording.
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
	if text := otherBundle(meta, dir); text != "" {
		a.others = once(a.others, text)
	}
}

// otherBundle says in one line that the bundle in dir is not the one that a
// recording was made with; empty if it is, and where the recording does not say. A
// replay needs no bundle, so that one which is not here is no fault.
func otherBundle(meta *record.Meta, dir string) string {
	if meta.Bundle == "" || dir == "" {
		return ""
	}
	was := fmt.Sprintf("the bundle %s, SHA-256 %.12s…", meta.Bundle, meta.BundleSHA256)
	b, err := readBundle(dir, "")
	switch {
	case err != nil && dir == meta.Bundle:
		return ""
	case err != nil:
		return fmt.Sprintf("the forecasts recorded are of %s; %s, whose place they take, cannot be read: %v", was, dir, err)
	case b.Fingerprint == meta.BundleSHA256:
		return ""
	}
	return fmt.Sprintf("the forecasts recorded are of %s, and not of what %s holds now, SHA-256 %.12s…", was, dir, b.Fingerprint)
}
