package history_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
)

// entry is an entry of an audit log, hours after the start.
func entry(hours float64, verb, resource, name, sub string, object, response any) map[string]any {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = "", name
	}
	return map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete", "verb": verb,
		"objectRef":      map[string]any{"resource": resource, "namespace": namespace, "name": short, "subresource": sub},
		"responseStatus": map[string]any{"code": 200}, "requestObject": object, "responseObject": response,
		"stageTimestamp": after(hours).Std().Format("2006-01-02T15:04:05.000000Z"),
	}
}

type object = map[string]any

// template is one of pods that request a CPU and a GiB.
func template() object {
	return object{"spec": object{"containers": []any{object{"resources": object{"requests": object{"cpu": "1", "memory": "1Gi"}}}}}}
}

// logged are entries of a day in which something of each kind was done.
func logged() []map[string]any {
	refused := entry(2, "patch", "deployments", "shop/web", "scale", object{"spec": object{"replicas": 99}}, nil)
	refused["responseStatus"] = object{"code": 409}
	begun := entry(1, "update", "deployments", "shop/web", "scale", object{"spec": object{"replicas": 98}}, nil)
	begun["stage"] = "RequestReceived"
	return []map[string]any{
		entry(-2, "update", "deployments", "shop/web", "scale", object{"spec": object{"replicas": 50}}, nil), // before the time
		begun, refused,
		entry(3, "patch", "deployments", "shop/web", "scale", object{"spec": object{"replicas": 6}},
			object{"spec": object{"replicas": 6}, "status": object{"replicas": 2}}),
		entry(20, "delete", "deployments", "shop/web", "", nil, object{"status": "Success"}),
		entry(9, "update", "deployments", "shop/web", "", object{"spec": object{"replicas": 4, "template": template()}}, nil), // out of order
		entry(10, "create", "replicasets", "shop/web-5d4f", "",
			object{"metadata": object{"ownerReferences": []any{object{"kind": "Deployment", "name": "web"}}}}, nil),
		entry(5, "create", "statefulsets", "shop/db", "", object{"spec": object{"replicas": 3, "template": template()}}, nil),
		entry(4, "create", "jobs", "batch/report-28000001", "", object{
			"metadata": object{"ownerReferences": []any{object{"kind": "CronJob", "name": "report"}}},
			"spec":     object{"parallelism": 2, "completions": 2, "template": template()},
		}, nil),
		entry(4.5, "update", "jobs", "batch/report-28000001", "status",
			object{"status": object{"startTime": after(4).Std().Format(time.RFC3339),
				"completionTime": after(4.5).Std().Format(time.RFC3339)}}, nil),
		entry(6, "create", "nodes", "b", "", object{"metadata": object{"name": "b",
			"labels": object{"node.kubernetes.io/instance-type": "m5.large", "karpenter.sh/capacity-type": "spot"}}}, nil),
		entry(11, "patch", "nodes", "b", "",
			object{"spec": object{"taints": []any{object{"key": "aws-node-termination-handler/spot-itn"}}}}, nil),
		entry(11.1, "delete", "nodes", "b", "", nil, nil),
		entry(12, "delete", "nodes", "a", "", nil, nil),
		entry(11, "create", "pods", "shop/web-1", "eviction", nil, nil),
	}
}

