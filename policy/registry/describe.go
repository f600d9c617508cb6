package registry

import (
	"fmt"
	"slices"
	"strings"
)

// A Description is what a user may know of a policy.
type Description struct {
	Name       string         `json:"name"`
	About      string         `json:"about"`
	Parameters []KnownSetting `json:"parameters,omitempty"`
}

// A KnownSetting is a parameter that a policy takes.
type KnownSetting struct {
	Key string `json:"key"`

	// Default is the value without it, empty if the setting has no default.
	Default string `json:"default,omitempty"`

	// Values are those to offer, the default among them.
	Values []string `json:"values,omitempty"`

	// About says what the parameter does.
	About string `json:"about"`

	// Expert reports whether hardly anybody needs it: the default follows from measurements.
	Expert bool `json:"expert,omitempty"`
}

// Others returns the values to offer in addition to the default.
func (s *KnownSetting) Others() []string {
	return slices.DeleteFunc(slices.Clone(s.Values), func(v string) bool { return v == s.Default })
}

// Describe returns all policies, ascending.
func Describe() []Description {
	var out []Description
	for _, m := range makers() {
		out = append(out, Description{m.name, m.about, m.settings})
	}
	return out
}

// checkKeys refuses the first parameter that the policy does not have.
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
