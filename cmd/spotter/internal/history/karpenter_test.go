package history_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
)

// logTime is an instant as Karpenter logs it.
func logTime(hours float64) string { return after(hours).Std().Format("2006-01-02T15:04:05.000Z") }

// logLine is a line of Karpenter's log.
func logLine(hours float64, message, rest string) string {
	return fmt.Sprintf(`{"level":"INFO","time":%q,"logger":"controller","message":%q,"commit":"0000000",%s}`, logTime(hours), message, rest)
}

// recent is what a release from 1.1 on logs of five nodes: one that was underutilized, one that was
// interrupted, one that went on, one that was there before the logs begin and one that never
// joined.
func recent() []string {
	of := func(claim string) string {
		return fmt.Sprintf(`"controller":"nodeclaim.lifecycle","controllerGroup":"karpenter.sh","controllerKind":"NodeClaim","NodeClaim":{"name":%q},"namespace":"","name":%[1]q`, claim)
	}
	created := func(hours float64, claim string) []string {
		return []string{
			logLine(hours, "created nodeclaim",
				`"controller":"provisioner","NodePool":{"name":"general"},"NodeClaim":{"name":"`+claim+`"},"requests":{"cpu":"3"},"instance-types":"m5.large, m6i.large and 9 other(s)"`),
			logLine(hours+0.001, "launched nodeclaim",
				of(claim)+`,"provider-id":"aws:///us-east-1b/i-`+claim+`","instance-type":"m6i.large","zone":"us-east-1b","capacity-type":"spot","allocatable":{"cpu":"2"}`),
		}
	}
	joined := func(hours float64, claim, node string) []string {
		return []string{
			logLine(hours, "registered nodeclaim", of(claim)+`,"provider-id":"aws:///us-east-1b/i-`+claim+`","Node":{"name":"`+node+`"}`),
			logLine(hours+0.01, "initialized nodeclaim", of(claim)+`,"Node":{"name":"`+node+`"},"allocatable":{"cpu":"2"}`),
		}
	}
	gone := func(hours float64, claim, node string) []string {
		return []string{
			logLine(hours-0.02, "tainted node",
				`"controller":"node.termination","Node":{"name":"`+node+`"},"NodeClaim":{"name":"`+claim+`"},"taint.Key":"karpenter.sh/disrupted"`),
			logLine(hours, "deleted node",
				`"controller":"node.termination","controllerKind":"Node","Node":{"name":"`+node+`"},"namespace":"","name":"`+node+`","NodeClaim":{"name":"`+claim+`"}`),
			logLine(hours+0.01, "deleted nodeclaim", of(claim)+`,"Node":{"name":"`+node+`"}`),
		}
	}
	disrupting := func(hours float64, field, claim, node string) string {
		return logLine(hours, "disrupting node(s)",
			`"controller":"disruption",`+field+`,"decision":"delete","disrupted-node-count":1,"replacement-node-count":0,"pod-count":2,`+
				`"disrupted-nodes":[{"Node":{"name":"`+node+`"},"NodeClaim":{"name":"`+claim+`"},"capacity-type":"on-demand","instance-type":"c5.xlarge"}],"replacement-nodes":[]`)
	}
	return slices.Concat(
		created(2, "general-aaaa1"), joined(2.02, "general-aaaa1", "ip-10-0-0-1.ec2.internal"),
		[]string{disrupting(5, `"command-id":"x","reason":"underutilized"`, "general-aaaa1",
			"ip-10-0-0-1.ec2.internal")}, gone(5.1, "general-aaaa1", "ip-10-0-0-1.ec2.internal"),
		created(3, "general-aaaa2"), joined(3.02, "general-aaaa2", "ip-10-0-0-2.ec2.internal"),
		[]string{logLine(8, "initiating delete from interruption message",
			`"controller":"interruption","queue":"q","messageKind":"spot_interrupted","NodeClaim":{"name":"general-aaaa2"},"action":"CordonAndDrain","Node":{"name":"ip-10-0-0-2.ec2.internal"}`)},
		gone(8.03, "general-aaaa2", "ip-10-0-0-2.ec2.internal"),
		created(9, "general-aaaa3"), joined(9.02, "general-aaaa3", "ip-10-0-0-1.ec2.internal"), // the name of another before
		[]string{disrupting(10, `"command":"Drifted/7a1: delete: nodepools=[general]: [old] (savings: $0.03)"`,
			"general-bbbb1", "old")}, gone(10.5, "general-bbbb1", "old"),
		created(11, "general-aaaa4"), []string{logLine(11.3, "deleted nodeclaim", of("general-aaaa4"))},
		[]string{logLine(12, "found provisionable pod(s)", `"Pods":"shop/web-1","duration":"1ms"`), `panic: {not json}`},
	)
}

