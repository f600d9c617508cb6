package input

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/registry"
)

// CompletePolicies lets a shell complete the last of a list of policies.
func CompletePolicies(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return following(typed, ",", append(registry.Names(), All)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteGates lets a shell complete a gate, as far as METRIC.STAT.
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
		return following(who+":", ":", values), directive
	}
	for _, p := range registry.Names() {
		values = append(values, p+":")
	}
	return values, directive
}

// following returns values behind what is typed up to the last separator.
func following(typed, separator string, values []string) []string {
	before := typed[:strings.LastIndex(typed, separator)+1]
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = before + v
	}
	return out
}
