package input

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/registry"
)

// CompletePolicies completes the last element of a list of policies.
func CompletePolicies(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	at := strings.LastIndex(typed, ",") + 1
	return after(typed[:at], completeSpec(typed[at:], All)),
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompletePolicy completes one policy.
func CompletePolicy(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return completeSpec(typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeSpec returns completions of a policy: a name or one of more; after a colon a parameter
// that is not yet set; and after an equals sign its value.
func completeSpec(typed string, more ...string) (values []string) {
	at := strings.LastIndex(typed, ":") + 1
	if at == 0 {
		return append(registry.Names(), more...)
	}
	name, _, _ := strings.Cut(typed, ":")
	key, _, valued := strings.Cut(typed[at:], "=")
	for _, d := range registry.Describe() {
		if d.Name != name {
			continue
		}
		for _, s := range d.Parameters {
			switch {
			case valued && s.Key == key:
				values = append(values, after(s.Key+"=", s.Values)...)
			case !valued && !strings.Contains(typed[:at], ":"+s.Key+"="):
				values = append(values, s.Key+"=")
			}
		}
	}
	return after(typed[:at], values)
}

// CompleteGates completes the part METRIC.STAT of a gate.
func CompleteGates(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	who, metric, named := strings.Cut(typed, ":")
	if !named {
		metric = typed
	}
	var values []string
	if name, _, chosen := strings.Cut(metric, "."); chosen {
		for _, s := range eval.Statistics() {
			values = append(values, name+"."+string(s))
		}
	} else {
		values = eval.MetricNames()
	}
	if named {
		return after(who+":", values), directive
	}
	for _, p := range registry.Names() {
		values = append(values, p+":")
	}
	return values, directive
}

// after returns values with the prefix typed.
func after(typed string, values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = typed + v
	}
	return out
}
