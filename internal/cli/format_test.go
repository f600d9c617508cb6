package cli

import (
	"testing"
)

func TestShell(t *testing.T) {
	for want, words := range map[string][]string{
		"spotter sim web-week --policy static:share=0.7": {"spotter", "sim", "web-week", "--policy", "static:share=0.7"},
		`'a b' '' 'it'\''s' 'x>=2'`:                      {"a b", "", "it's", "x>=2"},
	} {
		if got := Shell(words); got != want {
			t.Errorf("shell(%q) = %s, want %s", words, got, want)
		}
	}
}
