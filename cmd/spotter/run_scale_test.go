//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/test/testenv"
)

// How a run at scale is measured.
const (
	scaleSteps = 110
	scaleMoves = 200 // steps of a run that moves nodes: at least ten minutes
	scaleEvery = 3 * time.Second
	scaleMax   = 20 * time.Minute
	scaleAim   = 100 * time.Millisecond // of a step
)

// A scaleCase is one run that is measured.
type scaleCase struct {
	name, policies, mode string
	steps                int
	large                bool // it is also taken at more than a thousand nodes
}

// Half of the nodes stand on demand at first, and none is much more than half full, so
// that an active portfolio has much to move for the whole of its run.
var scaleCases = []scaleCase{
	{"portfolio/shadow", "portfolio", "shadow", scaleSteps, true},
	{"portfolio/active", "portfolio", "active", scaleMoves, true},
	{"spotvortex/shadow", "spotvortex", "shadow", scaleSteps, false},
	{"spotvortex/active", "spotvortex", "active", scaleSteps, false},
}

// BenchmarkProcessRun measures `spotter run` against a real API server: a thousand nodes and ten
// thousand pods under two policies in both modes, and five times as many under one. It has the
// prices of about three hundred Spot markets, replaces one pod in a hundred per minute, and takes
// a step every three seconds, more often than any event that can wait requires. Aims: at a
// thousand nodes a step takes at most 100 ms (p99) and the process has 250 MB, at five thousand 1
// s and 1 GB. [BenchmarkStep] measures the part that needs no API server.
//
// A step lasts from observing to writing the status of pools. It includes waiting for the API
// server, so its time depends on the machine and on its other load; the CPU time of the process
// per step depends on them less. The time to maintain the backends between steps, the time until
// a step has decided, and the time of a step outside all of its phases are reported separately.
// The steady figures are of the steps after the first minute, in which missing objects are
// created; the writes per second are of the same time. All other figures are of the whole run,
// including the first step.
//
// The program is SPOTTER=FILE if that is set; otherwise it is built. With SPOTTER_PROFILE=DIR,
// CPU and heap profiles are written to DIR. SPOTTER_NODES=N and SPOTTER_STEPS=N set another size
// of the cluster and length of the runs: the proportions of a step hold for those too, but the
// aims do not. With SPOTTER_BUDGETS=N there are N GPUBudgets, all in one namespace.
func BenchmarkProcessRun(b *testing.B) {
	sizes := []int{1000, 5000}
	if n := scaleOf(b, "SPOTTER_NODES", scalePools*scaleReplicas/scalePerNode); n > 0 {
		sizes = []int{n}
	}
	steps := scaleOf(b, "SPOTTER_STEPS", 2*int(time.Minute/scaleEvery)) // the first minute is not steady
	for _, nodes := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := newScaleCluster(b, size{nodes: nodes, perNode: scalePerNode, budgets: scaleOf(b, "SPOTTER_BUDGETS", 1)})
			prices := scaleTrace(b)
			for _, x := range scaleCases {
				if nodes > 1000 && !x.large {
					continue
				}
				if steps > 0 {
					x.steps = steps
				}
				b.Run(x.name, func(b *testing.B) {
					for b.Loop() {
						c.measure(b, prices, &x)
					}
				})
			}
		})
	}
}

// scaleOf returns the number that a variable of the environment sets, 0 where none is.
func scaleOf(b *testing.B, variable string, least int) int {
	b.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		b.Fatalf("%s=%s is no number of at least %d", variable, text, least)
	}
	return n
}

// A scaleStep is one step as the log has it.
type scaleStep struct {
	took   time.Duration
	phases map[string]time.Duration
}

// untimed returns what of a step is in none of its phases.
func (x scaleStep) untimed() time.Duration {
	left := x.took
	for _, took := range x.phases {
		left -= took
	}
	return left
}

// A scaleRun is a process that is measured, and what its log has.
type scaleRun struct {
	cmd     *exec.Cmd
	metrics string
	pprof   string

	mu    sync.Mutex
	steps []scaleStep
	plans map[string]int // entries of plans by kind
	tail  []string
	done  chan struct{}
}

// follow takes the log of the process, line by line.
func (r *scaleRun) follow(log io.Reader) {
	defer close(r.done)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x struct {
			Msg, Level               string
			Took                     time.Duration
			Steers, Launches, Drains int
			Phases                   map[string]time.Duration
		}
		r.mu.Lock()
		err := json.Unmarshal(lines.Bytes(), &x)
		switch {
		case err == nil && x.Msg == "step":
			r.steps = append(r.steps, scaleStep{x.Took, x.Phases})
			r.plans["launches"] += x.Launches
			r.plans["drains"] += x.Drains
		case err != nil || x.Level != "INFO":
			r.tail = append(r.tail, lines.Text())
		}
		r.mu.Unlock()
	}
}