// checkRecent checks what recent logs.
func checkRecent(t *testing.T, name string, h *history.History) {
	t.Helper()
	var nodes []string
	for _, n := range h.Nodes {
		l := n.Kind.Labels
		nodes = append(nodes, fmt.Sprintf("%s %s %.2f-%.2f %s %s %s %s", n.Name, n.Instance, n.From.Sub(begin).Hours(), n.To.Sub(begin).Hours(),
			l["karpenter.sh/nodepool"], l["node.kubernetes.io/instance-type"], l["topology.kubernetes.io/zone"], l["karpenter.sh/capacity-type"]))
	}
	want := []string{
		"old  0.00-10.50 general c5.xlarge  on-demand",
		"ip-10-0-0-1.ec2.internal i-general-aaaa1 2.02-5.10 general m6i.large us-east-1b spot",
		"ip-10-0-0-2.ec2.internal i-general-aaaa2 3.02-8.03 general m6i.large us-east-1b spot",
		"ip-10-0-0-1.ec2.internal i-general-aaaa3 9.02-24.00 general m6i.large us-east-1b spot",
	}
	if !slices.Equal(nodes, want) {
		t.Errorf("%s: nodes\n%s\nwant\n%s", name, strings.Join(nodes, "\n"), strings.Join(want, "\n"))
	}
	if want := []history.Disruption{{Reason: "drifted", N: 1}, {Reason: "underutilized", N: 1}}; !slices.Equal(h.Disruptions, want) {
		t.Errorf("%s: disruptions %v, want %v", name, h.Disruptions, want)
	}
	if h.Reclaims.N != 1 || len(h.Workloads) != 0 {
		t.Errorf("%s: reclaims %+v, workloads %v", name, h.Reclaims, h.Workloads)
	}
	if text := strings.Join(h.Uncertain, "\n"); !strings.Contains(text, "the logs have nodes only") ||
		!strings.Contains(text, "Karpenter's logs are from "+after(2).Std().Format(time.RFC3339)) {
		t.Errorf("%s: %s", name, text)
	}
}

func readLogs(t *testing.T, text string) (*history.History, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "karpenter.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&history.Logs{Paths: []string{path}, JobDuration: time.Hour}).Read(t.Context(), begin, after(24))
}

