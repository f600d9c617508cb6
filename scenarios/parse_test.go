package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// rest is what test cases need to be whole; it follows their input, so that line
// numbers are those of the case.
const rest = `
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec: {duration: 24h}
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: rest}
spec: {backend: {karpenter: {nodeClassName: default}}}
`

// TestParse runs the cases of what a file may hold and what is said of what
// it may not. The argument "alone" leaves out the rest.
func TestParse(t *testing.T) {
	datadriven.Walk(t, "testdata/parse", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text := d.Input
			if !d.HasArg("alone") {
				text += rest
			}
			sc, err := Parse("scenario.yaml", []byte(text))
			if err != nil {
				return err.Error() + "\n"
			}
			return describe(sc)
		})
	})
}

// describe writes what was read, one line for each thing.
func describe(sc *Scenario) string {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %s %v warm-up %v grace %v intensity %v slots %d\n",
		sc.Name, sc.Duration, sc.WarmUp, sc.ReadyGrace, sc.Intensity, sc.Slots)
	for i, f := range sc.faults {
		fmt.Fprintf(&b, "fault %d at %v for %v zone=%q type=%q capacity=%q share=%v factor=%v delay=%v\n",
			f.Kind, sc.faultsAt[i], f.Duration, f.Zone, f.Type, f.Capacity, f.Share, f.Factor, f.Delay)
	}
	for _, g := range sc.gangs() {
		fmt.Fprintf(&b, "gang %s of %d pods, workloads %v, restarts %d, ready in %v, again in %v\n",
			g.Name, g.Size, g.Workloads, g.RestartsMax, g.ReadyTimeout, g.RecoveryTimeout)
	}
	for i := range sc.templates {
		t, l := &sc.templates[i], &sc.loads[i]
		fmt.Fprintf(&b, "%s %s cpu=%d memory=%dMi", l.Kind, t.Name, t.Requests.CPU, t.Requests.Memory>>20)
		if t.Requests.GPU > 0 {
			fmt.Fprintf(&b, " %d %s", t.Requests.GPU, t.GPUResource)
		}
		if l.Job != nil {
			fmt.Fprintf(&b, " pods=%d of %d work=%v checkpoint=%v deadline=%v", l.Job.Pods, l.Job.Completions, l.Job.Work,
				l.Job.Checkpoint, l.Job.Deadline)
		} else {
			fmt.Fprintf(&b, " replicas=%d", l.replicas)
		}
		fmt.Fprintf(&b, " penalty=%gh priority=%d budgets=%v\n", l.OutagePenalty, t.Priority, t.PDBs)
		if l.scaler != nil {
			var steps []string
			midnight := policy.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)) // a Monday
			for _, s := range l.scaler.steps(midnight, midnight, midnight.Add(24*time.Hour)) {
				steps = append(steps, fmt.Sprintf("%s=%d", s.at.Std().Format("15:04:05"), s.value))
			}
			fmt.Fprintf(&b, "  scaled %s\n", strings.Join(steps, " "))
		}
		if l.Expendable {
			b.WriteString("  expendable\n")
		}
		for _, x := range t.Tolerations {
			fmt.Fprintf(&b, "  toleration %+v\n", x)
		}
		for _, v := range t.Volumes {
			fmt.Fprintf(&b, "  volume %+v\n", v)
		}
		for _, x := range t.Spread {
			fmt.Fprintf(&b, "  spread %+v\n", x)
		}
		for _, x := range append(t.PodAffinity, t.PodAntiAffinity...) {
			fmt.Fprintf(&b, "  pod term %+v\n", x)
		}
		for _, x := range t.Affinity {
			fmt.Fprintf(&b, "  node term %+v\n", x)
		}
		for _, x := range t.HostPorts {
			fmt.Fprintf(&b, "  port %+v\n", x)
		}
	}
	for _, w := range sc.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	if sc.Skipped != "" {
		fmt.Fprintf(&b, "%s\n", sc.Skipped)
	}
	return b.String()
}

func TestLoadNotFound(t *testing.T) {
	_, err := Load("web-weak")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `did you mean "web-week"?`) {
		t.Errorf("got %v, want ErrNotFound that names what is embedded", err)
	}
}

// What callers need of a faulty file they get from the type, not the text.
func TestFieldError(t *testing.T) {
	_, err := Parse("w.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicsa: 3\n"))
	var fe *FieldError
	if !errors.As(err, &fe) || fe.Line != 5 || fe.Field != "spec.replicsa" || fe.File != "w.yaml" {
		t.Errorf("got %+v of %v", fe, err)
	}
}

// A faulty file is an error, never a panic: lines of a good one are dropped,
// doubled, moved in or out, or cut off.
func TestParseAnything(t *testing.T) {
	source, err := Source("batch-night")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	rapid.Check(t, func(t *rapid.T) {
		all := slices.Clone(lines)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "line")
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				all = slices.Delete(all, i, i+1)
			case 1:
				all = slices.Insert(all, i, all[i])
			case 2:
				all[i] = "  " + all[i]
			case 3:
				all[i] = strings.TrimPrefix(all[i], "  ")
			case 4:
				all[i] = all[i][:rapid.IntRange(0, len(all[i])).Draw(t, "cut")]
			}
		}
		sc, err := Parse("scenario.yaml", []byte(strings.Join(all, "\n")))
		if err != nil && !strings.HasPrefix(err.Error(), "scenario.yaml:") {
			t.Fatalf("an error without file and line: %v", err)
		}
		if err == nil {
			_ = sc.Validate()
		}
	})
}