func (r *scaleRun) counted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steps)
}

// measure runs the program until it has taken enough steps, and reports what it took.
func (c *scaleCluster) measure(b *testing.B, prices string, x *scaleCase) {
	before := c.names(b)
	r := c.startRun(b, prices, x)
	stop := c.play(b)
	defer stop()
	begun := time.Now()
	r.await(b, 1)
	ready := time.Since(begun)
	time.Sleep(time.Until(begun.Add(ready + time.Minute)))
	first, from, mark := r.usage(b), time.Now(), c.env.Mark()
	writes, counted := r.writes(b), r.counted()
	r.await(b, x.steps/2)
	r.profile(b, strings.ReplaceAll(x.name, "/", "-"))
	r.await(b, x.steps)
	last, took := r.usage(b), time.Since(from)
	writes, counted = r.writes(b)-writes, r.counted()-counted
	phases, written := r.phases(b), c.written(b, mark, "spotter")
	b.ReportMetric(float64(c.replaced(b, before)), "nodes-moved")
	r.end(b)
	b.ReportMetric(0, "ns/op")
	r.report(b, len(r.steps)-counted)
	b.Logf("%s: ready after %v; %d steps, on average %s; over the last %d, %v: %v planned, written: %s; complaints: %d\n%s", x.name,
		ready.Round(time.Millisecond), len(r.steps), phases, counted, took.Round(time.Second), r.plans, written, len(r.tail),
		strings.Join(r.tail[:min(len(r.tail), 3)], "\n")) // of more than ten lines the testing package cuts what is left
	b.ReportMetric(last.peak, "MB-peak")
	b.ReportMetric(last.resident, "MB-end")
	b.ReportMetric(last.mapped, "MB-mapped")
	b.ReportMetric(1000*(last.cpu-first.cpu)/float64(counted), "cpu-ms/step")
	b.ReportMetric((last.cpu-first.cpu)/took.Hours(), "cpu-s/h")
	b.ReportMetric(writes/took.Seconds(), "writes/s")
}

// report prints what steps took, what passed until they had decided, and of the longest
// steps what they took that long for.
// The steps from steady on are also printed by themselves.
func (r *scaleRun) report(b *testing.B, steady int) {
	b.Helper()
	slowest := slices.Clone(r.steps)
	slices.SortFunc(slowest, func(x, y scaleStep) int { return cmp.Compare(y.took, x.took) })
	for _, x := range slowest[:min(3, len(slowest))] {
		b.Logf("among the longest steps: %v, of which %v", x.took, x.phases)
	}
	took := func(x scaleStep) time.Duration { return x.took }
	decided := func(x scaleStep) time.Duration {
		return x.phases["observe"] + x.phases["forecast"] + x.phases["decide"]
	}
	for name, of := range map[string]func(scaleStep) time.Duration{"": took, "decided-": decided} {
		b.ReportMetric(quantileOf(r.steps, of, 0.5), name+"p50-ms")
		b.ReportMetric(quantileOf(r.steps, of, 0.99), name+"p99-ms")
	}
	b.ReportMetric(quantileOf(r.steps, took, 1), "max-ms")
	b.ReportMetric(quantileOf(r.steps, scaleStep.untimed, 1), "untimed-max-ms")
	b.ReportMetric(quantileOf(r.steps[steady:], took, 0.99), "steady-p99-ms")
	b.ReportMetric(quantileOf(r.steps[steady:], took, 1), "steady-max-ms")
	within := 0
	for _, x := range r.steps {
		if x.took <= scaleAim {
			within++
		}
	}
	b.ReportMetric(100*float64(within)/float64(len(r.steps)), "%-within-aim")
}

// quantileOf returns a quantile of what steps took, in milliseconds.
func quantileOf(steps []scaleStep, of func(scaleStep) time.Duration, q float64) float64 {
	all := make([]time.Duration, len(steps))
	for i, x := range steps {
		all[i] = of(x)
	}
	slices.Sort(all)
	return float64(all[int(math.Ceil(q*float64(len(all))))-1].Microseconds()) / 1000
}

// end asks the process to end.
func (r *scaleRun) end(b *testing.B) {
	b.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	<-r.done
	if err := r.cmd.Wait(); err != nil {
		b.Errorf("asked to end it says %v", err)
	}
}

// startRun starts the program as a user does.
func (c *scaleCluster) startRun(b *testing.B, prices string, x *scaleCase) *scaleRun {
	b.Helper()
	namespace := "spotter-" + strings.ReplaceAll(x.name, "/", "-")
	c.makeSpace(b, namespace)
	return c.startAs(b, "spotter", nil, "namespace: "+namespace, "mode: "+x.mode, "policies: "+x.policies,
		"prices: {trace: "+prices+"}", "stepInterval: "+scaleEvery.String())
}

func (c *scaleCluster) makeSpace(b *testing.B, name string) {
	b.Helper()
	if err := c.client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		b.Fatal(err)
	}
}

