package spot_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/spot"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func TestRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return spot.New(spot.DefaultConfig()) })
}

func TestDecide(t *testing.T) {
	policytest.Cases(t, "testdata/decide", func(string) (policy.Policy, error) {
		return spot.New(spot.DefaultConfig()), nil
	})
}

func TestNoParameters(t *testing.T) {
	cfg := spot.DefaultConfig()
	if err := cfg.Set("share", "1"); err == nil {
		t.Error("a parameter that does not exist was set")
	}
}
