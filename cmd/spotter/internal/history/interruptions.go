package history

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/policy"
)

// The sources that report reclaims of Spot nodes.
const (
	sourceCloudTrail   = "BidEvictedEvent of CloudTrail"
	sourceCloudLogging = "compute.instances.preempted of Cloud Logging"
	sourceNone         = "an empty list of log entries"
	sourceCapacity     = "EC2 Capacity Manager"
)

// Interruptions are a provider's records of the Spot capacity that it reclaimed.
type Interruptions struct {
	// Source names the sources of the records.
	Source string

	// Events are interruptions of instances, ascending by time and instance.
	Events []Interruption

	// Regions maps a region to the counts of EC2 Capacity Manager for all clusters of the exported
	// accounts. The key is "" if the export names no region. It is nil if there is no export.
	Regions map[string]Interrupted
}

// An Interruption is the reclaim of an instance, which is an EC2 instance ID or the name of a
// Compute Engine instance.
type Interruption struct {
	At       policy.Time
	Instance string
}

// An Interrupted is the number of reclaimed Spot instances, and the instance-hours over which they
// were counted.
type Interrupted struct{ N, Hours float64 }

// ErrNoInterruptions means that the files contain no records of a supported source.
var ErrNoInterruptions = errors.New("nothing that says what was interrupted")

// datePath matches the date in the path of a file, in the form of CloudTrail, Cloud Logging and
// Capacity Manager, and the hour if the path has one.
var datePath = regexp.MustCompile(`/(?:y=)?(\d{4})/(?:m=)?(\d{2})/(?:d=)?(\d{2})/(?:h=(\d{2})/)?`)

// dayOf returns the time in the path of a file. hour reports whether the path has an hour, and ok
// whether it has a date.
func dayOf(name string) (at policy.Time, hour, ok bool) {
	m := datePath.FindStringSubmatch(name)
	if m == nil {
		return 0, false, false
	}
	t, err := time.Parse("2006 01 02 15", strings.Join([]string{m[1], m[2], m[3], cmp.Or(m[4], "00")}, " "))
	return policy.TimeOf(t), m[4] != "", err == nil
}

// fileLate is the maximum time between an event and the date in the path of its file.
const fileLate = 24 * time.Hour

// ReadInterruptions returns the records of files in an interval: logs of CloudTrail, exported or
// printed by lookup-events; entries of Cloud Logging, as a list or one on each line; and data
// exports of EC2 Capacity Manager, CSV or Parquet. The type of a file is determined by its content.
// Paths are files or folders, on disk or in an object store. Of folders by date, only those of the
// interval are opened.
func ReadInterruptions(ctx context.Context, paths []string, from, to policy.Time) (*Interruptions, error) {
	r := &interruptions{from: from, to: to, sources: map[string]bool{}, seen: map[Interruption]bool{}}
	within := func(name string) bool {
		day, _, ok := dayOf(name)
		return !ok || day.Add(24*time.Hour) > from && day < to.Add(fileLate)
	}
	n, err := EachFile(ctx, paths, within, r.file)
	switch {
	case err != nil:
		return nil, err
	case len(r.sources) == 0:
		return nil,
			fmt.Errorf("%w in %d files from %v to %v; what is read are logs of CloudTrail, entries of Cloud Logging and data exports of EC2 Capacity Manager",
				ErrNoInterruptions, n, from.Std().Format(time.RFC3339), to.Std().Format(time.RFC3339))
	case r.sources[sourceCapacity] && len(r.sources) > 1:
		return nil, fmt.Errorf("%s: they count the same", strings.Join(sorted(r.sources), " and "))
	}
	if len(r.sources) > 1 {
		delete(r.sources, sourceNone)
	}
	r.out.Source = strings.Join(sorted(r.sources), " and ")
	slices.SortFunc(r.out.Events, func(a, b Interruption) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Instance, b.Instance))
	})
	return &r.out, nil
}

// An interruptions is the state of reading interruptions.
type interruptions struct {
	from, to policy.Time
	sources  map[string]bool
	seen     map[Interruption]bool // a trail of all regions and one of the region contain the same events
	out      Interruptions
}

// file reads one file.
func (r *interruptions) file(name string, f objects.File) error {
	text, err := tabular.Inflated(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return err
	}
	if tabular.IsJSON(text) {
		return r.log(text)
	}
	return r.export(name, f)
}

// A logEntry is the part of an entry of CloudTrail or Cloud Logging, or of a file of entries, that
// is used.
type logEntry struct {
	EventSource string    `json:"eventSource"`
	EventName   string    `json:"eventName"`
	EventTime   time.Time `json:"eventTime"`
	Details     struct {
		Instances []string `json:"instanceIdSet"`
	} `json:"serviceEventDetails"`

	Payload *struct {
		Method   string `json:"methodName"`
		Resource string `json:"resourceName"`
	} `json:"protoPayload"`
	Timestamp time.Time `json:"timestamp"`

	Records []logEntry `json:"Records"` // file of CloudTrail
	Detail  *logEntry  `json:"detail"`  // event of EventBridge
}

