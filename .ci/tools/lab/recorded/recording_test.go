package recorded

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy/policytest"
)

// drawn returns a recording of tasks and of services without names. Few shapes
// and instants are drawn, so that many are equal.
func drawn(t *rapid.T) *recording {
	r := &recording{end: 10 * day}
	shapes := rapid.Custom(func(t *rapid.T) shape {
		return shape{
			cpu: rapid.SampledFrom([]int64{100, 110, 1000, 3152, 64000}).Draw(t, "cpu"), memory: rapid.Int64Range(1, 9).Draw(t, "memory") << 10,
			gpu: rapid.Int64Range(0, 2).Draw(t, "gpu"),
		}
	})
	for range rapid.IntRange(1, 60).Draw(t, "tasks") {
		r.tasks = append(r.tasks, task{
			shape: shapes.Draw(t, "shape"), class: class(rapid.IntRange(0, 2).Draw(t, "class")),
			at:    time.Duration(rapid.IntRange(0, 20).Draw(t, "at")) * time.Hour,
			work:  time.Duration(rapid.IntRange(1, 100_000).Draw(t, "work")) * time.Second,
			count: rapid.IntRange(1, 9).Draw(t, "count"),
		})
	}
	slices.SortStableFunc(r.tasks, func(a, b task) int { return int(a.at - b.at) })
	for range rapid.IntRange(0, 30).Draw(t, "services") {
		from := time.Duration(rapid.IntRange(0, 100).Draw(t, "from")) * time.Minute
		r.services = append(r.services, service{
			shape: shapes.Draw(t, "shape"), class: classHigh,
			changes: []change{{from, 1}, {from + time.Duration(rapid.IntRange(1, 1000).Draw(t, "stay"))*time.Minute, 0}},
		})
	}
	return r
}

// A total is what grouping must keep.
type total struct {
	pods               int
	hours, cores, gigs float64
	at                 map[time.Duration]int // pods of jobs by their release
}

func (x *total) add(s shape, hours float64) {
	x.hours += hours
	x.cores += hours * float64(s.cpu)
	x.gigs += hours * float64(s.memory)
}

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Max(a, b)+1e-9 }

// TestGroupKeeps: however coarse, grouping keeps the pods, their instants and, except for
// rounding, their hours and their requests; and there are no more groups than allowed.
func TestGroupKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		before, after := total{at: map[time.Duration]int{}}, total{at: map[time.Duration]int{}}
		for _, x := range r.tasks {
			before.pods += x.count
			before.at[x.at] += x.count
			before.add(x.shape, x.work.Hours()*float64(x.count))
		}
		for _, s := range r.services {
			before.add(s.shape, podHours(s.changes, 0, horizon))
		}
		most := rapid.IntRange(1, 120).Draw(t, "most")
		jobs, coarse, err := r.group(most)
		if err != nil {
			if most >= 12 { // three classes by three numbers of GPUs, and services by as many
				t.Fatal(err)
			}
			return
		}
		if n := len(jobs) + len(r.services); n > most {
			t.Fatalf("%d groups, at most %d are allowed", n, most)
		}
		for _, j := range jobs {
			after.pods += j.pods
			n := 0
			for _, x := range j.releases {
				after.at[x.at] += x.count
				n += x.count
			}
			if n != j.pods {
				t.Fatalf("%d pods are released of %d", n, j.pods)
			}
			after.add(j.shape, j.work.Hours()*float64(j.pods))
		}
		for _, s := range r.services {
			after.add(s.shape, podHours(s.changes, 0, horizon))
		}
		if before.pods != after.pods || fmt.Sprint(before.at) != fmt.Sprint(after.at) {
			t.Fatalf("%s: before %+v, after %+v", coarse, before, after)
		}
		// Running times are rounded to a millisecond, which is most of the shortest, a second;
		// requests are rounded up to a whole unit, which is most of the least.
		if !near(before.hours, after.hours, 0.0005) || !near(before.cores, after.cores, 0.01) || !near(before.gigs, after.gigs, 0.0015) {
			t.Fatalf("%s: before %+v, after %+v", coarse, before, after)
		}
	})
}

// A pod that stays under one scale stays under a larger one, one is the
// recording itself, and on the whole the share is right.
func TestThin(t *testing.T) {
	counts := func(scale float64) []int {
		r := &recording{}
		for range 4000 {
			r.tasks = append(r.tasks, task{count: 1})
		}
		o := DefaultOptions()
		o.Scale = scale
		r.thin(&o)
		out := make([]int, len(r.tasks))
		for i := range r.tasks {
			out[i] = r.tasks[i].count
		}
		return out
	}
	before := counts(0.05)
	for _, scale := range []float64{0.05, 0.3, 1, 2.5} {
		now, sum := counts(scale), 0
		for i, n := range now {
			sum += n
			if n < before[i] {
				t.Fatalf("pod %d is %d at scale %g and %d below it", i, n, scale, before[i])
			}
		}
		if got := float64(sum) / 4000; math.Abs(got-scale) > 0.03 || scale == 1 && got != 1 {
			t.Errorf("scale %g gives %g", scale, got)
		}
		before = now
	}
}

func TestBusiest(t *testing.T) {
	r := &recording{end: 5*day + time.Hour, tasks: []task{
		{shape: shape{cpu: 1000}, at: time.Hour, work: time.Hour, count: 3},
		{shape: shape{cpu: 1000}, at: 2*day + 23*time.Hour, work: 4 * time.Hour, count: 1}, // an hour on this day, three on the next
		{shape: shape{cpu: 4000}, at: 5 * day, work: time.Hour, count: 1},
	}}
	for length, want := range map[time.Duration]time.Duration{day: 5 * day, 2 * day: 2 * day, 3 * day: 3 * day, 6 * day: 0} {
		if got := r.busiest(length); got != want {
			t.Errorf("the busiest %v begin at %v, want %v", length, got, want)
		}
	}
}

