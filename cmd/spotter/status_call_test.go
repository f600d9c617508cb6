package main

import (
	"testing"
)

// TestStatusCall refuses what cannot be meant.
func TestStatusCall(t *testing.T) {
	for want, args := range map[string][]string{
		"--wait: -1s is negative":   {"--wait", "-1s"},
		`unexpected argument "web"`: {"web"},
		"unknown flag: --pool":      {"--pool", "web"},
	} {
		wrongCallIs(t, want, append([]string{"status"}, args...)...)
	}
}
