package models

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Scope is the set of instance types that a bundle was trained for. Outside of it a score would
// be a guess, so the bundle is not run.
type Scope struct {
	// Cloud is a provider, such as "aws".
	Cloud string

	// Families are tokens: a family such as "m5", "c6i.*" or "c6i*", or one instance type such as
	// "m5.large".
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