// startAs starts the program with settings as a user of the API server. Its environment is that
// of the test and env.
func (c *scaleCluster) startAs(b *testing.B, user string, env []string, settings ...string) *scaleRun {
	b.Helper()
	access := testenv.Kubeconfig(b, c.env.User(b, user, allRules))
	address, profiler := testenv.FreeAddress(b), testenv.FreeAddress(b)
	r := &scaleRun{metrics: "http://" + address + "/metrics", pprof: "http://" + profiler + "/debug/pprof/",
		plans: map[string]int{}, done: make(chan struct{})}
	settings = append(slices.Clone(settings), "metrics: {bindAddress: '"+address+"', secure: false}",
		"pprof: {bindAddress: '"+profiler+"'}", "logging: {format: json}")
	r.cmd = exec.CommandContext(b.Context(), built(b), "run", "--kubeconfig", access, "--config", configured(b, settings...))
	r.cmd.Env = append(os.Environ(), env...)
	log, err := r.cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.cmd.Process.Kill() })
	go r.follow(log)
	return r
}

// await waits until the given number of steps were taken.
func (r *scaleRun) await(b *testing.B, steps int) {
	b.Helper()
	for end := time.Now().Add(scaleMax); r.counted() < steps; time.Sleep(20 * time.Millisecond) {
		select {
		case <-r.done:
			b.Fatalf("it ended after %d steps:\n%s", r.counted(), strings.Join(r.tail, "\n"))
		default:
		}
		if time.Now().After(end) {
			b.Fatalf("%d steps of %d within %v", r.counted(), steps, scaleMax)
		}
	}
}

// A scaleUsage is what the kernel says of a process: seconds of processor, and MB of
// 1,000,000 bytes now and at most. Of those now, mapped are pages of the program's file,
// which the kernel takes back when it needs them.
type scaleUsage struct{ cpu, resident, mapped, peak float64 }

var residentOf = regexp.MustCompile(`(?m)^(VmHWM|VmRSS|RssFile):\s+(\d+) kB$`)

func (r *scaleRun) usage(b *testing.B) (u scaleUsage) { return usageOf(b, r.cmd.Process.Pid) }

func usageOf(b *testing.B, pid int) (u scaleUsage) {
	b.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range residentOf.FindAllStringSubmatch(string(status), -1) {
		kb, _ := strconv.ParseFloat(m[2], 64)
		switch m[1] {
		case "VmHWM":
			u.peak = kb * 1024 / 1e6
		case "RssFile":
			u.mapped = kb * 1024 / 1e6
		default:
			u.resident = kb * 1024 / 1e6
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the name may hold spaces
	fields := strings.Fields(string(rest))
	for _, f := range fields[11:13] { // user and system, in ticks of which Linux has 100 a second
		ticks, _ := strconv.ParseFloat(f, 64)
		u.cpu += ticks / 100
	}
	return u
}

var writesOf = regexp.MustCompile(`(?m)^spotter_api_writes_total\{verb="(\w+)"\} (\S+)$`)

// writes returns how often the process has written to the API server, leases included.
func (r *scaleRun) writes(b *testing.B) (sum float64) {
	b.Helper()
	for _, m := range writesOf.FindAllStringSubmatch(string(r.fetch(b, r.metrics)), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}

var phasesOf = regexp.MustCompile(`(?m)^spotter_step_phase_duration_seconds_(sum|count)\{phase="(\w+)"\} (\S+)$`)

// phases returns the mean time of each part of a step, and what was written.
func (r *scaleRun) phases(b *testing.B) string {
	b.Helper()
	page := string(r.fetch(b, r.metrics))
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, m := range phasesOf.FindAllStringSubmatch(page, -1) {
		n, _ := strconv.ParseFloat(m[3], 64)
		if m[1] == "sum" {
			sums[m[2]] = n
		} else {
			counts[m[2]] = n
		}
	}
	var all []string
	for name, n := range counts {
		all = append(all, fmt.Sprintf("%s %.1f ms", name, 1000*sums[name]/n))
	}
	slices.Sort(all)
	for _, m := range writesOf.FindAllStringSubmatch(page, -1) {
		all = append(all, "writes of "+m[1]+" "+m[2])
	}
	return strings.Join(all, ", ")
}

// profile writes profiles if SPOTTER_PROFILE is set.
func (r *scaleRun) profile(b *testing.B, name string) {
	b.Helper()
	dir := os.Getenv("SPOTTER_PROFILE")
	if dir == "" {
		return
	}
	for _, kind := range []string{"heap", "profile?seconds=20"} {
		file, _, _ := strings.Cut(kind, "?")
		if err := os.WriteFile(filepath.Join(dir, name+"."+file), r.fetch(b, r.pprof+kind), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

func (r *scaleRun) fetch(b *testing.B, url string) []byte {
	b.Helper()
	resp, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return data
}
