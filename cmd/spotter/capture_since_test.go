package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/history/historytest"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
)

// TestCaptureSince captures what metrics say of the day before a recorded step: the scenario
// has the replicas of that day, says how far its simulation is from it, and eval repeats
// that.
func TestCaptureSince(t *testing.T) {
	rec, dir := filepath.Join(t.TempDir(), "steps"), t.TempDir()
	if code, _, stderr := call(t, "sim", file(t, "tiny.yaml", tiny), "--trace", "synthetic", "--start", "on-demand",
		"--policy", "static:share=0.5", "--record", rec); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	from, to := policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), policy.TimeOf(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	kind := &history.NodeKind{Labels: map[string]string{"node.kubernetes.io/instance-type": "m5.xlarge",
		"topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot"}}
	c := &historytest.Cluster{From: from.Add(-time.Hour), To: to.Add(time.Hour), Hourly: 0.2,
		Nodes: []history.Node{{Name: "a", Instance: "i-0a", From: from.Add(-time.Hour), To: to.Add(time.Hour), Kind: kind},
			{Name: "b", Instance: "i-0b", From: from.Add(-time.Hour), To: from.Add(9 * time.Hour), Kind: kind}},
		Workloads: []history.Workload{
			{Name: "default/web", Kind: policy.KindDeployment, Replicas: []history.Change{{At: from.Add(-time.Hour), N: 4},
				{At: from.Add(9 * time.Hour), N: 2}}},
			{Name: "default/gone", Kind: policy.KindDeployment, Replicas: []history.Change{{At: from.Add(-time.Hour), N: 1},
				{At: from.Add(3 * time.Hour), N: -1}},
				Pod: history.Pod{Requests: policy.Resources{CPU: 250, Memory: 1 << 28}}},
		},
		Reclaims: []policy.Time{from.Add(9 * time.Hour)},
	}
	server := historytest.New(t, c.Source)
	out := filepath.Join(dir, "day.yaml")
	args := []string{"capture", "--out", out, "--run", rec, "--to", "2026-01-02", "--since", "1d", "--prometheus",
		server.URL, "--cache", filepath.Join(dir, "cache")}
	code, stdout, stderr := call(t, args...)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# What it did from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z by the metrics at " + server.URL,
		"spotter.dev/replica-schedule: +0s=4 +9h0m0s=2", "spotter.dev/replica-schedule: +0s=1 +3h0m0s=0", "cpu: 250m",
		"rules unknown: 1 workloads", "default/gone", "start: \"2026-01-01T00:00:00Z\"", "duration: 24h0m0s", "count: 2", "m5.xlarge",
		"# Reclaims: 1 in 33 Spot node-hours by karpenter_nodeclaims_disrupted_total", "spotter.dev/deviation: node-hours", "# Simulated as-is",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !strings.Contains(stdout, "nodes on average") || !strings.Contains(stdout, "dollars on synthetic prices") {
		t.Errorf("printed was\n%s", stdout)
	}
	calls := server.Calls()
	if code, _, stderr := call(t, append(args, "--force")...); code != cli.ExitOK || server.Calls() != calls {
		t.Errorf("again: exit code %d, %d calls after %d\n%s", code, server.Calls(), calls, stderr)
	}
	if again, err := os.ReadFile(out); err != nil || string(again) != string(text) {
		t.Errorf("the same answers give another file, %v", err)
	}
	trail := file(t, "trail.json",
		`{"Records":[{"eventTime":"2026-01-01T09:00:00Z","eventSource":"ec2.amazonaws.com","eventName":"BidEvictedEvent","serviceEventDetails":{"instanceIdSet":["i-0b","i-0x"]}}]}`)
	if text := captured(t, append(args[3:], "--interruptions", trail)...); !strings.Contains(text,
		"# Reclaims: 1 in 33 Spot node-hours by BidEvictedEvent of CloudTrail, 0.0303 per node-hour (exact 95% interval") ||
		!strings.Contains(text, "and 1 of no known node of it; karpenter_nodeclaims_disrupted_total counted 1") {
		t.Errorf("by CloudTrail it is\n%s", text)
	}
	cur := file(t, "cur.csv",
		"line_item_resource_id,line_item_usage_start_date,line_item_usage_end_date,line_item_unblended_cost,line_item_line_item_type,line_item_usage_type,line_item_usage_amount\n"+
			"i-0a,2026-01-01,2026-01-02,2.00,Usage,USE1-SpotUsage:m5.xlarge,24\ni-0b,2026-01-01 00:00:00,2026-01-01 09:00:00,0.50,Usage,USE1-SpotUsage:m5.xlarge,9\n")
	if text := captured(t, append(args[3:], "--bill", cur)...); !strings.Contains(text,
		"# Dollars: $2.50 by the AWS Cost and Usage Report, which is of 100.0% of the node-hours; karpenter_nodepools_cost_total adds up to $4.80.") ||
		!strings.Contains(text, "      3.09       2.50  +23.5%") || !strings.Contains(text, "dollars on synthetic prices +23.5%") {
		t.Errorf("by the bill it is\n%s", text)
	}
	wrongCallIs(t, "its columns are a", append([]string{"capture", "--out", filepath.Join(dir, "y.yaml"), "--bill",
		file(t, "other.csv", "a\n1\n")}, args[3:]...)...)
	if code, stdout, stderr := call(t, "eval", out, "--policies", "static", "--seeds", "1",
		"--details"); code != cli.ExitOK || !strings.Contains(strings.Join(strings.Fields(stdout),
		" "), "simulated as it is, compared with what happened: node-hours") {
		t.Errorf("eval: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// captured captures again with more flags, and returns the file.
func captured(t *testing.T, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "again.yaml")
	if code, stdout, stderr := call(t, append([]string{"capture", "--out", out}, args...)...); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n#  ", " ") // a long line of the head continues in the next
}

// TestCaptureAudit captures a day out of an audit log: what it does not name was there all
// the time.
func TestCaptureAudit(t *testing.T) {
	rec, dir := filepath.Join(t.TempDir(), "steps"), t.TempDir()
	if code, _, stderr := call(t, "sim", file(t, "tiny.yaml", tiny), "--trace", "synthetic", "--policy",
		"static:share=0.5", "--record", rec); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	log := file(t, "audit.log",
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"deployments","namespace":"default","name":"web","subresource":"scale"},`+
			`"responseStatus":{"code":200},"requestObject":{"spec":{"replicas":7}},"responseObject":{"status":{"replicas":4}},"stageTimestamp":"2026-01-01T05:30:00.000000Z"}`)
	out := filepath.Join(dir, "day.yaml")
	code, stdout, stderr := call(t, "capture", "--out", out, "--run", rec, "--from", "2026-01-01", "--to",
		"2026-01-01T20:00:00Z", "--audit", log)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"replica-schedule: +0s=4 +5h30m0s=7", "duration: 20h0m0s", "by logs",
		"instanceType: m5.", "the logs have events from 2026-01-01T05:30:00Z"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	wrongCallIs(t, "--interruptions: nothing that says what was interrupted", "capture", "--out",
		filepath.Join(dir,
			"x.yaml"), "--run", rec, "--from", "2026-01-01", "--to", "2026-01-01T20:00:00Z", "--audit", log, "--interruptions", log)
	wrongCallIs(t, "no event of the API server", "capture", "--out", filepath.Join(dir, "x.yaml"), "--run", rec,
		"--from", "2026-01-02", "--to", "2026-01-03", "--audit", log)
}

// TestCaptureKarpenter captures a day out of Karpenter's log: it has the nodes, and workloads
// are those of the recording.
func TestCaptureKarpenter(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "steps")
	if code, _, stderr := call(t, "sim", file(t, "tiny.yaml", tiny), "--trace", "synthetic", "--policy",
		"static:share=0.5", "--record", rec); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	node := func(claim, node string) string {
		return `"NodeClaim":{"name":"` + claim + `"},"Node":{"name":"` + node + `"}`
	}
	log := file(t, "karpenter.log", strings.Join([]string{
		`{"level":"INFO","time":"2025-12-31T20:00:00.000Z","message":"launched nodeclaim","NodeClaim":{"name":"general-1a2b3"},"provider-id":"aws:///us-east-1a/i-01","instance-type":"m5.xlarge","zone":"us-east-1a","capacity-type":"spot"}`,
		`{"level":"INFO","time":"2025-12-31T20:01:00.000Z","message":"registered nodeclaim",` + node("general-1a2b3", "first") + `}`,
		`{"level":"INFO","time":"2026-01-01T06:00:00.000Z","message":"disrupting node(s)","reason":"empty","disrupted-nodes":[{` + node("general-1a2b3", "first") + `}]}`,
		`{"level":"INFO","time":"2026-01-01T06:01:00.000Z","message":"deleted node",` + node("general-1a2b3", "first") + `}`,
		`{"level":"INFO","time":"2026-01-01T08:00:00.000Z","message":"launched nodeclaim","NodeClaim":{"name":"general-4c5d6"},"provider-id":"aws:///us-east-1a/i-02","instance-type":"m5.xlarge","zone":"us-east-1a","capacity-type":"spot"}`,
		`{"level":"INFO","time":"2026-01-01T08:01:00.000Z","message":"registered nodeclaim",` + node("general-4c5d6", "second") + `}`,
		`{"level":"INFO","time":"2026-01-01T10:00:00.000Z","message":"initiating delete from interruption message","messageKind":"spot_interrupted",` + node("general-4c5d6", "second") + `}`,
		`{"level":"INFO","time":"2026-01-01T10:01:30.000Z","message":"deleted node",` + node("general-4c5d6", "second") + `}`,
	}, "\n"))
	text := captured(t, "--run", rec, "--from", "2026-01-01", "--to", "2026-01-01T20:00:00Z", "--audit", log)
	for _, want := range []string{
		"replica-schedule: +0s=4", "instanceType: m5.xlarge", "Karpenter gave up: 1 empty", "by interruptions in the logs",
		"# Assumed: Karpenter's logs are from 2025-12-31T20:00:00Z to 2026-01-01T10:01:30Z and have 2 nodes", "workloads, their replicas and where pods ran are taken to have been as they are now",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestCaptureSinceCalls refuses what cannot be meant, and writes nothing.
func TestCaptureSinceCalls(t *testing.T) {
	dir := t.TempDir()
	out, at := filepath.Join(dir, "c.yaml"), "http://localhost:1"
	for want, args := range map[string][]string{
		"--since is missing":                          {"--prometheus", at},
		"--since is missing: how far back":            {"--interruptions", dir},
		"--since and --from say the same":             {"--since", "7d", "--from", "2026-01-01", "--prometheus", at},
		"--since reads one of":                        {"--since", "7d"},
		`--since: "7 days" is not a time such as`:     {"--since", "7 days", "--prometheus", at},
		`--since: "5m" is not from 1h0m0s`:            {"--since", "5m", "--prometheus", at},
		`--to: "soon" is neither`:                     {"--since", "7d", "--to", "soon", "--prometheus", at},
		`--prometheus: "prom:9090" is not an address`: {"--since", "7d", "--prometheus", "prom:9090"},
		`--prometheus-header: "x" is not`:             {"--since", "7d", "--prometheus", at, "--prometheus-header", "x"},
		"--prometheus-token-file: " + dir: {"--since", "7d", "--prometheus", at, "--prometheus-token-file",
			filepath.Join(dir, "token")},
		"--nodes: with --since":                {"--since", "7d", "--prometheus", at, "--nodes", "on-demand"},
		"--duration: with --since":             {"--since", "7d", "--prometheus", at, "--duration", "3h"},
		"--prometheus-ca-file: " + dir + "/ca": {"--since", "7d", "--prometheus", at, "--prometheus-ca-file", filepath.Join(dir, "ca")},
	} {
		wrongCallIs(t, want, append([]string{"capture", "--out", out}, args...)...)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("refused calls left %v, %v", entries, err)
	}
}
