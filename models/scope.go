package models

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Scope is what a bundle was trained for. Outside of it a score would be a guess, so the bundle
// is not run.
type Scope struct {
	// Cloud is a provider, as "aws".
	Cloud string

	// Families holds tokens: a family as "m5", all of a family with or without
	// the point as "c6i.*" or "c6i*", or one instance type as "m5.large".
	Families []string
}

// Covers reports whether an instance type is in the scope.
func (s *Scope) Covers(t *policy.InstanceType) bool {
	if !strings.EqualFold(t.Provider, s.Cloud) {
		return false
	}
	name, family := strings.ToLower(t.Name), strings.ToLower(t.Family)
	for _, token := range s.Families {
		token = strings.ToLower(token)
		if stem, all := strings.CutSuffix(token, "*"); all {
			token = strings.TrimSuffix(stem, ".")
		}
		if token == family || token == name {
			return true
		}
	}
	return false
}
