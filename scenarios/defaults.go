package scenarios

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// defaultDuration is the duration of a run of manifests without a Scenario.
const defaultDuration = "168h"

// notInNames matches characters that the name of an object may not contain.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Complete adds to the text of manifests the objects that a run requires and charts do not contain:
// a Scenario, and a NodePool of Karpenter if there is no pool. Added describes the additions, or is
// empty. A text that cannot be read is returned unchanged.
func Complete(nameOrPath string, text []byte) (whole []byte, added string) {
	docs, err := split(nameOrPath, text)
	if err == nil {
		docs, _, err = convertOld(docs)
	}
	if err != nil {
		return text, ""
	}
	have, wanted := map[string]bool{}, false
	class := ""
	for i := range docs {
		if _, ok := docs[i].known(); ok {
			kind := docs[i].kind()
			have[kind] = true
			if kind == "EC2NodeClass" {
				class = docs[i].name()
			}
			wanted = wanted || slices.Contains(workloadKinds, kind)
		}
	}
	pooled := have["CapacityPool"] || have["NodePool"] || slices.ContainsFunc(docs,
		func(d document) bool { return d.is != "" })
	if !wanted || have["Scenario"] && pooled {
		return text, ""
	}
	var more, words []string
	if !have["Scenario"] {
		more = append(more, fmt.Sprintf(defaultScenario, defaultName(nameOrPath), defaultDuration))
		words = append(words, "no Scenario: one of "+defaultDuration+" is taken")
	}
	if !pooled && !slices.ContainsFunc(docs, document.ofNoCloud) {
		families := "c, m, r"
		if bytes.Contains(text, []byte("nvidia.com/gpu")) {
			families = "c, g, m, p, r"
		}
		more = append(more, fmt.Sprintf(defaultPool, cmp.Or(class, "default"), families))
		if class == "" {
			more = append(more, defaultClass)
		}
		words = append(words,
			"no pool: a NodePool of Karpenter is taken, Spot and on-demand, amd64, of the instance categories "+families)
	}
	all := strings.Join(more, "")
	if originsOf(text) != nil {
		all = string(Join([]SourceFile{{"defaults", []byte(all)}}))
	}
	return []byte(strings.TrimSuffix(string(text), "\n") + "\n" + all), strings.Join(words, "; ")
}

// ofNoCloud reports whether d is a Node whose instance type is not in the catalog. Its price is
// unknown, so no pool can be a substitute for it.
func (d document) ofNoCloud() bool {
	if d.kind() != "Node" || d.version() != "v1" {
		return false
	}
	kind := d.scalar("metadata", "labels", corev1.LabelInstanceTypeStable)
	return !slices.ContainsFunc(catalog.Providers(), func(provider string) bool {
		_, known := catalog.Lookup(provider, kind)
		return known
	})
}

// defaultName derives the name of a Scenario from the name of its file.
func defaultName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(base), "-"), "-"); name != "" {
		return name
	}
	return "manifests"
}

const defaultScenario = `---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: %q}
spec: {duration: %s}
`

const defaultPool = `---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %s}
      expireAfter: 720h
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [%s]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m}
`

const defaultClass = `---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}]}
`
