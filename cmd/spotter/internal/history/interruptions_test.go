package history_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/policy"
)

// stamp is the instant hours after the start, as logs write it.
func stamp(hours float64) string { return after(hours).Std().Format("2006-01-02T15:04:05Z") }

// evicted is an entry of CloudTrail as AWS documents it, in "AWS service events".
func evicted(hours float64, name string, instances ...string) string {
	return fmt.Sprintf(`{"eventVersion":"1.05","eventTime":%q,"eventSource":"ec2.amazonaws.com","eventName":%q,"awsRegion":"us-east-2","eventType":"AwsServiceEvent",`+
		`"requestParameters":null,"responseElements":null,"serviceEventDetails":{"instanceIdSet":["%s"]}}`, stamp(hours), name, strings.Join(instances, `","`))
}

// preempted is an entry of the audit log of Compute Engine's system events.
func preempted(hours float64, method, instance string) string {
	return fmt.Sprintf(`{"protoPayload":{"@type":"type.googleapis.com/google.cloud.audit.AuditLog","serviceName":"compute.googleapis.com","methodName":%q,"resourceName":"projects/p/zones/europe-west1-c/instances/%s"},`+
		`"insertId":"a","resource":{"type":"gce_instance"},"timestamp":%q,"logName":"projects/p/logs/cloudaudit.googleapis.com%%2Fsystem_event"}`, method, instance, stamp(hours))
}