// TestReadKarpenter reads the logs of Karpenter as kubectl and stern print them and as logging services
// export them, in any order.
func TestReadKarpenter(t *testing.T) {
	all := recent()
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	forms := map[string]string{
		"kubectl":  strings.Join(all, "\n"),
		"reversed": strings.Join(reversed, "\n"),
		"twice":    strings.Join(append(all, all...), "\n"),
		"stern":    "karpenter-5f-x controller " + strings.Join(all, "\nkarpenter-5f-x controller "),
		"zones":    strings.ReplaceAll(strings.Join(all, "\n"), `Z","logger"`, `+0000","logger"`),
	}
	for name, text := range exports(t, all[:len(all)-1]) {
		forms[name] = string(text)
	}
	for name, wrap := range map[string]func(entry map[string]any) any{ // services that keep the time elsewhere
		"payload": func(e map[string]any) any {
			at := e["time"]
			delete(e, "time")
			return object{"insertId": "x", "jsonPayload": e, "timestamp": at}
		},
		"processed": func(e map[string]any) any {
			at, err := time.Parse(time.RFC3339, fmt.Sprint(e["time"]))
			if err != nil {
				t.Fatal(err)
			}
			delete(e, "time")
			return object{"ts": float64(at.UnixMilli()) / 1000, "kubernetes": object{"pod_name": "karpenter-0"}, "log_processed": e}
		},
		"twice in one": func(e map[string]any) any {
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			return object{"log": string(text), "log_processed": e}
		},
	} {
		var out strings.Builder
		for _, l := range all[:len(all)-1] {
			e := map[string]any{}
			if err := json.Unmarshal([]byte(l), &e); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(wrap(e))
			if err != nil {
				t.Fatal(err)
			}
			out.Write(append(text, '\n'))
		}
		forms[name] = out.String()
	}
	for name, text := range forms {
		h, err := readLogs(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkRecent(t, name, h)
	}
}

// TestReadKarpenterClaims reads the CSV of LogParserForKarpenter, by whatever release of it and
// with its columns in another order.
func TestReadKarpenterClaims(t *testing.T) {
	rows := []map[string]string{
		{"nodeclaim": "general-aaaa1", "createdtime": logTime(2), "nodepool": "general", "launchedtime": logTime(2.001),
			"providerid": "i-general-aaaa1", "instancetype": "m6i.large", "zone": "us-east-1b",
			"capacitytype": "spot", "registeredtime": logTime(2.02), "k8snodename": "ip-10-0-0-1.ec2.internal", "initializedtime": logTime(2.03), "disruptiontime": logTime(5), "disruptionreason": "Underutilized", "deletedtime": logTime(5.1), "deleted": "true"},
		{"nodeclaim": "general-aaaa2", "createdtime": logTime(3), "nodepool": "general", "launchedtime": logTime(3.001),
			"providerid": "i-general-aaaa2", "instancetype": "m6i.large", "zone": "us-east-1b",
			"capacitytype": "spot", "registeredtime": logTime(3.02), "k8snodename": "ip-10-0-0-2.ec2.internal", "interruptiontime": logTime(8), "interruptionkind": "spot_interrupted", "deletedtime": logTime(8.03)},
		{"nodeclaim": "general-aaaa4", "createdtime": logTime(11), "nodepool": "general", "launchedtime": logTime(11.001),
			"instancetype": "m6i.large", "deleted": "false"},
		{"nodeclaim": "general-aaaa5", "createdtime": logTime(-9), "nodepool": "general", "launchedtime": logTime(-9),
			"instancetype": "m5.large", "zone": "us-east-1a", "capacitytype": "on-demand", "registeredtime": logTime(-8.9), "k8snodename": "c"},
	}
	columns := []string{"nodeclaim", "createdtime", "nodepool", "instancetypes", "launchedtime", "providerid",
		"instancetype", "zone", "capacitytype", "registeredtime", "k8snodename",
		"initializedtime", "disruptiontime", "disruptionreason", "interruptiontime", "interruptionkind", "deletedtime", "deleted"}
	table := func(columns []string, head func(i int, name string) string) string {
		var b strings.Builder
		for i, c := range columns {
			columns[i] = head(i, c)
		}
		b.WriteString(strings.Join(columns, ",") + "\n")
		for _, row := range rows {
			var cells []string
			for _, c := range columns {
				c, _, _ = strings.Cut(strings.ToLower(c), "[")
				cells = append(cells, row[c])
			}
			b.WriteString(strings.Join(cells, ",") + "\n")
		}
		return b.String()
	}
	other := slices.Clone(columns)
	slices.Reverse(other)
	for name, text := range map[string]string{
		"first": table(slices.Clone(columns), func(_ int, name string) string { return name }),
		"numbered": table(other, func(i int, name string) string {
			return fmt.Sprintf("%s%s[%d]", strings.ToUpper(name[:1]), name[1:], i+1)
		}),
	} {
		h, err := readLogs(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := h.Nodes; len(n) != 3 || n[0].Name != "c" || n[0].From != begin || n[0].To != after(24) ||
			n[1].From != after(2.02) || n[1].To != after(5.1) ||
			n[2].Instance != "i-general-aaaa2" || n[1].Kind.Labels["karpenter.sh/nodepool"] != "general" {
			t.Errorf("%s: nodes %+v", name, n)
		}
		if h.Reclaims.N != 1 || !slices.Equal(h.Disruptions, []history.Disruption{{Reason: "underutilized", N: 1}}) {
			t.Errorf("%s: reclaims %v, disruptions %v", name, h.Reclaims, h.Disruptions)
		}
	}
	if _, err := readLogs(t, "nodeclaim,createdtime,launchedtime\na-1,yesterday,\n"); err == nil ||
		!strings.Contains(err.Error(), `karpenter.log: row 1: createdtime of NodeClaim a-1: "yesterday" is not a time`) {
		t.Errorf("a time that is none: %v", err)
	}
}

// TestReadKarpenterOlder reads what releases before 1.0 log, in which NodeClaims and Nodes are
// texts, in JSON and in the console encoding.
func TestReadKarpenterOlder(t *testing.T) {
	old := []struct{ message, rest string }{
		{"created nodeclaim", `"nodepool":"batch","nodeclaim":"batch-x1x1x"`},
		{"launched nodeclaim",
			`"nodeclaim":"batch-x1x1x","nodepool":"batch","provider-id":"aws:///eu-west-1a/i-7","instance-type":"c6a.large","zone":"eu-west-1a","capacity-type":"spot"`},
		{"initialized nodeclaim", `"nodeclaim":"batch-x1x1x","nodepool":"batch","node":"ip-10-1-0-9.eu-west-1.compute.internal"`},
		{"disrupting via consolidation delete, terminating 1 candidates ip-10-1-0-9.eu-west-1.compute.internal/c6a.large/spot", `"x":1`},
		{"tainted node", `"node":"ip-10-1-0-9.eu-west-1.compute.internal"`},
		{"deleted node", `"node":"ip-10-1-0-9.eu-west-1.compute.internal"`},
		{"deleted nodeclaim", `"nodeclaim":"batch-x1x1x","node":"ip-10-1-0-9.eu-west-1.compute.internal"`},
		{"initiating delete from interruption message",
			`"queue":"q","messageKind":"SpotInterruptionKind","nodeclaim":"batch-y2y2y","action":"CordonAndDrain","node":"gone.soon"`},
		{"deleted node", `"node":"ip-10-1-0-9.eu-west-1.compute.internal"`}, // another one, of which nothing else is logged
	}
	var text, console strings.Builder
	for i, x := range old {
		fmt.Fprintln(&text, logLine(float64(i), x.message, x.rest))
		fmt.Fprintf(&console, "%s\tINFO\tcontroller.provisioner\t%s\t{\"commit\": \"0000000\", %s}\n", logTime(float64(i)), x.message, x.rest)
	}
	var first *history.History
	for name, text := range map[string]string{
		"json": text.String(), "console": console.String(), "console of a container": "x stderr F " +
			strings.ReplaceAll(strings.TrimSpace(console.String()), "\n", "\nx stderr F "),
	} {
		h, err := readLogs(t, text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := h.Nodes; len(n) != 3 || n[0].Name != "gone.soon" || n[0].From != begin || n[0].To != after(7).Add(2*time.Minute) ||
			n[1].From != after(2) || n[1].To != after(5) || n[1].Instance != "i-7" ||
			n[1].Kind.Labels["node.kubernetes.io/instance-type"] != "c6a.large" ||
			n[2].Name != n[1].Name || n[2].From != after(5) || n[2].To != after(8) {
			t.Errorf("%s: nodes %+v", name, n)
		}
		if h.Reclaims.N != 1 || !slices.Equal(h.Disruptions, []history.Disruption{{Reason: "consolidation", N: 1}}) {
			t.Errorf("%s: reclaims %v, disruptions %v", name, h.Reclaims, h.Disruptions)
		}
		if first != nil && !reflect.DeepEqual(h, first) {
			t.Errorf("%s: %+v, want %+v", name, h, first)
		}
		first = h
	}
}

// TestReadKarpenterAndAudit reads both logs of one cluster: a node that both have is one.
func TestReadKarpenterAndAudit(t *testing.T) {
	h, err := readLogs(t, strings.Join(append(lines(t, logged()),
		logLine(6.1, "registered nodeclaim", `"NodeClaim":{"name":"general-ccccc"},"provider-id":"aws:///us-east-1c/i-b","Node":{"name":"b"}`),
		logLine(11.0, "initiating delete from interruption message",
			`"messageKind":"spot_interrupted","NodeClaim":{"name":"general-ccccc"},"Node":{"name":"b"}`),
		logLine(11.11, "deleted node", `"Node":{"name":"b"},"NodeClaim":{"name":"general-ccccc"}`)), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	checkLogged(t, h)
	if n := h.Nodes[1]; n.Instance != "i-b" || n.Kind.Labels["node.kubernetes.io/instance-type"] != "m5.large" {
		t.Errorf("%+v", n)
	}
	if _, err := readLogs(t, logLine(1, "deleted node", `"Node":{"name":"b"}`)[:60]); err == nil ||
		!strings.Contains(err.Error(), "karpenter.log: value 1: unexpected EOF") {
		t.Errorf("a line that is cut off: %v", err)
	}
	if h, err := readLogs(t, logLine(30, "deleted node", `"Node":{"name":"b"}`)); err != nil || len(h.Nodes) != 1 ||
		h.Nodes[0].To != policy.Time(after(24)) {
		t.Errorf("a node that goes after the time: %+v, %v", h, err)
	}
}
