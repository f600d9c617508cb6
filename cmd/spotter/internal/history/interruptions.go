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
	// Source names what they were read from.
	Source string

	// Events are of instances, ascending by time and instance.
	Events []Interruption

	// Regions has what EC2 Capacity Manager counted by region, of all clusters of the
	// accounts that it is of, under "" where it names none; nil without an export of it.
	Regions map[string]Interrupted
}

// An Interruption is an instance that was taken: an ID of EC2, a name of Compute Engine.
type Interruption struct {
	At       policy.Time
	Instance string
}

// Interrupted is how many Spot instances were reclaimed, in how many instance-hours.
type Interrupted struct{ N, Hours float64 }

// ErrNoInterruptions is returned where files have nothing that could say it.
var ErrNoInterruptions = errors.New("nothing that says what was interrupted")

// datePath finds the day of a file where folders name it, as CloudTrail, Cloud Logging and
// Capacity Manager do, and the hour where that is one.
var datePath = regexp.MustCompile(`/(?:y=)?(\d{4})/(?:m=)?(\d{2})/(?:d=)?(\d{2})/(?:h=(\d{2})/)?`)

// dayOf returns what the folders of a file say of its time.
func dayOf(name string) (at policy.Time, hour, ok bool) {
	m := datePath.FindStringSubmatch(name)
	if m == nil {
		return 0, false, false
	}
	t, err := time.Parse("2006 01 02 15", strings.Join([]string{m[1], m[2], m[3], cmp.Or(m[4], "00")}, " "))
	return policy.TimeOf(t), m[4] != "", err == nil
}

// fileLate is how long after an event the folders of its file may say it was.
const fileLate = 24 * time.Hour

// ReadInterruptions returns what files have of a span of time: logs of CloudTrail, exported
// or as lookup-events prints them; entries of Cloud Logging, a list or a line each; and data
// exports of EC2 Capacity Manager, CSV or Parquet. What a file is, its content tells.
// Paths are files or folders, on disk or in an object store; of folders by date only those
// of the span are opened.
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

// interruptions are being read.
type interruptions struct {
	from, to policy.Time
	sources  map[string]bool
	seen     map[Interruption]bool // a trail of all regions and one of the region have the same
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

// A logEntry is what is read of an entry of CloudTrail or of Cloud Logging, or of a file of
// them.
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

	Records []logEntry `json:"Records"` // of a file of CloudTrail
	Detail  *logEntry  `json:"detail"`  // of EventBridge
}

// lookedUp is what lookup-events of CloudTrail prints.
type lookedUp struct {
	Events []struct {
		CloudTrailEvent string `json:"CloudTrailEvent"`
	} `json:"Events"`
}

// log reads values of JSON, each an entry or many.
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

// entry notes what an entry says. One of anything else shows that its log is there.
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

// LastOf returns the last element of a provider ID, an ARN or a resource name: what
// instances are called.
func LastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Columns of a data export of Capacity Manager, as GetCapacityManagerMetricData names its
// metrics and dimensions. Both are compared without case and signs.
const (
	columnInterruptions = "spot-total-interruptions-inst"
	columnSpotHours     = "spot-total-usage-hrs-inst"
	columnRegion        = "resource-region"
)

// timeColumns are what the time of a row may be called; without one the folders say it.
var timeColumns = []string{"timestamp", "datapoint-timestamp", "start-timestamp", "start-time", "hour"}

// export reads a file of Capacity Manager, in which each row is of an hour.
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
