package mcp

import (
	"encoding/json"
	"fmt"
)

// The inputs of the tools. The tag flag names the flag of the command that a field sets, with
// options after a comma; arg marks positional arguments, and path a value that may be read as a
// file. The options are:
//
//   - join: the values of a list are one value of the flag, separated by commas
//   - not: the flag is set unless the field is true
//   - with: the flag is a change of whatif, joined to the previous one of its list
//
// The tag default is the value of the flag if the field is not set.

// A tryInput is the input of the tool try.
type tryInput struct {
	Filename  string `json:"filename,omitempty" flag:"filename" path:"" jsonschema:"Manifests to try instead of a cluster: a file or folder of Kubernetes YAML or JSON, which may be the output of kubectl get -o yaml. Without filename and demo, the cluster of the kubeconfig is tried."`
	Recursive bool   `json:"recursive,omitempty" flag:"recursive" jsonschema:"Also read the folders in the folder filename."`
	Strict    bool   `json:"strict,omitempty" flag:"strict" jsonschema:"Refuse objects of kinds that are not simulated, instead of skipping them."`
	Demo      bool   `json:"demo,omitempty" flag:"demo" jsonschema:"Try a small cluster that does not exist, as a demonstration."`

	clusterInput
}

// A clusterInput selects a cluster.
type clusterInput struct {
	Kubeconfig string `json:"kubeconfig,omitempty" flag:"kubeconfig" path:"" jsonschema:"Path of the kubeconfig (default: KUBECONFIG, else the service account of the pod, else ~/.kube/config)."`
	Context    string `json:"context,omitempty" flag:"context" jsonschema:"Context of the kubeconfig (default: its current context)."`
}

// A marketInput selects prices, windows and weather.
type marketInput struct {
	Trace     string   `json:"trace,omitempty" flag:"trace" path:"" jsonschema:"Prices to replay: a folder or file that spotter trace wrote, s3://BUCKET/PREFIX, or the name of an embedded trace: recorded, synthetic (default: the scenario's trace, else recorded)."`
	From      string   `json:"from,omitempty" flag:"from" jsonschema:"Start of the first window, as 2023-03-01 or in RFC 3339."`
	Windows   text     `json:"windows,omitempty" flag:"windows" jsonschema:"Windows of prices to run: N for the first N from the start, A-B for numbers A to B of the whole trace after its first week, or all. More windows take longer, and let intervals hold for other weeks."`
	Every     string   `json:"every,omitempty" flag:"every" jsonschema:"Time between the starts of windows, as 168h."`
	Seeds     text     `json:"seeds,omitempty" flag:"seeds" jsonschema:"Seeds of the weather (when Spot nodes are reclaimed, when capacity runs short): N for seeds 1 to N in each window, or A-B."`
	Truth     string   `json:"truth,omitempty" flag:"truth" jsonschema:"Market model that draws the weather and that no policy knows: default, or the name of another (see spotter eval --help)."`
	Intensity *float64 `json:"intensity,omitempty" flag:"intensity" jsonschema:"Factor on reclaim rates and on how often capacity runs short, in place of the scenario's: 0 for no reclaims, 1 for the rates of the market model."`
	Start     string   `json:"start,omitempty" flag:"start" jsonschema:"Cluster in which the warm-up starts: empty, or on-demand, which measures a migration."`
	NodeFee   string   `json:"node_fee,omitempty" flag:"node-fee" jsonschema:"Fee for every node on top of its price, as $15/month or 0.02/h."`
}

// A sourcesInput says how manifests are read.
type sourcesInput struct {
	Recursive bool `json:"recursive,omitempty" flag:"recursive" jsonschema:"Also read the folders in a folder."`
	Strict    bool `json:"strict,omitempty" flag:"strict" jsonschema:"Refuse objects of kinds that are not simulated, instead of skipping them."`
}

// An evalInput is the input of the tool eval.
type evalInput struct {
	Scenarios []string `json:"scenarios,omitempty" arg:"" path:"" jsonschema:"Scenarios to compare policies on: names of embedded ones (web-week, batch-night, gpu-training, tiny and others: spotter scenario list), paths of files or folders, or all (default: web-week)."`
	Policies  []string `json:"policies,omitempty" flag:"policies,join" jsonschema:"Policies to compare, each NAME or NAME:key=value:key=value, as portfolio or static:share=0.7, or all. The tool policies lists them. on-demand and the baseline are always run."`
	Baseline  string   `json:"baseline,omitempty" flag:"baseline" jsonschema:"Policy that the others are compared with (default: karpenter, or as-is where every scenario was captured from a cluster)."`
	Karpenter string   `json:"karpenter_version,omitempty" flag:"karpenter-version" jsonschema:"Version of Karpenter whose rules its pools follow, as 1.14."`
	Gates     []string `json:"gates,omitempty" flag:"gate" jsonschema:"Conditions that must hold in every scenario, each [POLICY:]METRIC.STAT OP VALUE, as portfolio:net_savings_pct.median >= 20 or outage_delta.max <= 0. The answer says which hold."`
	Metrics   []string `json:"metrics,omitempty" flag:"metrics,join" default:"bill_usd,net_savings_usd,net_savings_pct,net_savings_delta_pct,outage_minutes,outage_delta,outage_spot_minutes,availability,voluntary_evictions_per_pod_day,reclaim_evictions_per_pod_day,node_hours,spot_share,regret" jsonschema:"Metrics to summarise (default: bill, net savings, outages, availability, evictions, node-hours, share of Spot, regret). spotter metrics lists all."`
	Runs      bool     `json:"runs,omitempty" flag:"no-runs,not" jsonschema:"Also return every single run, of which the summaries are made. This may be long."`

	marketInput
	sourcesInput
}