func lines(t *testing.T, list []map[string]any) []string {
	t.Helper()
	var out []string
	for _, x := range list {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

// exports returns lines as logging services export them, by the names of files.
func exports(t *testing.T, all []string) map[string][]byte {
	t.Helper()
	asJSON := func(x any) []byte {
		text, err := json.MarshalIndent(x, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var insights, found, list, records, wrapped, rows []any
	var table, analytics bytes.Buffer
	var recordLines []string
	csvOf, azure := csv.NewWriter(&table), csv.NewWriter(&analytics)
	_ = csvOf.Write([]string{"@ptr", "@message", "@timestamp"})
	_ = azure.Write([]string{"\ufeffTimeGenerated [UTC]", "log_s", "Category"})
	for i, l := range all {
		at := after(1).Std().Format("2006-01-02 15:04:05.000")
		insights = append(insights, []any{object{"field": "@ptr", "value": fmt.Sprint(i)},
			object{"field": "@timestamp", "value": at}, object{"field": "@message", "value": l}})
		found = append(found, object{"@timestamp": at, "@message": json.RawMessage(l)})
		list = append(list, json.RawMessage(l))
		record := object{"time": at, "category": "kube-audit-admin", "properties": object{"log": l + "\n",
			"pod": "kube-apiserver-x", "stream": "stdout"}}
		records = append(records, record)
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		recordLines = append(recordLines, string(line))
		wrapped = append(wrapped, object{"TableName": "PrimaryResult", "log_s": l})
		rows = append(rows, []any{at, "kube-audit", l})
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(l), "", "  "); err != nil {
			t.Fatal(err)
		}
		_ = csvOf.Write([]string{fmt.Sprint(i), pretty.String(), at})
		_ = azure.Write([]string{at, l, "kube-audit"})
	}
	csvOf.Flush()
	azure.Flush()
	columns := []object{{"name": "TimeGenerated", "type": "datetime"}, {"name": "Category", "type": "string"},
		{"name": "log_s", "type": "string"}}
	return map[string][]byte{
		"lines.log":          []byte("[pod/a-1/controller] starting\n[pod/a-1/controller] " + strings.Join(all, "\r\n[pod/a-1/controller] ")),
		"list.json":          asJSON(list),
		"compact.json":       []byte("[" + strings.Join(all, ",") + "]"),
		"insights.csv":       table.Bytes(),
		"insights-cli.json":  asJSON(object{"results": insights, "status": "Complete", "statistics": object{"recordsMatched": 3.0}}),
		"insights-rows.json": asJSON(insights),
		"insights-web.json":  asJSON(found),
		"azure-records.json": asJSON(object{"records": records}),
		"azure-lines.json":   []byte(strings.Join(recordLines, "\n")),
		"azure-query.json":   asJSON(wrapped),
		"azure-tables.json":  asJSON(object{"tables": []any{object{"name": "PrimaryResult", "columns": columns, "rows": rows}}}),
		"azure.csv":          analytics.Bytes(),
	}
}

// TestReadLogs reads the same history from an audit log in every form: lines, compressed, as
// CloudWatch exports them, as its calls, queries and subscriptions return them, as Azure does,
// and in a list.
func TestReadLogs(t *testing.T) {
	all := lines(t, logged())
	var calls, subscribed []any
	var exported strings.Builder
	for i, l := range all {
		calls = append(calls, object{"logStreamName": "kube-apiserver-audit-1", "timestamp": int64(after(1)), "message": l})
		subscribed = append(subscribed, object{"id": fmt.Sprint(i), "timestamp": int64(after(1)), "message": l})
		fmt.Fprintf(&exported, "%s %s\n", after(1).Std().Format(time.RFC3339Nano), l)
	}
	asJSON := func(x any) []byte {
		text, err := json.MarshalIndent(x, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte(exported.String()))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	var first *history.History
	forms := map[string][]byte{
		"audit.log": []byte(strings.Join(all, "\n")), "export.gz": zipped.Bytes(), "calls.json": asJSON(object{"events": calls}),
		"subscription.json": asJSON(object{"messageType": "DATA_MESSAGE", "logEvents": subscribed}),
		"eventlist.json":    asJSON(object{"kind": "EventList", "items": logged()}),
	}
	maps.Copy(forms, exports(t, all))
	for name, text := range forms {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := (&history.Logs{Paths: []string{dir}, JobDuration: time.Hour}).Read(t.Context(), begin, after(24))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if first == nil {
			first = h
			checkLogged(t, h)
		} else if !reflect.DeepEqual(h, first) {
			t.Errorf("%s: %+v\nwant %+v", name, h, first)
		}
	}
}

func checkLogged(t *testing.T, h *history.History) {
	t.Helper()
	pod := history.Pod{Requests: policy.Resources{CPU: 1000, Memory: 1 << 30}, Latest: policy.Resources{CPU: 1000, Memory: 1 << 30}}
	want := []history.Workload{
		{Name: "shop/db", Kind: policy.KindStatefulSet, Replicas: []history.Change{{At: begin, N: 0}, {At: after(5), N: 3}}, Pod: pod},
		{Name: "shop/web", Kind: policy.KindDeployment, Replicas: []history.Change{{At: begin, N: 2}, {At: after(3), N: 6},
			{At: after(9), N: 4}, {At: after(20), N: 0}}, Rollouts: []policy.Time{after(10)}, Pod: pod},
	}
	if !reflect.DeepEqual(h.Workloads, want) {
		t.Errorf("workloads %+v\nwant %+v", h.Workloads, want)
	}
	if j := h.Jobs; len(j) != 1 || j[0].Name != "batch/report" || j[0].Took != 30*time.Minute || j[0].Parallelism != 2 ||
		j[0].Requests.CPU != 1000 || !reflect.DeepEqual(j[0].Runs, []policy.Time{after(4)}) {
		t.Errorf("jobs %+v", j)
	}
	if n := h.Nodes; len(n) != 2 || n[0].Name != "a" || n[0].From != begin || n[0].To != after(12) ||
		n[1].From != after(6) || n[1].To != after(11.1) || n[1].Kind.Labels["karpenter.sh/capacity-type"] != "spot" {
		t.Errorf("nodes %+v", n)
	}
	if h.Evictions.N != 1 || h.Reclaims.N != 1 {
		t.Errorf("evictions %+v, reclaims %+v", h.Evictions, h.Reclaims)
	}
}

// TestReadReplay reads a capture of kubereplay, whose jobs end nowhere.
func TestReadReplay(t *testing.T) {
	at := func(hours float64) string { return after(hours).Std().Format(time.RFC3339) }
	text, err := json.MarshalIndent(object{"cluster": "prod", "captured": at(30), "events": []any{
		object{"type": "create", "kind": "Deployment", "key": "shop/web", "timestamp": at(2),
			"deployment": object{"metadata": object{"name": "web"}, "spec": object{"replicas": 2, "template": template()}}},
		object{"type": "scale", "kind": "Deployment", "key": "shop/web", "timestamp": at(4), "replicas": 5},
		object{"type": "delete", "kind": "Deployment", "key": "shop/web", "timestamp": at(6)},
		object{"type": "scale", "kind": "Deployment", "key": "shop/api", "timestamp": at(4), "replicas": 3},
		object{"type": "create", "kind": "Job", "key": "batch/once", "timestamp": at(3), "job": object{"spec": object{"template": template()}}},
	}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "workloads.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := (&history.Logs{Paths: []string{path}, JobDuration: 40 * time.Minute}).Read(t.Context(), begin, after(24))
	if err != nil {
		t.Fatal(err)
	}
	if w := h.Workloads; len(w) != 2 || !reflect.DeepEqual(w[1].Replicas,
		[]history.Change{{At: begin, N: 0}, {At: after(2), N: 2}, {At: after(4), N: 5}, {At: after(6), N: 0}}) ||
		!reflect.DeepEqual(w[0].Replicas, []history.Change{{At: begin, N: 3}}) || w[1].Requests.CPU != 1000 {
		t.Errorf("workloads %+v", w)
	}
	if j := h.Jobs; len(j) != 1 || j[0].Took != 40*time.Minute || j[0].Name != "batch/once" ||
		!strings.Contains(strings.Join(h.Uncertain, "\n"), "no job ended in the logs: each is taken to run for 40m0s") {
		t.Errorf("jobs %+v, %q", j, h.Uncertain)
	}
}

// TestReadLogsFaults names the file and the place of what is no log, and says where there is
// nothing of the time.
func TestReadLogsFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for text, want := range map[string]string{
		"{\"kind\":\"Event\"}\n{\"kind\":":                             "audit.log: line 2: unexpected EOF",
		"2026-03-02 {\"apiVersion\":\"audit.k8s.io/v1\",\"kind\":1}\n": "audit.log: line 1: kind: json: cannot unmarshal number",
		"[{\"kind\":\"Event\"},{\"kind\":":                             "audit.log: value 2: unexpected EOF",
		"[{\"kind\":\"Event\"}":                                        "audit.log: value 2: EOF",
		"{\n\"kind\":\"Event\"}\n{\"stage\"}":                          "audit.log: value 2: invalid character",
		"@timestamp,verb\n2026-03-02,patch\n":                          "(CloudWatch Logs Insights: the field @message",
		"@timestamp,@message\n2026-03-02,\"{\"\"apiVersion\"\":\"\"audit.k8s.io/v1\"\",\"\"stage\"\":1}\"\n": "audit.log: row 1: stage: json: cannot unmarshal number",
		"2026-03-02 I0302 scheduler {x}\n": "no event of the API server and no line of Karpenter in 1 files",
		"nothing here\n":                   "no event of the API server and no line of Karpenter in 1 files",
		"":                                 "no event of the API server and no line of Karpenter in 1 files",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (&history.Logs{Paths: []string{path}}).Read(t.Context(), begin, after(24)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := (&history.Logs{Paths: []string{path + "x"}}).Read(t.Context(), begin, after(24)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestReadAuditTable reads the table AKSAudit, whose columns are the fields of the events and
// whose objects may be texts.
func TestReadAuditTable(t *testing.T) {
	columns := []string{"Verb", "Stage", "ObjectRef", "ResponseStatus", "RequestObject", "ResponseObject", "StageReceivedTime"}
	names := []string{"verb", "stage", "objectRef", "responseStatus", "requestObject", "responseObject", "stageTimestamp"}
	var heads, rows []any
	var table bytes.Buffer
	cells := csv.NewWriter(&table)
	_ = cells.Write(columns)
	for _, c := range columns {
		heads = append(heads, object{"name": c})
	}
	for _, e := range logged() {
		var row []any
		var texts []string
		for _, name := range names {
			text, isText := e[name].(string)
			if !isText && e[name] != nil {
				b, err := json.Marshal(e[name])
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			row, texts = append(row, text), append(texts, text)
		}
		rows = append(rows, row)
		_ = cells.Write(texts)
	}
	cells.Flush()
	text, err := json.Marshal(object{"tables": []any{object{"columns": heads, "rows": rows}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tables.json": text, "table.csv": table.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := (&history.Logs{Paths: []string{path}, JobDuration: time.Hour}).Read(t.Context(), begin, after(24))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkLogged(t, h)
	}
}
