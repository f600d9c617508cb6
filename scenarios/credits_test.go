package scenarios

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// typesOf returns types of AWS.
func typesOf(names ...string) []policy.InstanceType {
	var out []policy.InstanceType
	for _, name := range names {
		t, _ := catalog.Lookup(catalog.AWS, name)
		out = append(out, t)
	}
	return out
}

// oneService is a scenario of a service that requests 2 cores, with fields and annotations more.
func oneService(fields, annotations string) string {
	return `apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {duration: 24h` + fields + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {` + annotations + `}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "2", memory: 1Gi}}}]}
`
}

// TestCPUUse: a pod uses the part of its request that its annotation states, else that of the
// scenario, else 31%.
func TestCPUUse(t *testing.T) {
	for _, x := range []struct {
		fields, annotations string
		want                int64
	}{
		{"", "", 620},
		{", cpuUtilisation: 0", "", 0},
		{", cpuUtilisation: 0.5", "", 1000},
		{", cpuUtilisation: 0.5", `spotter.dev/cpu-utilisation: "0.25"`, 500},
		{"", `spotter.dev/cpu-utilisation: "130%"`, 2600},
	} {
		sc, err := Parse("s.yaml", []byte(oneService(x.fields, x.annotations)))
		if err != nil {
			t.Fatal(err)
		}
		w := &BoundScenario{Templates: sc.templates}
		if w.meterCredits(sc); w.Templates[0].CPUUse != x.want {
			t.Errorf("%q %q: %dm, want %dm", x.fields, x.annotations, w.Templates[0].CPUUse, x.want)
		}
	}
	for _, x := range [][3]string{
		{", cpuUtilisation: -1", "", `"spec.cpuUtilisation": -1 is not from 0 to 100`},
		{", cpuCredits: free", "", `"spec.cpuCredits": "free" is not standard or unlimited`},
		{"", `spotter.dev/cpu-utilisation: "0"`, `"0" is not a part of the request above 0, such as 0.4 or 40%`},
		{"", `spotter.dev/cpu-utilisation: "half"`, `"half" is not a part of the request above 0`},
		{"", `spotter.dev/cpu-utilisation: "NaN"`, `"NaN" is not a part of the request above 0`},
	} {
		if _, err := Parse("s.yaml", []byte(oneService(x[0], x[1]))); err == nil || !strings.Contains(err.Error(), x[2]) {
			t.Errorf("%q %q: %v, want %q", x[0], x[1], err, x[2])
		}
	}
}

// TestCreditMode: a scenario sets the mode of all burstable types and of no other.
func TestCreditMode(t *testing.T) {
	for mode, want := range map[string][2]bool{"": {true, false}, "standard": {true, true}, "unlimited": {false, false}} {
		sc, err := Parse("s.yaml", []byte(oneService(`, cpuCredits: "`+mode+`"`, "")))
		if err != nil {
			t.Fatal(err)
		}
		w := &BoundScenario{Templates: sc.templates, Types: typesOf("t2.large", "t3.large", "m5.large")}
		w.meterCredits(sc)
		if got := [2]bool{w.Types[0].Credits.Standard, w.Types[1].Credits.Standard}; got != want || w.Types[2].Credits.Standard {
			t.Errorf("%q: standard are %v, want %v", mode, got, want)
		}
		if text := strings.Join(w.Warnings, "\n"); !strings.Contains(text, "to use 31% of the CPU that they request") {
			t.Errorf("%q: no warning says what is assumed: %q", mode, text)
		}
	}
	sc, err := Parse("s.yaml", []byte(oneService("", "")))
	if err != nil {
		t.Fatal(err)
	}
	w := &BoundScenario{Templates: sc.templates, Types: typesOf("t1.micro", "m5.large")}
	if w.meterCredits(sc); len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0],
		"1 instance type shares its processors, such as t1.micro") {
		t.Errorf("it warns of %q", w.Warnings)
	}
}
