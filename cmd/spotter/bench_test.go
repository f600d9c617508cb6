//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// A cost is what one process took.
type cost struct {
	wall   float64 // in seconds
	cpu    float64 // user and system, in seconds
	rss    float64 // greatest resident size, in MB of 1,000,000 bytes
	events float64 // under the policy; spotter sim also simulates on-demand, whose events do not count
}

// add adds up what processes took, and keeps the greatest size.
func (c *cost) add(d cost) {
	c.wall, c.cpu, c.events, c.rss = c.wall+d.wall, c.cpu+d.cpu, c.events+d.events, max(c.rss, d.rss)
}

var (
	eventsOf = regexp.MustCompile(`over (\d+) events`)
	peakOf   = regexp.MustCompile(`(?m)^VmHWM:\s*(\d+) kB`)
)

// process runs the program as a user does and reads the kernel's account of it.
func process(b *testing.B, args ...string) cost {
	b.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(b.Context(), built(b), args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	began := time.Now()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	resident := watchResident(c.Process.Pid)
	if err := c.Wait(); err != nil {
		b.Fatalf("spotter %s: %v\n%s", cli.Shell(args), err, stderr.String())
	}
	s := c.ProcessState
	got := cost{wall: time.Since(began).Seconds(), cpu: (s.UserTime() + s.SystemTime()).Seconds(), rss: resident()}
	if m := eventsOf.FindStringSubmatch(stdout.String()); m != nil {
		var err error
		if got.events, err = strconv.ParseFloat(m[1], 64); err != nil {
			b.Fatal(err)
		}
	}
	return got
}

// watchResident reads the peak resident size of a process every few milliseconds until the
// function that it returns is called, which returns the peak in MB of 1,000,000 bytes. The peak
// that the kernel reports for a process that has ended is not used: it starts from the size of
// the parent process.
func watchResident(pid int) func() float64 {
	stop, most := make(chan struct{}), make(chan float64)
	go func() {
		kB := 0.0
		for {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may be gone
			if m := peakOf.FindSubmatch(text); m != nil {
				if x, err := strconv.ParseFloat(string(m[1]), 64); err == nil {
					kB = max(kB, x)
				}
			}
			select {
			case <-stop:
				most <- kB * 1024 / 1e6
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() float64 { close(stop); return <-most }
}

// processes runs the program b.N times and reports the means, and the greatest
// size.
func processes(b *testing.B, args ...string) {
	b.Helper()
	built(b) // so that the first turn does not build
	var sum cost
	for b.Loop() {
		sum.add(process(b, args...))
	}
	n := float64(b.N)
	b.ReportMetric(sum.cpu/n, "cpu-s/op")
	b.ReportMetric(sum.rss, "MB")
	if sum.events > 0 {
		b.ReportMetric(sum.events/n, "events/op")
		b.ReportMetric(sum.cpu/sum.events*1e9, "cpu-ns/event")
		b.ReportMetric(sum.events/sum.cpu, "events/cpu-s")
	}
}

// BenchmarkProcessSim measures one run under spotvortex, and of bench-2000 under the policies
// that cost most, too. Bounds on an idle core: bench-500 0.5 CPU-s; bench-2000 2 CPU-s and 140 MB.
func BenchmarkProcessSim(b *testing.B) {
	b.Run("version", func(b *testing.B) { processes(b, "version") })
	for _, name := range []string{"bench-100", "bench-500", "bench-2000"} {
		b.Run(name, func(b *testing.B) { processes(b, "sim", name, "--policy", "spotvortex") })
	}
	for _, spec := range []string{"karpetrack", "rescheduler", "portfolio"} {
		b.Run("bench-2000/"+spec, func(b *testing.B) { processes(b, "sim", "bench-2000", "--policy", spec) })
	}
}

// BenchmarkProcessPolicies measures one run under each policy that costs most and under
// spotvortex, in turn, so that all meet the same machine; x-POLICY is what one costs in
// units of spotvortex. Bound: 1.5 for model.
func BenchmarkProcessPolicies(b *testing.B) {
	specs := []string{"spotvortex", "spotvortex:bundle=builtin", "model:bundle=builtin-actions", "portfolio", "portfolio:bundle=builtin"}
	for _, scenario := range []string{"web-week", "bench-500"} {
		b.Run(scenario, func(b *testing.B) {
			withONNX(b)
			least := make([]float64, len(specs))
			for b.Loop() {
				for i, spec := range specs {
					if c := process(b, "sim", scenario, "--policy", spec); least[i] == 0 || c.cpu < least[i] {
						least[i] = c.cpu
					}
				}
			}
			for i, spec := range specs {
				b.ReportMetric(least[i], spec+"-cpu-s")
				b.ReportMetric(least[i]/least[0], "x-"+spec)
			}
		})
	}
}

// sized writes bench-100 with the given number of nodes and duration, and returns its path. Every
// market has slots for a fortieth of the nodes, about as in bench-2000.
func sized(b *testing.B, nodes int, duration string) string {
	b.Helper()
	text, err := scenarios.Source("bench-100")
	if err != nil {
		b.Fatal(err)
	}
	scenario := string(text)
	for _, x := range [][2]string{
		{"duration: 168h", "duration: " + duration}, {"market: {intensity: 1}",
			fmt.Sprintf("market: {intensity: 1, slots: %d}", max(1, nodes/40))},
	} {
		if !strings.Contains(scenario, x[0]) {
			b.Fatalf("bench-100 has no %q", x[0])
		}
		scenario = strings.Replace(scenario, x[0], x[1], 1)
	}
	scenario = regexp.MustCompile(`(replicas: |\d\d=)\d+`).ReplaceAllStringFunc(scenario, func(x string) string {
		at := strings.LastIndexAny(x, " =") + 1
		n, err := strconv.Atoi(x[at:])
		if err != nil {
			b.Fatal(err)
		}
		return x[:at] + strconv.Itoa(n*nodes/100)
	})
	path := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(path, []byte(scenario), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkProcessLinear measures 100 nodes over five, ten and twenty days: the time per
// event is to stay the same.
func BenchmarkProcessLinear(b *testing.B) {
	for i, duration := range []string{"120h", "240h", "480h"} {
		path := sized(b, 100, duration)
		b.Run(fmt.Sprintf("%dx", 1<<i), func(b *testing.B) { processes(b, "sim", path, "--policy", "spotvortex") })
	}
}

// BenchmarkProcessScale measures a day of 100 to 20,000 nodes under the most expensive policies.
// The time per event must stay the same within 20%, except for the start of the process, which
// dominates the day of 100 nodes.
func BenchmarkProcessScale(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000, 20000} {
		path := sized(b, nodes, "24h")
		for _, spec := range []string{"spotvortex", "portfolio", "karpetrack", "rescheduler"} {
			b.Run(fmt.Sprintf("%d/%s", nodes, spec), func(b *testing.B) { processes(b, "sim", path, "--policy", spec) })
		}
	}
}

// BenchmarkProcessYear measures a year of 1,000 nodes, on prices that are drawn before.
// Bound: 20 CPU-s for each of the two simulations.
func BenchmarkProcessYear(b *testing.B) {
	preset, err := generate.FindPreset("aws-2024")
	if err != nil {
		b.Fatal(err)
	}
	markets, err := preset.Take(600)
	if err != nil {
		b.Fatal(err)
	}
	markets = slices.DeleteFunc(markets, func(m generate.Market) bool { return !strings.HasSuffix(m.Type, ".4xlarge") }) // 16 vCPU, as the pool wants
	begin := preset.Begin()
	prices, err := generate.Generate(generate.Config{Seed: 1, From: begin, To: begin.Add(366 * 24 * time.Hour),
		Markets: markets, Law: preset.Law})
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "year")
	if err := trace.Write(dir, prices); err != nil {
		b.Fatal(err)
	}
	processes(b, "sim", sized(b, 1000, "8760h"), "--trace", dir, "--policy", "spotvortex")
}

// BenchmarkProcessEval measures 100 seeds of three policies over a week of 100
// nodes on all cores. Bound on two cores: 60 s.
func BenchmarkProcessEval(b *testing.B) {
	args := []string{"eval", "bench-100", "--policies", "on-demand,static,spotvortex", "--seeds", "100", "--format", "csv"}
	processes(b, args...)
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "wall-s/op")
}

// BenchmarkProcessEvalShards measures what a comparison costs on one core, and what a second core
// and a second machine gain. x-parts is its CPU-seconds divided by those of the more expensive of
// its two parts plus those of the merge. x-core is its speedup with a second core, and x-cpu the
// ratio of its CPU-seconds with two cores and one. Bounds: 0.2 cpu-s/run, x-parts at least 1.8,
// x-core at least 1.9, x-cpu at most 1.05.
func BenchmarkProcessEvalShards(b *testing.B) {
	const seeds, policies = 20, 6 // with on-demand and karpenter, which are always run
	args := []string{"eval", "web-week", "--policies", "spot,static,spotvortex,portfolio", "--seeds", strconv.Itoa(seeds)}
	on := func(cores int, args ...string) cost {
		b.Setenv("GOMAXPROCS", strconv.Itoa(cores))
		return process(b, args...)
	}
	var one, two cost
	var parts float64
	for b.Loop() {
		dir := b.TempDir()
		out := filepath.Join(dir, "whole.json")
		one.add(on(1, append(args, "--out", out)...))
		two.add(on(2, append(args, "--out", out)...))
		dearer := 0.0
		for _, share := range []string{"1/2", "2/2"} {
			dearer = max(dearer, on(1, append(args, "--shard", share, "--out", dir+"/")...).cpu)
		}
		parts += dearer + on(1, "eval", "merge", dir, "--out", filepath.Join(dir, "merged.json")).cpu
	}
	b.ReportMetric(one.cpu/float64(b.N*seeds*policies), "cpu-s/run")
	b.ReportMetric(one.cpu/parts, "x-parts")
	b.ReportMetric(one.wall/two.wall, "x-core")
	b.ReportMetric(two.cpu/one.cpu, "x-cpu")
	b.ReportMetric(two.rss, "MB")
}
