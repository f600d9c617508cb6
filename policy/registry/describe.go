package registry

import (
	"fmt"
	"slices"
	"strings"
)

// A Description describes a policy for users.
type Description struct {
	Name       string         `json:"name"`
	About      string         `json:"about"`
	Parameters []KnownSetting `json:"parameters,omitempty"`
}

// A KnownSetting describes a parameter of a policy.
type KnownSetting struct {
	Key string `json:"key"`

	// Default is the value that applies if the parameter is not set; empty if there is no default.
	Default string `json:"default,omitempty"`

	// Values are values to suggest, including the default.
	Values []string `json:"values,omitempty"`

	// About describes the effect of the parameter.
	About string `json:"about"`

	// Expert reports whether the parameter is for experts: its default is based on measurements and
	// rarely needs a change.
	Expert bool `json:"expert,omitempty"`
}

// Others returns the values to suggest, without the default.
func (s *KnownSetting) Others() []string {
	return slices.DeleteFunc(slices.Clone(s.Values), func(v string) bool { return v == s.Default })
}

// Describe returns the descriptions of all policies, ascending by name.
func Describe() []Description {
	var out []Description
	for _, m := range makers() {
		out = append(out, Description{m.name, m.about, m.settings})
	}
	return out
}

// checkKeys returns an error for the first parameter that the policy does not have.
func (m *maker) checkKeys(params []Parameter) error {
	var keys []string
	for _, s := range m.settings {
		keys = append(keys, s.Key)
	}
	for _, p := range params {
		switch {
		case slices.Contains(keys, p.Key):
		case len(keys) == 0:
			return fmt.Errorf("%w: %s: unknown parameter %q: it takes none", ErrParameter, m.name, p.Key)
		default:
			return fmt.Errorf("%w: %s: unknown parameter %q: it takes %s%s", ErrParameter, m.name, p.Key,
				strings.Join(keys, ", "), suggestion(p.Key, keys))
		}
	}
	return nil
}