// zippedOf is a text compressed.
func zippedOf(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestInterruptions reads the events of a day in each way that they are kept.
func TestInterruptions(t *testing.T) {
	const trail, google = "BidEvictedEvent of CloudTrail", "compute.instances.preempted of Cloud Logging"
	all := strings.Join([]string{
		evicted(3, "BidEvictedEvent", "i-0b", "i-0a"), evicted(2, "BidEvictedEvent", "i-0c"), evicted(2, "BidEvictedEvent", "i-0c"),
		evicted(1, "BidFulfilledEvent", "i-0d"), evicted(-1, "BidEvictedEvent", "i-0e"), evicted(24, "BidEvictedEvent", "i-0f"),
	}, ",")
	list := []string{preempted(5, "compute.instances.preempted", "gke-a"),
		preempted(6, "compute.instances.preempted", "gke-a"), preempted(7, "v1.compute.instances.delete",
			"gke-b"), preempted(30, "compute.instances.preempted", "gke-c")}
	ofTrail, ofGoogle := []string{"2 i-0c", "3 i-0a", "3 i-0b"}, []string{"5 gke-a", "6 gke-a"}
	for name, c := range map[string]struct {
		text, source string
		want         []string
	}{
		"file.json.gz": {zippedOf(t, `{"Records":[`+all+`]}`), trail, ofTrail},
		"lookup.json": {`{"Events":[{"EventName":"BidEvictedEvent","CloudTrailEvent":` +
			fmt.Sprintf("%q", evicted(4, "BidEvictedEvent", "i-0a")) + `}]}`, trail, []string{"4 i-0a"}},
		"eventbridge.json": {`{"source":"aws.ec2","detail":` + evicted(4, "BidEvictedEvent", "i-0a") + `}`, trail, []string{"4 i-0a"}},
		"none.json":        {`{"Records":[` + evicted(1, "BidFulfilledEvent", "i-0d") + `]}`, trail, nil},
		"gcloud.json":      {"\n [" + strings.Join(list, ",") + "]", google, ofGoogle},
		"export.json":      {strings.Join(list, "\n"), google, ofGoogle},
		"empty.json":       {"[]\n", "an empty list of log entries", nil},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := history.ReadInterruptions(t.Context(), []string{dir}, begin, after(24))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, e := range x.Events {
			got = append(got, fmt.Sprint(e.At.Sub(begin).Hours(), " ", e.Instance))
		}
		if !slices.Equal(got, c.want) || x.Source != c.source || x.Regions != nil {
			t.Errorf("%s: %v by %s, want %v by %s", name, got, x.Source, c.want, c.source)
		}
	}
}

// hour is a row of an export of Capacity Manager.
type hour struct {
	at       float64
	region   string
	n, hours int64
}

// exported are the columns of an export by the names of the API.
func exported(withTime bool) []tabular.Column[hour] {
	out := []tabular.Column[hour]{
		tabular.Text("account-id", func(hour) string { return "123456789012" }),
		tabular.Text("resource-region", func(h hour) string { return h.region }),
		tabular.Decimal("spot-total-interruptions-inst", 0, func(h hour) (int64, bool) { return h.n, h.n > 0 }),
		tabular.Decimal("spot-total-usage-hrs-inst", 1, func(h hour) (int64, bool) { return h.hours, true }),
	}
	if withTime {
		out = append(out, tabular.Time("timestamp", func(h hour) policy.Time { return after(h.at) }))
	}
	return out
}

// TestCapacityManager adds up an export by region, as Parquet by its column of times and as
// CSV in an object store by its folders, of which those of other days are not opened.
func TestCapacityManager(t *testing.T) {
	rows := []hour{{1, "us-east-1", 2, 105}, {2, "us-east-1", 0, 100}, {2, "eu-west-1", 1, 30},
		{-1, "us-east-1", 50, 1000}, {24, "us-east-1", 50, 1000}}
	want := map[string]history.Interrupted{"us-east-1": {N: 2, Hours: 20.5}, "eu-west-1": {N: 1, Hours: 3}}
	dir := t.TempDir()
	var parquet bytes.Buffer
	if err := tabular.WriteParquet(&parquet, exported(true), slices.Values(rows)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.parquet"), parquet.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	objectstest.Use(t, objectstest.Serve(t, nil, "b"))
	var store objects.Store
	for _, r := range rows {
		key := "s3://b/x/" + after(r.at).Std().Format("y=2006/m=01/d=02/h=15/") + r.region + ".csv.gz"
		var text bytes.Buffer
		if err := tabular.WriteCSV(&text, exported(false), slices.Values([]hour{r})); err != nil {
			t.Fatal(err)
		}
		if err := store.Create(t.Context(), key, writes(zippedOf(t, text.String()))); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"s3://b/x/y=2019/m=01/d=02/h=00/other.csv", "s3://b/x/y=2031/m=01/d=02/h=00/other.csv"} {
		if err := store.Create(t.Context(), other, writes("nothing that is understood")); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, "s3://b/x"} {
		x, err := history.ReadInterruptions(t.Context(), []string{path}, begin, after(24))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(x.Regions) != fmt.Sprint(want) || x.Source != "EC2 Capacity Manager" {
			t.Errorf("%s: %v by %s, want %v", path, x.Regions, x.Source, want)
		}
	}
}

// TestInterruptionsRefused names what is wrong with a file.
func TestInterruptionsRefused(t *testing.T) {
	const head = "timestamp,resource-region,spot-total-interruptions-inst,spot-total-usage-hrs-inst\n"
	for text, want := range map[string]string{
		`{"kind":"Event"}`:                     "nothing that says what was interrupted",
		"Records: none":                        "has the columns spot-total-interruptions-inst and spot-total-usage-hrs-inst; it has Records: none",
		"":                                     "it is empty",
		`{"Records":[{"eventTime":"soon"}]}`:   "value 1: parsing time",
		`{"Records":[`:                         "value 1: unexpected EOF",
		head + stamp(1) + ",us-east-1,x,3\n":   `row 1: spot-total-interruptions-inst: "x" is not a number`,
		head + "soon,us-east-1,1,3\n":          `row 1: timestamp: "soon" is not a time`,
		head + stamp(1) + ",us-east-1,-1,3\n":  "neither can be negative",
		strings.TrimPrefix(head, "timestamp,"): "no folders y=, m=, d= and h= say its hour",
		"PAR1 and no more of it":               "it is not a complete Parquet file",
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := history.ReadInterruptions(t.Context(), []string{path}, begin, after(24)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": `{"Records":[` + evicted(1, "BidEvictedEvent", "i-0a") + `]}`,
		"b.csv": head + stamp(1) + ",us-east-1,1,3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := history.ReadInterruptions(t.Context(), []string{dir}, begin, after(24)); err == nil ||
		!strings.Contains(err.Error(), "they count the same") {
		t.Errorf("of both: %v", err)
	}
	if _, err := history.ReadInterruptions(t.Context(), []string{filepath.Join(dir, "none")}, begin,
		after(24)); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("of none: %v", err)
	}
}

// writes writes a text.
func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}
