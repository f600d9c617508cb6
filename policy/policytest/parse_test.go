package policytest_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func TestParseUnknown(t *testing.T) {
	const head = "type b.4 4\nmarket z b.4 spot 0.06\npool web\napp one 1\nnode n web z b.4 spot\n"
	for line, want := range map[string]string{
		"app two 1 kind=job":              `"job" is unknown`,
		"app two 1 preempts=nevr":         `preempts: "nevr" is unknown`,
		"app two 1 spread=capcity":        `spread: "capcity" is unknown`,
		"app two 1 safe-to-evict=no":      `safe-to-evict: "no" is unknown`,
		"node o web z b.4 spot by=nobody": `"nobody" is unknown`,
		"pod one n 1 1m 2 3":              "too many words",
	} {
		if _, _, err := policytest.Parse(head + line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

func TestParseApp(t *testing.T) {
	for line, want := range map[string]string{"zone=a on=x:y": "zone=a x=y", "on=x:y zone=a": "x=y zone=a"} {
		s, _, err := policytest.Parse("app one 1.001 " + line)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range s.Templates[0].NodeSelector {
			got = append(got, strings.TrimPrefix(l.Key, "topology.kubernetes.io/")+"="+l.Value)
		}
		if !reflect.DeepEqual(got, strings.Fields(want)) {
			t.Errorf("%s: selector %v, want %s", line, got, want)
		}
		if cpu := s.Templates[0].Requests.CPU; cpu != 1001 {
			t.Errorf("1.001 CPUs are %d millicores", cpu)
		}
	}
	for kind := policy.KindBare; kind <= policy.KindDaemonSet; kind++ {
		s, _, err := policytest.Parse("app one 1 kind=" + kind.String())
		if err != nil || s.Workloads[0].Kind != kind {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
