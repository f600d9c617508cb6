package policytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
)

// Builder returns what makes the policy of "key=value[;key=value…]": its parameters
// are set in what defaults returns. The word guarded among them puts the guardrails
// around it.
func Builder[C any, S interface {
	*C
	Set(key, value string) error
}, P policy.Policy](defaults func() C, make func(C) (P, error)) func(spec string) (policy.Policy, error) {
	return func(spec string) (policy.Policy, error) {
		cfg, guarded := defaults(), false
		for _, part := range strings.Split(spec, ";") {
			key, value, ok := strings.Cut(part, "=")
			switch {
			case part == "guarded":
				guarded = true
			case ok:
				if err := S(&cfg).Set(key, value); err != nil {
					return nil, err
				}
			case part != "":
				return nil, fmt.Errorf("%q in %q is not key=value", part, spec)
			}
		}
		p, err := make(cfg)
		switch {
		case err != nil:
			return nil, err
		case guarded:
			return guard.Around(p, guard.DefaultConfig()), nil
		}
		return p, nil
	}
}

// Rules runs the suite on the policies of specs, each made by build.
func Rules(t *testing.T, build func(spec string) (policy.Policy, error), specs ...string) {
	for _, spec := range specs {
		p, err := build(spec)
		if err != nil {
			t.Fatalf("%q: %v", spec, err)
		}
		t.Run(p.Name(), func(t *testing.T) {
			Run(t, func() policy.Policy {
				p, err := build(spec)
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}
