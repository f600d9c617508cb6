package kube

import (
	"testing"
	"time"
)

// TestDoNotDisrupt reads values as Karpenter does: what it ignores protects nothing, and is an error.
func TestDoNotDisrupt(t *testing.T) {
	for value, want := range map[string]struct {
		protects bool
		lasts    time.Duration
		ignored  bool
	}{
		"true": {protects: true}, "false": {}, "": {},
		"45m": {protects: true, lasts: 45 * time.Minute}, "1h30m": {protects: true, lasts: 90 * time.Minute},
		"True": {ignored: true}, "1": {ignored: true}, "0s": {ignored: true}, "-5m": {ignored: true}, "2 hours": {ignored: true}, "1d": {ignored: true},
	} {
		protects, lasts, err := DoNotDisrupt(value)
		if protects != want.protects || lasts != want.lasts || (err != nil) != want.ignored {
			t.Errorf("%q: protects %v for %v (%v), want %+v", value, protects, lasts, err, want)
		}
	}
}