// A whatifInput is the input of the tool whatif.
type whatifInput struct {
	Scenario string   `json:"scenario" arg:"" path:"" jsonschema:"Scenario to change: the name of an embedded one, or the path of a file or folder, mostly one that spotter capture wrote."`
	Variants []change `json:"variants" jsonschema:"Variants of the scenario. The changes of one variant are made together. Each variant is compared with the scenario as it is."`

	Prune         bool     `json:"prune,omitempty" flag:"prune" jsonschema:"Let nodepools remove objects that the folder lacks, of each kind that it has."`
	AsIsNodePools string   `json:"as_is_nodepools,omitempty" flag:"as-is-nodepools" path:"" jsonschema:"File or folder with the pools of the scenario as it is, as those of the base of a pull request."`
	Discount      *float64 `json:"discount_1y,omitempty" flag:"discount-1y" jsonschema:"Share of the on-demand price that the savings plan takes off, as 0.29."`
	Gates         []string `json:"gates,omitempty" flag:"gate" jsonschema:"Conditions that every variant must meet, each METRIC.STAT OP VALUE, as outage_delta.max <= 0."`

	marketInput
	sourcesInput
}

// A change is the changes of one variant.
type change struct {
	Set         []string `json:"set,omitempty" flag:"set,with" jsonschema:"Settings to change, each KIND/NAME.path=value, as nodepool/default.spec.disruption.consolidateAfter=5m or deployment/web.spec.replicas=4; null removes a field."`
	Sweep       string   `json:"sweep,omitempty" flag:"sweep,with" jsonschema:"Setting of which several values are tried, each a variant: KIND/NAME.path=FROM..TO/STEP, FROM..TO@COUNT, or values with commas between them. There can be one, in the only element of variants."`
	NodePools   string   `json:"nodepools,omitempty" flag:"nodepools,with" path:"" jsonschema:"File or folder with NodePools, node classes and CapacityPools that replace those of the same kind and name."`
	Karpenter   string   `json:"karpenter_version,omitempty" flag:"karpenter-version,with" jsonschema:"Version of Karpenter whose rules pools follow, as 1.12; several with commas are a variant each."`
	Spot        bool     `json:"allow_spot,omitempty" flag:"allow-spot,with" jsonschema:"Let every pool buy Spot in addition to on demand."`
	Policy      string   `json:"policy,omitempty" flag:"policy,with" jsonschema:"Policy of Spotter to run, as portfolio; several with commas are a variant each."`
	SavingsPlan string   `json:"savings_plan,omitempty" flag:"savings-plan,with" jsonschema:"Percentage of the on-demand bill that a savings plan covers, as 40; several with commas are a variant each."`
}

// An explainInput is the input of the tool explain.
type explainInput struct {
	Run  string `json:"run" flag:"run" path:"" jsonschema:"Folder of the recording: of a controller (record.dir of its configuration), or of spotter sim --record."`
	At   string `json:"at,omitempty" flag:"at" jsonschema:"Explain the decision in force at this time, as 2026-01-03 or in RFC 3339. The id of a decision is such a time: lastDecisionID of a CapacityPool, or at in the list of this tool."`
	Step *int64 `json:"step,omitempty" flag:"step" jsonschema:"Explain the decision of this number, from 1. Without at and step, the answer is the list of what was done, when and why."`
	From string `json:"from,omitempty" flag:"from" jsonschema:"List what was done at this time and after it."`
	To   string `json:"to,omitempty" flag:"to" jsonschema:"List what was done before this time."`
	Node string `json:"node,omitempty" flag:"node" jsonschema:"Only about the node of this name."`
	Pool string `json:"pool,omitempty" flag:"pool" jsonschema:"Only about the pool of this name."`

	Minor bool   `json:"minor,omitempty" flag:"no-minor,not" jsonschema:"Also list what changes nothing: what was held back, and the order in which nodes should be removed. They are most of the entries."`
	Limit *int64 `json:"limit,omitempty" flag:"limit" default:"100" jsonschema:"Maximum number of entries of a list (default: 100). If there are more, the answer says from which time to go on."`
}

// A validateInput is the input of the tool validate.
type validateInput struct {
	Scenarios []string `json:"scenarios" arg:"" path:"" jsonschema:"Scenarios to check: paths of files or folders, or names of embedded ones."`
	Trace     string   `json:"trace,omitempty" flag:"trace" path:"" jsonschema:"Also check that they can run on these prices: a folder or file that spotter trace wrote, or recorded or synthetic."`
	From      string   `json:"from,omitempty" flag:"from" jsonschema:"Start of the window on these prices, as 2023-03-01 or in RFC 3339."`

	sourcesInput
}

// A policiesInput is the input of the tool policies.
type policiesInput struct {
	Names []string `json:"names,omitempty" arg:"" jsonschema:"Policies to list (default: all)."`
}

// A topInput is the input of the tool top.
type topInput struct {
	Sort string `json:"sort,omitempty" flag:"sort" jsonschema:"Column to sort nodes by, as pool, price or age."`

	clusterInput
}

// A text is a text that may be given as a number.
type text string

// UnmarshalJSON reads a text or a number.
func (x *text) UnmarshalJSON(b []byte) error {
	var value any
	if err := json.Unmarshal(b, &value); err != nil {
		return err
	}
	switch v := value.(type) {
	case string:
		*x = text(v)
	case float64:
		*x = text(b)
	default:
		return fmt.Errorf("%s is neither a text nor a number", b)
	}
	return nil
}