// rows reads a recorded table as maps, in the plainest way.
func rows(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(policytest.Recording(t, "workload/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	c := csv.NewReader(in)
	header, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]string
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{}
		for i, name := range header {
			m[name] = row[i]
		}
		all = append(all, m)
	}
}

func float(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Every scheduled pod of the list is either a pod of a service, a pod of a job
// or counted as left out; and the hours are those of the list.
func TestRecordedOpenB(t *testing.T) {
	const name = "openb_pod_list_default.csv"
	jobs, hours := 0, 0.0
	for _, m := range rows(t, name) {
		if m["scheduled_time"] == "" || m["deletion_time"] == "" || m["scheduled_time"] == m["deletion_time"] {
			continue
		}
		if m["qos"] != "LS" {
			jobs++
			hours += (float(t, m["deletion_time"]) - float(t, m["scheduled_time"])) / 3600
		}
	}
	o := DefaultOptions()
	path := policytest.Recording(t, "workload/"+name)
	r, _, err := read([]string{path}, &o)
	if err != nil {
		t.Fatal(err)
	}
	r.clip(0, r.end+day)
	made, _, err := r.group(60)
	if err != nil {
		t.Fatal(err)
	}
	pods, got := 0, 0.0
	for _, j := range made {
		pods += j.pods
		got += j.work.Hours() * float64(j.pods)
	}
	if pods != jobs || !near(got, hours, 1e-4) {
		t.Errorf("%d pods of jobs for %.1f h, the list has %d for %.1f h", pods, got, jobs, hours)
	}
}

// At each hour of a month there are as many replicas as machines were counted.
func TestRecordedDemand(t *testing.T) {
	const name = "snowflake_vm_demand_2021-02_2022-12.csv.gz"
	begin := time.Date(2022, 3, 1, 0, 0, 0, 0, time.UTC)
	want := make([]int, 31*24)
	for _, m := range rows(t, name) {
		at, err := time.Parse("2006-01-02 15:04:05.000", m["USAGE_HOUR"])
		if err != nil {
			t.Fatal(err)
		}
		if k := int(at.Sub(begin).Hours()); k >= 0 && k < len(want) {
			want[k] += int(float(t, m["NORM_USAGE"]))
		}
	}
	o := DefaultOptions()
	o.From, o.Days = "2022-03-01", 31
	r, _, err := read([]string{policytest.Recording(t, "workload/"+name)}, &o)
	if err != nil {
		t.Fatal(err)
	}
	from, length, err := r.window(&o)
	if err != nil {
		t.Fatal(err)
	}
	r.clip(from, length)
	got := make([]int, len(want))
	for _, s := range r.services {
		for k := range got {
			for i := len(s.changes) - 1; i >= 0; i-- {
				if s.changes[i].at <= time.Duration(k)*time.Hour {
					got[k] += s.changes[i].pods
					break
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Every recorded workload becomes a scenario, and the same bytes each time.
func TestRecordedAll(t *testing.T) {
	for name, o := range map[string]Options{
		"openb_pod_list_default.csv":                 {Format: FormatOpenB},
		"snowflake_vm_demand_2021-02_2022-12.csv.gz": {Format: FormatSnowflake, Scale: 0.1},
		"alibaba_v2017_batch_sample_cloudsimpy.csv":  {Format: FormatBatch, Scale: 0.01},
		"AzureLLMInferenceTrace_conv.csv":            {Format: FormatRequests},
		"simkube_large_trace.json":                   {Format: FormatSimKube},
		"simkube_traces/bare-pods.sktrace":           {Format: FormatSimKube},
		"simkube_traces/cronjob.sktrace":             {Format: FormatSimKube},
		"simkube_traces/dsb-scaling.sktrace":         {Format: FormatSimKube},
	} {
		t.Run(name, func(t *testing.T) {
			all := DefaultOptions()
			if o.Scale > 0 {
				all.Scale = o.Scale
			}
			all.WorkloadsMax = 40
			path := policytest.Recording(t, "workload/"+name)
			res, err := Convert([]string{path}, all)
			if err != nil {
				t.Fatal(err)
			}
			if res.Format != o.Format || res.Services+res.Jobs == 0 || res.Services+res.Jobs > 40 {
				t.Errorf("%s with %d services and %d jobs", res.Format, res.Services, res.Jobs)
			}
			again, err := Convert([]string{path}, all)
			if err != nil || string(again.YAML) != string(res.YAML) {
				t.Errorf("a second time it is another scenario, or %v", err)
			}
		})
	}
}

// The trace says how the deployments were scaled; so does the scenario.
func TestRecordedSimKube(t *testing.T) {
	res, err := Convert([]string{policytest.Recording(t, "workload/simkube_traces/dsb-scaling.sktrace")}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if want := "+0s=1 +9m8s=4 +9m23s=6 +18m54s=2\n  name: compose-post-service\n"; !strings.Contains(string(res.YAML), want) {
		t.Errorf("%q is not in the scenario", want)
	}
	if res, err = Convert([]string{policytest.Recording(t, "workload/simkube_traces/cronjob.sktrace")}, DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	if want := "spotter.dev/duration: 30s\n    spotter.dev/releases: 37s 1m37s 2m37s\n"; !strings.Contains(string(res.YAML), want) {
		t.Errorf("%q is not in the scenario:\n%s", want, res.YAML)
	}
}
