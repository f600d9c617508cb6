package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

const ownMachines = `apiVersion: v1
kind: Node
metadata: {name: rack-1}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 50, example.com/fpga: 1}}
---
apiVersion: v1
kind: Node
metadata: {name: rack-2}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 50}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
`

const ownPods = `apiVersion: apps/v1
kind: Deployment
metadata: {name: encoder}
spec:
  replicas: 2
  selector: {matchLabels: {app: encoder}}
  template:
    metadata: {labels: {app: encoder}}
    spec:
      containers: [{name: main, image: encoder, resources: {requests: {cpu: 2}, limits: {example.com/fpga: 1}}}]
`

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeAll(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSchedule places pods on machines of no cloud, from files that are compressed and from a folder.
func TestSchedule(t *testing.T) {
	dir := writeAll(t, map[string][]byte{"nodes.yaml": []byte(ownMachines), "pods.yaml.gz": zipped(t, ownPods)})
	calls := [][]string{{"-f", filepath.Join(dir, "nodes.yaml"), "-f", filepath.Join(dir, "pods.yaml.gz")}, {"-f", dir}}
	for _, args := range calls {
		code, stdout, stderr := call(t, append([]string{"schedule", "-o", "json"}, args...)...)
		var out struct {
			Scheduled, Unscheduled int
			PricedNodes            int `json:"priced_nodes"`
			Pending                []struct {
				Pods   []string
				Reason string
			}
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != cli.ExitOK {
			t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
		}
		if out.Scheduled != 1 || out.Unscheduled != 1 || out.PricedNodes != 0 ||
			!strings.HasPrefix(out.Pending[0].Reason, "0/2 nodes are available: 2 Insufficient example.com/fpga. ") {
			t.Errorf("it comes to %+v", out)
		}
		if !strings.Contains(stderr, "skipped: ConfigMap 1\n") {
			t.Errorf("it skips without a word: %q", stderr)
		}
	}
	formsOf(t, "empty_nodes", "schedule", "-f", dir)
	code, stdout, stderr := call(t, append([]string{"schedule", "--check"}, calls[0]...)...)
	if code != cli.ExitFailed || !strings.Contains(stderr, "1 pod without a node") ||
		!strings.Contains(stdout, "no prices: cost not shown") || !strings.Contains(stdout, "default/encoder-1") {
		t.Errorf("--check has exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestSchedulePrices has nodes of a cloud keep their price.
func TestSchedulePrices(t *testing.T) {
	labels := "metadata: {name: rack-2, labels: {node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/region: us-east-1}}"
	dir := writeAll(t, map[string][]byte{"all.yaml": []byte(strings.Replace(ownMachines, "metadata: {name: rack-2}",
		labels, 1) + "---\n" + ownPods)})
	if code, stdout, stderr := call(t, "schedule", "-f", dir); code != cli.ExitOK ||
		!strings.Contains(stdout, "1 node of known price: $0.096 an hour on demand") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestScheduleRefuses(t *testing.T) {
	dir := writeAll(t, map[string][]byte{
		"nodes.yaml": []byte(ownMachines), "bad.yaml.gz": zipped(t, ownPods)[:60], "all.yaml": []byte(ownMachines + "---\n" + ownPods),
		"odd.yaml": []byte(strings.Replace(ownMachines, "cpu: 8", "cpu: eight", 1)),
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for want, args := range map[string][]string{
		"--filename: it is not set":                            {"schedule"},
		"bad.yaml.gz: decompressing":                           {"schedule", "-f", in("bad.yaml.gz")},
		"there is no pod and no workload among the objects":    {"schedule", "-f", in("nodes.yaml")},
		"skipped: ConfigMap 1":                                 {"schedule", "-f", in("all.yaml"), "--strict"},
		`odd.yaml:4: field "status.allocatable.cpu": want a q`: {"schedule", "-f", in("odd.yaml")},
		"2 of its Nodes are of types of no known price":        {"eval", in("all.yaml"), "--seeds", "1"},
		"`spotter schedule -f ":                                {"sim", in("all.yaml")},
		"how to place pods on nodes of any kind":               {"try", "-f", in("all.yaml"), "--dir", in("try")},
	} {
		if code, stdout, stderr := call(t, args...); code != cli.ExitInvalid || !strings.Contains(stderr, want) {
			t.Errorf("spotter %s: exit code %d, %q is missing in\n%s%s", cli.Shell(args), code, want, stdout, stderr)
		}
	}
}
