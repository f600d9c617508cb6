package bundles

import (
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
)

// The reasons why one bundle cannot serve two policies: each market has only one forecast.
var (
	errTwoBundles = errors.New("the policies of one run name two bundles")
	errTwoLetters = errors.New("only some of the policies of one run that share a bundle are spotvortex:compat=true")
)

// Compatible returns an error if one forecaster cannot serve both a and b.
func Compatible(a, b registry.Bundle) error {
	switch {
	case a.Dir != b.Dir:
		return fmt.Errorf("%w: %s and %s", errTwoBundles, a.Dir, b.Dir)
	case a.Letter != b.Letter:
		return fmt.Errorf("%w: %s", errTwoLetters, a.Dir)
	}
	return nil
}

// Of returns the only bundle that specs name, or the zero value if they name no bundle. It returns
// an error if one forecast per market cannot serve all of them. It ignores policies that cannot be
// created, which the status of their pools reports.
func Of(specs []string, make func([]string) (policy.Policy, error)) (registry.Bundle, error) {
	var want registry.Bundle
	for _, spec := range specs {
		b, err := registry.BundleOf(spec)
		if err != nil || b.Dir == "" {
			continue
		}
		if _, err := make([]string{spec}); err != nil {
			continue
		}
		if want.Dir != "" {
			if err := Compatible(want, b); err != nil {
				return registry.Bundle{}, err
			}
		}
		b.Actions = b.Actions || want.Actions
		want = b
	}
	return want, nil
}

// Mismatch describes in one line how the bundle in dir differs from the one of a recording. It is
// empty if they are equal, or if the recording does not identify its bundle. A missing bundle is
// not an error, because a replay does not need it.
func Mismatch(meta *record.Meta, dir string) string {
	if meta.Bundle == "" || dir == "" {
		return ""
	}
	was := fmt.Sprintf("the bundle %s, SHA-256 %.12s…", meta.Bundle, meta.BundleSHA256)
	b, err := Read(dir, "")
	switch {
	case err != nil && dir == meta.Bundle:
		return ""
	case err != nil:
		return fmt.Sprintf("the forecasts recorded are of %s; %s, whose place they take, cannot be read: %v", was, dir, err)
	case b.Fingerprint == meta.BundleSHA256:
		return ""
	}
	return fmt.Sprintf("the forecasts recorded are of %s, not of what %s holds now, SHA-256 %.12s…", was, dir,
		b.Fingerprint)
}
