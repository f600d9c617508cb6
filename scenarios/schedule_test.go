package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

func at(t *testing.T, text string) policy.Time {
	t.Helper()
	x, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return policy.TimeOf(x)
}

// 2026-01-02 is a Friday. Of Friday's 20:00=6 the number stays over midnight
// until Saturday's change; Monday's 00:00=4 ends the weekend.
func TestReplicaSchedule(t *testing.T) {
	s, err := parseReplicaSchedule("00:00=4 08:00=12 20:00=6; sat,sun 06:30=3")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range s.steps(at(t, "2026-01-02 09:15"), at(t, "2026-01-03 09:15"), at(t, "2026-01-05 08:00")) {
		got = append(got, step.at.Std().Format("Mon15:04=")+string(rune('0'+step.value%10)))
	}
	want := "Fri09:15=2 Fri20:00=6 Sat06:30=3 Mon00:00=4"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func TestReplicaScheduleWeekly(t *testing.T) {
	s, err := parseReplicaSchedule("wed 12:00=9")
	if err != nil {
		t.Fatal(err)
	}
	steps := s.steps(at(t, "2026-01-06 00:00"), at(t, "2026-01-06 00:00"), at(t, "2026-01-20 00:00"))
	if len(steps) != 1 || steps[0].value != 9 {
		t.Errorf("a number set once a week holds from the week before; got %v", steps)
	}
}

func TestReplicaScheduleErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "a part is empty",
		"00:00=4;":               "a part is empty",
		"sat":                    "no changes",
		"sa 00:00=1":             `"sa" is not a day`,
		"mon-fry 00:00=1":        `"mon-fry" is not a day`,
		"00:00=4; 01:00=5":       "two parts name no days",
		"sat 00:00=4; sat 1:0=5": `"1:0=5" is not of the form`,
		"sat,sat 00:00=4":        "sat is named twice",
		"24:00=4":                "not of the form",
		"08:00=-1":               "not a number of replicas",
		"08:00=many":             "not a number of replicas",
		"08:00=99999999999":      "not a number of replicas",
		"08:00=4 08:00=5":        "not later",
		"08:00=4 07:00=5":        "not later",
		"08:00 4":                "not of the form",
		"+":                      `"+" is not of the form +26h30m=12`,
		"+1h=4 2h=5":             `"2h=5" is not of the form`,
		"+1h=4 +-2h=5":           "not of the form",
		"+1h=4 +60m=5":           "not later",
		"+1h=-4":                 "not a number of replicas",
		"+1h=100001":             "more than 100000",
		"+99999h=1":              "not of the form",
	} {
		if _, err := parseReplicaSchedule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestReplicaScheduleMost(t *testing.T) {
	for _, text := range []string{"08:00=100000", "+1h=100000", "00:00=0"} {
		if _, err := parseReplicaSchedule(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Steps begin at the start, rise in time, stop before the end, and never repeat a number; a window
// that starts later has the same numbers.
func TestReplicaStepsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{
			"00:00=4 08:00=12 20:00=6", "mon-fri 07:00=9 19:00=2; 10:00=3", "+0s=2 +90m=7 +30h=7 +31h=0", "+5h=1 +9h=4", "sun-tue 23:59=1; wed,thu 00:00=5 00:01=6; 12:00=0",
		}).Draw(t, "schedule")
		s, err := parseReplicaSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		const hour = policy.Time(3_600_000)
		from := policy.Time(1_767_225_600_000) + policy.Time(rapid.Int64Range(0, 400).Draw(t, "from"))*hour/3
		to := from + policy.Time(rapid.Int64Range(1, 400).Draw(t, "hours"))*hour
		later := from + (to-from)/2
		whole, half := s.steps(from, from, to), s.steps(later, from, to)
		for i, step := range whole {
			if i == 0 && step.at != from || step.at >= to || i > 0 && (step.at <= whole[i-1].at || step.value == whole[i-1].value) {
				t.Fatalf("steps %v from %v to %v", whole, from, to)
			}
		}
		for probe := later; probe < to; probe += hour / 2 {
			if a, b := replicasAt(whole, probe), replicasAt(half, probe); a != b {
				t.Fatalf("at %v: %d seen from %v, %d seen from %v", probe, a, from, b, later)
			}
		}
	})
}

func replicasAt(steps []scheduleStep, at policy.Time) int64 {
	n := steps[0].value
	for _, s := range steps {
		if s.at <= at {
			n = s.value
		}
	}
	return n
}

// Since the start, a schedule is the same in every window, whatever the day;
// before its first change the number of that change holds.
func TestReplicaScheduleSinceStart(t *testing.T) {
	s, err := parseReplicaSchedule("+1h=3 +2h=3 +26h30m=12 +50h=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{"2026-01-02 00:00", "2026-03-09 17:45"} {
		begin := at(t, start)
		var got []string
		for _, step := range s.steps(begin.Add(-24*time.Hour), begin, begin.Add(48*time.Hour)) {
			got = append(got, step.at.Sub(begin).String()+"="+string(rune('0'+step.value%10)))
		}
		if want := "-24h0m0s=3 26h30m0s=2"; strings.Join(got, " ") != want {
			t.Errorf("from %s: got %s, want %s", start, strings.Join(got, " "), want)
		}
	}
}

func TestReleases(t *testing.T) {
	all, err := parseReleases("0s 90s 26h*3")
	if err != nil {
		t.Fatal(err)
	}
	start := at(t, "2026-01-02 00:00")
	var got []string
	for _, x := range instants(all, start.Add(-time.Hour), start, start.Add(27*time.Hour)) {
		got = append(got, x.Sub(start).String())
	}
	if want := "0s 1m30s 26h0m0s 26h0m0s 26h0m0s"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if cut := instants(all, start, start, start.Add(26*time.Hour)); len(cut) != 2 {
		t.Errorf("%d releases before the end, want 2: one at the end itself is none of the run", len(cut))
	}
	for text, want := range map[string]string{
		"":               "names no time",
		"1h -2h":         "not a time since the start",
		"soon":           "not a time since the start",
		"1h 1h":          "several at once as 26h*3",
		"2h 1h":          "not later",
		"1h*0":           "not a number of instances",
		"1h*":            "not a number of instances",
		"0s*999999 1s*2": "more than 1000000",
	} {
		if _, err := parseReleases(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

// TestRollouts reads when a Deployment is rolled out, and refuses what rolls nothing out.
func TestRollouts(t *testing.T) {
	deployment := func(kind, times string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: shop, annotations: {spotter.dev/rollouts: \"" + times + "\"}}\n" +
			"spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main}]}}}\n"
	}
	w := bind(t, parse(t, "{}", deployment("Deployment", "5m 1h")), fourDays(series("a", "m5.large", []policy.Time{0},
		1)), BindOptions{Window: 1})
	i := slices.IndexFunc(w.Workloads, func(x Workload) bool { return x.Name == "default/shop" })
	if got := w.Workloads[i].Rollouts; len(got) != 2 || got[1].Sub(w.Start) != time.Hour {
		t.Errorf("rolled out at %v", got)
	}
	for text, want := range map[string]string{deployment("Deployment", "5m*2"): "rolled out once",
		deployment("StatefulSet", "5m"): "means nothing for a StatefulSet", deployment("Deployment", "soon"): "not a time"} {
		if _, err := Parse("x.yaml",
			[]byte("apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec: {duration: 2h}\n---\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
