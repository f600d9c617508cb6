package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The leads are those that the providers document; each rule names where.
func TestNoticeLead(t *testing.T) {
	for provider, want := range map[string]time.Duration{
		policy.AWS: 2 * time.Minute, policy.GCP: 30 * time.Second, policy.Azure: 30 * time.Second,
		policy.Rackspace: 6 * time.Minute, "unknown": 30 * time.Second,
	} {
		if got := policy.NoticeLead(provider); got != want {
			t.Errorf("the lead of %q is %v, not %v", provider, got, want)
		}
	}
	rules := policy.NoticeRules()
	if !slices.IsSortedFunc(rules, func(a, b policy.NoticeRule) int { return strings.Compare(a.Provider, b.Provider) }) {
		t.Errorf("the rules are not ascending by provider: %v", rules)
	}
	for _, r := range rules {
		if r.Lead <= 0 || r.Source == "" {
			t.Errorf("the rule of %s lacks a lead or a source", r.Provider)
		}
	}
}
