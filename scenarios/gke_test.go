package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestGoogleNotice: the notice of nodes of Google Cloud is that of their GCENodeClasses, the shorter
// one if they differ, unless the scenario states it; without either it is the usual one.
func TestGoogleNotice(t *testing.T) {
	const two, half = 2 * time.Minute, 30 * time.Second
	for name, c := range map[string]struct {
		market  string
		classes []string // specs
		want    time.Duration
		usual   bool
		warned  string
	}{
		"nothing":                 {"{}", nil, 0, true, ""},
		"a class with a notice":   {"{}", []string{"{preemptionNoticeDuration: 120}"}, two, false, ""},
		"a class without":         {"{}", []string{"{}"}, half, false, ""},
		"a class with zero":       {"{}", []string{"{preemptionNoticeDuration: 0}"}, half, false, ""},
		"two classes":             {"{}", []string{"{preemptionNoticeDuration: 120}", "{}"}, half, false, "shorter notice of 30s"},
		"two equal classes":       {"{}", []string{"{preemptionNoticeDuration: 120}", "{preemptionNoticeDuration: 120}"}, two, false, ""},
		"stated":                  {"{googleNotice: 120s}", nil, two, false, ""},
		"stated, against a class": {"{googleNotice: 0s}", []string{"{preemptionNoticeDuration: 120}"}, 0, false, ""},
		"other settings":          {"{}", []string{"{imageFamily: Ubuntu, preemptionNoticeDuration: 120}"}, two, false, "its settings are not simulated"},
	} {
		text := "apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {duration: 1h, market: " + c.market + "}\n"
		for i, spec := range c.classes {
			text += fmt.Sprintf("---\napiVersion: karpenter.k8s.gcp/v1alpha1\nkind: GCENodeClass\nmetadata: {name: c%d}\nspec: %s\n", i, spec)
		}
		sc, err := Parse("s.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := sc.GoogleNotice; (got == nil) != c.usual || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		said := strings.Join((&selection{}).assumptions(sc), "\n")
		if strings.Contains(said, fmt.Sprintf("notices of Google Cloud come %v before", c.want)) == c.usual {
			t.Errorf("%s: assumptions %q", name, said)
		}
		if warned := strings.Join(sc.Warnings, "\n"); !strings.Contains(warned, c.warned) || c.warned == "" && warned != "" {
			t.Errorf("%s: warnings %q", name, warned)
		}
	}
	for field, text := range map[string]string{
		"googleNotice": "spec: {duration: 1h, market: {googleNotice: 45s}}\n",
		"preemptionNoticeDuration": "spec: {duration: 1h}\n---\napiVersion: karpenter.k8s.gcp/v1alpha1\nkind: GCENodeClass\n" +
			"metadata: {name: c}\nspec: {preemptionNoticeDuration: 60}\n",
		"preemptionNoticeDurations": "spec: {duration: 1h}\n---\napiVersion: karpenter.k8s.gcp/v1alpha1\nkind: GCENodeClass\n" +
			"metadata: {name: c}\nspec: {preemptionNoticeDurations: 120}\n",
	} {
		_, err := Parse("s.yaml", []byte("apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\n"+text))
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
