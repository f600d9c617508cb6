package policytest_test

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy/builtin/static"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestBuilder makes policies of specs, and refuses what is no parameter.
func TestBuilder(t *testing.T) {
	build := policytest.Builder(static.DefaultConfig, static.New)
	for spec, want := range map[string]string{
		"": "static", "share=0.7": "static:share=0.7", "guarded": "static", "share=0.7;guarded": "static:share=0.7",
	} {
		p, err := build(spec)
		if err != nil || p.Name() != want {
			t.Errorf("%q: %v, %v; want %s", spec, p, err, want)
			continue
		}
		if _, bare := p.(*static.Policy); bare == strings.Contains(spec, "guarded") {
			t.Errorf("%q: guardrails are missing, or there without being asked for: %T", spec, p)
		}
	}
	for spec, says := range map[string]string{"share=2": "share", "gaurded": `"gaurded" in "gaurded" is not key=value`, "ratio=1": `"ratio"`} {
		if p, err := build(spec); err == nil || p != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v; want an error that says %s", spec, p, err, says)
		}
	}
}