// A lookedUp is the output of lookup-events of CloudTrail.
type lookedUp struct {
	Events []struct {
		CloudTrailEvent string `json:"CloudTrailEvent"`
	} `json:"Events"`
}

// log reads JSON values, each with one or many entries.
func (r *interruptions) log(text *bufio.Reader) error {
	for n, d := 1, json.NewDecoder(text); ; n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("value %d: %w", n, err)
		}
		if err := r.value(raw); err != nil {
			return fmt.Errorf("value %d: %w", n, err)
		}
	}
}

func (r *interruptions) value(raw json.RawMessage) error {
	if bytes.HasPrefix(raw, []byte("[")) {
		var list []logEntry
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		if len(list) == 0 {
			r.sources[sourceNone] = true
		}
		for i := range list {
			r.entry(&list[i])
		}
		return nil
	}
	if bytes.Contains(raw, []byte(`"CloudTrailEvent"`)) {
		var found lookedUp
		if err := json.Unmarshal(raw, &found); err != nil {
			return err
		}
		for i, x := range found.Events {
			if err := r.value(json.RawMessage(x.CloudTrailEvent)); err != nil {
				return fmt.Errorf("Events[%d].CloudTrailEvent: %w", i, err)
			}
		}
		return nil
	}
	var e logEntry
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	r.entry(&e)
	return nil
}

// entry records the interruptions in an entry. An entry of another kind only shows that its log
// exists.
func (r *interruptions) entry(e *logEntry) {
	for i := range e.Records {
		r.entry(&e.Records[i])
	}
	switch {
	case e.Detail != nil:
		r.entry(e.Detail)
	case e.EventSource != "":
		r.sources[sourceCloudTrail] = true
		if e.EventName == "BidEvictedEvent" {
			for _, id := range e.Details.Instances {
				r.add(e.EventTime, id)
			}
		}
	case e.Payload != nil:
		r.sources[sourceCloudLogging] = true
		if e.Payload.Method == "compute.instances.preempted" {
			r.add(e.Timestamp, LastOf(e.Payload.Resource))
		}
	}
}

func (r *interruptions) add(at time.Time, instance string) {
	x := Interruption{policy.TimeOf(at), instance}
	if x.At >= r.from && x.At < r.to && !r.seen[x] {
		r.seen[x] = true
		r.out.Events = append(r.out.Events, x)
	}
}

// LastOf returns the last element of a provider ID, an ARN or a resource name, which is the name of
// the instance.
func LastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Columns of a data export of Capacity Manager, named like the metrics and dimensions of
// GetCapacityManagerMetricData. They are compared without case and punctuation.
const (
	columnInterruptions = "spot-total-interruptions-inst"
	columnSpotHours     = "spot-total-usage-hrs-inst"
	columnRegion        = "resource-region"
)

// timeColumns are the possible names of the column with the time. Without such a column, the path
// determines the time.
var timeColumns = []string{"timestamp", "datapoint-timestamp", "start-timestamp", "start-time", "hour"}

// export reads a file of Capacity Manager, in which each row is about one hour.
func (r *interruptions) export(name string, f objects.File) error {
	filed, hourly, ok := dayOf(name)
	var times int
	t := tabular.Reader{
		Want: func(names []string) ([]int, error) {
			at := tabular.Find(names, append([]string{columnInterruptions, columnSpotHours, columnRegion, "region"},
				timeColumns...)...)
			if at[0] < 0 || at[1] < 0 {
				return nil, fmt.Errorf("%w: an export of EC2 Capacity Manager has the columns %s and %s; it has %s",
					ErrNoInterruptions, columnInterruptions, columnSpotHours, strings.Join(names, ", "))
			}
			if times = slices.IndexFunc(at[4:], func(k int) bool { return k >= 0 }); times < 0 && (!ok || !hourly) {
				return nil, fmt.Errorf("it has no column %s, and no folders y=, m=, d= and h= say its hour",
					strings.Join(timeColumns, ", "))
			}
			return at, nil
		},
		Each: func(row tabular.Row) error {
			at := filed
			if times >= 0 {
				var err error
				if at, err = row.Time(4 + times); err != nil {
					return err
				}
			}
			n, err := row.Number(0)
			if err != nil {
				return err
			}
			hours, err := row.Number(1)
			if err != nil || at < r.from || at >= r.to {
				return err
			}
			if n < 0 || hours < 0 {
				return fmt.Errorf("%v interruptions in %v hours: neither can be negative", n, hours)
			}
			region := cmp.Or(row.Text(2), row.Text(3))
			x := r.out.Regions[region]
			r.out.Regions[region] = Interrupted{x.N + n, x.Hours + hours}
			return nil
		},
	}
	if r.out.Regions == nil {
		r.out.Regions = map[string]Interrupted{}
	}
	if err := t.Read(f, f.Size()); err != nil {
		return err
	}
	r.sources[sourceCapacity] = true
	return nil
}
