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
	"slices"
	"time"

	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/policy"
)

// Logs are files that say what was asked of an API server: audit logs as it writes them, as
// CloudWatch hands them out or exports them, or what kubereplay made of them. What a file
// is, its content tells; it may be compressed.
type Logs struct {
	// Paths are files, or folders all of whose files are read, on disk or in an object
	// store.
	Paths []string

	// JobDuration is the running time of jobs where none in the logs ended.
	JobDuration time.Duration
}

// ErrNoEvents is returned where the logs have nothing of the span.
var ErrNoEvents = errors.New("no event of the API server")

// logStep is how exactly the times of a log are taken.
const logStep = time.Second

// Read returns what the logs say of a span of time.
func (l *Logs) Read(ctx context.Context, from, to policy.Time) (*History, error) {
	r := &logReading{builder: newBuilder(from, to, logStep)}
	files, err := EachFile(ctx, l.Paths, nil, func(_ string, f objects.File) error {
		text, err := tabular.Inflated(io.NewSectionReader(f, 0, f.Size()))
		if err != nil {
			return err
		}
		return r.stream(text)
	})
	if err != nil {
		return nil, err
	}
	if r.first == 0 {
		return nil, fmt.Errorf("%w in %d files from %v to %v; what is read are audit logs of level Request or more, as lines or as CloudWatch has them, and captures of kubereplay",
			ErrNoEvents, files, from.Std().Format(time.RFC3339), to.Std().Format(time.RFC3339))
	}
	r.clock.last = to
	slices.SortStableFunc(r.changes, func(a, b logChange) int { return cmp.Compare(a.at, b.at) })
	for i := range r.changes {
		r.apply(&r.changes[i])
	}
	return r.conclude(l.JobDuration), nil
}

// stream reads JSON, or lines that end with some: an export of CloudWatch has the time
// before each.
func (r *logReading) stream(b *bufio.Reader) error {
	begin, err := b.Peek(1)
	for err == nil && len(bytes.TrimSpace(begin)) == 0 {
		_, _ = b.Discard(1)
		begin, err = b.Peek(1)
	}
	if errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if begin[0] == '{' {
		for n, d := 1, json.NewDecoder(b); ; n++ {
			var x logValue
			if err := d.Decode(&x); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("value %d: %w", n, err)
			}
			if err := r.value(&x); err != nil {
				return fmt.Errorf("value %d: %w", n, err)
			}
		}
	}
	for n := 1; ; n++ {
		line, err := b.ReadBytes('\n')
		if at := bytes.IndexByte(line, '{'); at >= 0 {
			if err := r.message(line[at:]); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// A logValue is one value of a file: an event, or many of them in one of several ways.
type logValue struct {
	auditEvent

	Items     []auditEvent  `json:"items"`     // of an EventList
	Events    []loggedEvent `json:"events"`    // of CloudWatch's calls, and of kubereplay
	LogEvents []loggedEvent `json:"logEvents"` // of CloudWatch's subscriptions
}

// A loggedEvent is a message of CloudWatch, or an event of kubereplay.
type loggedEvent struct {
	Message string `json:"message"`

	Type       string          `json:"type"`
	Kind       string          `json:"kind"`
	Key        string          `json:"key"`
	Deployment *auditObject    `json:"deployment"`
	Job        *auditObject    `json:"job"`
	Replicas   *int32          `json:"replicas"`
	Timestamp  json.RawMessage `json:"timestamp"` // a number of CloudWatch's, a time of kubereplay's
}

func (r *logReading) value(x *logValue) error {
	r.event(&x.auditEvent)
	for i := range x.Items {
		r.event(&x.Items[i])
	}
	for _, list := range [][]loggedEvent{x.Events, x.LogEvents} {
		for i := range list {
			e := &list[i]
			if e.Key != "" {
				if err := r.replayed(e); err != nil {
					return fmt.Errorf("events[%d]: %w", i, err)
				}
			} else if at := bytes.IndexByte([]byte(e.Message), '{'); at >= 0 {
				if err := r.message([]byte(e.Message[at:])); err != nil {
					return fmt.Errorf("events[%d]: %w", i, err)
				}
			}
		}
	}
	return nil
}

// message reads one event; what other components log is passed over.
func (r *logReading) message(text []byte) error {
	if !bytes.Contains(text, []byte(`"audit.k8s.io/`)) {
		return nil
	}
	var e auditEvent
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	r.event(&e)
	return nil
}

// replayed notes an event of kubereplay.
func (r *logReading) replayed(e *loggedEvent) error {
	var at time.Time
	if err := json.Unmarshal(e.Timestamp, &at); err != nil {
		return fmt.Errorf("timestamp: %w", err)
	}
	c := logChange{at: policy.TimeOf(at), name: e.Key, verb: e.Type, resource: map[string]string{"Deployment": "deployments", "Job": "jobs"}[e.Kind]}
	switch {
	case e.Deployment != nil:
		c.object(e.Deployment)
	case e.Job != nil:
		c.object(e.Job)
	}
	if e.Type == "scale" {
		c.verb = "update"
	}
	if e.Replicas != nil {
		c.replicas = e.Replicas
	}
	r.add(&c)
	return nil
}
