package karpenter_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/karpenter"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func TestRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return karpenter.New() })
}

func TestDecide(t *testing.T) {
	policytest.Cases(t, "testdata/decide", func(string) (policy.Policy, error) {
		return karpenter.New(), nil
	})
}
