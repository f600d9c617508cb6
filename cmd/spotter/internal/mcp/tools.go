package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool is a command that agents can call.
type tool struct {
	name, title, about string

	// command is the command with the flags that are always set.
	command []string

	// simulates is true if the command may use all processors for a long time.
	simulates bool

	// remote is true if the command may reach a cluster, a cloud or a bucket.
	remote bool

	// decisions returns the ids of the decisions in the JSON of the command, or nil if it has none.
	decisions func([]byte) []string

	schema *jsonschema.Schema
	decode func(json.RawMessage) (any, error)
}

// tools returns all tools, in the order in which an agent needs them.
func tools() ([]*tool, error) {
	all := []struct {
		t     *tool
		input reflect.Type
	}{
		{&tool{name: "try", title: "What a cluster costs, and would cost on Spot",
			about: "Within a minute, estimate what the nodes of a cluster cost a month, what they would cost under other " +
				"policies (Spot allowed, Spotter), the worst week, what was assumed and left out, and one next step. Reads the " +
				"cluster of the kubeconfig, or manifests, and changes nothing. Writes no files.",
			command: []string{"try", "--no-files"}, simulates: true, remote: true}, reflect.TypeFor[tryInput]()},
		{&tool{name: "eval", title: "Compare policies on a scenario",
			about: "Compare policies by net savings and outages over windows of recorded or generated prices, and seeds of the " +
				"weather. Returns for each scenario and policy a summary of each metric: median, interval, quantiles, worst run. " +
				"Takes seconds to minutes: start with few windows and seeds. A comparison of more than an hour is refused.",
			command: []string{"eval"}, simulates: true, remote: true}, reflect.TypeFor[evalInput]()},
		{&tool{name: "whatif", title: "Compare changes to a scenario",
			about: "Show what changes to a cluster would cost and save: settings of NodePools and workloads, other NodePools, " +
				"versions of Karpenter, Spot, policies of Spotter, a savings plan. Each variant is compared with the scenario as it " +
				"is on the same prices, weather and seeds, run by run.",
			command: []string{"whatif"}, simulates: true, remote: true}, reflect.TypeFor[whatifInput]()},
		{&tool{name: "explain", title: "Why something was done, or was not",
			about: "Explain from a recording of decisions why a node was bought, moved, drained or kept: what was known, what " +
				"was decided, the reason in words, the dollars on both sides and what came second. Without at and step it lists " +
				"what was done when and why, with the numbers and ids of decisions to ask about, for all or for one node or pool.",
			command: []string{"explain"}, decisions: decisionsOf}, reflect.TypeFor[explainInput]()},
		{&tool{name: "validate", title: "Check scenarios",
			about: "Check that scenarios are valid, and with trace that they can run on its prices. Errors name the file, the " +
				"line and the field.",
			command: []string{"scenario", "validate"}, remote: true}, reflect.TypeFor[validateInput]()},
		{&tool{name: "policies", title: "List policies and their parameters",
			about:   "List the policies that eval and whatif can run, with what each does, its parameters and their defaults.",
			command: []string{"policies"}}, reflect.TypeFor[policiesInput]()},
		{&tool{name: "top", title: "List the nodes of a cluster",
			about: "List the nodes of a running cluster with their pool, instance type, zone, price, age, use, and notices of " +
				"reclaims and drains, and the totals. Needs the rights to list nodes and pods, and changes nothing.",
			command: []string{"top"}, remote: true}, reflect.TypeFor[topInput]()},
	}
	out := make([]*tool, len(all))
	for i, x := range all {
		if err := x.t.takes(x.input); err != nil {
			return nil, fmt.Errorf("tool %s: %w", x.t.name, err)
		}
		out[i] = x.t
	}
	return out, nil
}

// takes sets the input schema of t, and how it reads arguments.
func (t *tool) takes(input reflect.Type) error {
	var err error
	if t.schema, err = inputSchema(input); err != nil {
		return err
	}
	resolved, err := t.schema.Resolve(nil)
	if err != nil {
		return err
	}
	t.decode = func(text json.RawMessage) (any, error) {
		if len(bytes.TrimSpace(text)) == 0 {
			text = json.RawMessage("{}")
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return nil, err
		}
		if err := resolved.Validate(value); err != nil {
			return nil, err
		}
		in := reflect.New(input)
		if err := json.Unmarshal(text, in.Interface()); err != nil {
			return nil, err
		}
		return in.Elem().Interface(), nil
	}
	return nil
}

// definition returns the definition of t in the protocol. output may be nil.
func (t *tool) definition(output *jsonschema.Schema) *sdk.Tool {
	d := &sdk.Tool{Name: t.name, Title: t.title, Description: t.about, InputSchema: t.schema,
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &t.remote}}
	if output != nil {
		d.OutputSchema = output
	}
	return d
}

// decisionsOf returns the ids of the decisions in the JSON of explain, each once. The id of a
// decision is its time.
func decisionsOf(text []byte) (ids []string) {
	type decision struct {
		At string `json:"at"`
	}
	var all []decision
	if json.Unmarshal(text, &all) != nil {
		all = make([]decision, 1)
		if json.Unmarshal(text, &all[0]) != nil {
			return nil
		}
	}
	for _, d := range all {
		if n := len(ids); n == 0 || ids[n-1] != d.At {
			ids = append(ids, d.At)
		}
	}
	return ids
}
