package asis_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/asis"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func TestRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return asis.New(asis.DefaultConfig()) })
}

func TestDecide(t *testing.T) {
	policytest.Cases(t, "testdata/decide", func(string) (policy.Policy, error) {
		return asis.New(asis.DefaultConfig()), nil
	})
}

func TestNoParameters(t *testing.T) {
	cfg := asis.DefaultConfig()
	if err := cfg.Set("share", "1"); err == nil {
		t.Error("a parameter that does not exist was set")
	}
}
