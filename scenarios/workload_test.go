package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Releases are within the warm-up and the window, the end excluded; a job without a CronJob is
// released when metering starts.
func TestBindJobs(t *testing.T) {
	sc := parse(t, "{}", `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nine, annotations: {spotter.dev/duration: 1h}}
spec: {schedule: "0 */9 * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: main}]}}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: tokyo, annotations: {spotter.dev/duration: 1h}}
spec: {schedule: "0 9 * * *", timeZone: Asia/Tokyo, jobTemplate: {spec: {template: {spec: {containers: [{name: main}]}}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: paused, annotations: {spotter.dev/duration: 1h}}
spec: {schedule: "0 9 * * *", suspend: true, jobTemplate: {spec: {template: {spec: {containers: [{name: main}]}}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, annotations: {spotter.dev/duration: 1h}}
spec: {template: {spec: {containers: [{name: main}]}}}
`)
	w := bind(t, sc, fourDays(series("a", "m5.large", []policy.Time{0}, 1)), BindOptions{Window: 1})
	got := map[string][]policy.Time{}
	for i, l := range w.Workloads {
		if l.Job != nil {
			for _, r := range l.Job.Releases {
				got[l.Name] = append(got[l.Name], (r-newDay)/hours)
			}
		}
		if w.Templates[i].Workload != l.ID || w.Templates[i].Name != l.Name {
			t.Errorf("template %d is of %q, workload %q", i, w.Templates[i].Name, l.Name)
		}
	}
	want := map[string][]policy.Time{"default/nine": {18, 24, 33, 42}, "default/tokyo": {24}, "default/once": {24}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("released at hours %v, want %v", got, want)
	}
}

// What is on the disk of its node is noted: the Cluster Autoscaler leaves such pods
// where they are. Memory is no disk.
func TestLocalStorage(t *testing.T) {
	for volumes, want := range map[string]bool{
		"[]":                                false,
		"[{name: a, emptyDir: {}}]":         true,
		"[{name: a, hostPath: {path: /a}}]": true,
		"[{name: a, emptyDir: {medium: Memory}}, {name: b, configMap: {name: c}}]": false,
	} {
		sc := parse(t, "{families: [m5]}", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: thumbnails, namespace: web}
spec:
  selector: {matchLabels: {app: thumbnails}}
  template:
    metadata: {labels: {app: thumbnails}}
    spec:
      containers: [{name: main, image: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]
      volumes: `+volumes+`
`)
		for i := range sc.loads {
			if l := &sc.loads[i]; l.Name == "web/thumbnails" && l.LocalStorage != want {
				t.Errorf("volumes %s: local storage %v, want %v", volumes, l.LocalStorage, want)
			}
		}
		if len(sc.Warnings) > 0 {
			t.Errorf("volumes %s: warnings %q", volumes, sc.Warnings)
		}
	}
}

// TestDoNotDisrupt reads the annotation of pods as a duration from their start; what Karpenter
// ignores is a warning.
func TestDoNotDisrupt(t *testing.T) {
	const text = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {karpenter.sh/do-not-disrupt: "%s"}}
    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {duration: 24h}
`
	for value, want := range map[string]struct {
		protects bool
		lasts    time.Duration
		warned   bool
	}{"true": {true, 0, false}, "false": {}, "90m": {true, 90 * time.Minute, false}, "soon": {warned: true}, "-1h": {warned: true}} {
		sc, err := Parse("s.yaml", fmt.Appendf(nil, text, value))
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(sc.Warnings, func(w string) bool {
			return strings.Contains(w,
				"default/db: karpenter.sh/do-not-disrupt: ")
		})
		if w := &sc.loads[0]; w.DoNotDisrupt != want.protects || w.ProtectedFor != want.lasts || warned != want.warned {
			t.Errorf("%q: protects %v for %v, warnings %q, want %+v", value, w.DoNotDisrupt, w.ProtectedFor, sc.Warnings, want)
		}
	}
}
