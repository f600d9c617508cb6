package karpenter_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/karpenter"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func TestRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return karpenter.New(karpenter.DefaultConfig()) })
}

func TestDecide(t *testing.T) {
	policytest.Cases(t, "testdata/decide", func(string) (policy.Policy, error) {
		return karpenter.New(karpenter.DefaultConfig()), nil
	})
}

func TestNoParameters(t *testing.T) {
	cfg := karpenter.DefaultConfig()
	if err := cfg.Set("share", "1"); err == nil {
		t.Error("a parameter that does not exist was set")
	}
}
