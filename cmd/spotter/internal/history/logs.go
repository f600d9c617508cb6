package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/policy"
)

// Logs are files from which a cluster's history is read: audit logs of its API server, captures of
// kubereplay, logs of Karpenter, or the CSV of LogParserForKarpenter. The content of a file
// determines its type and the logging service that exported it. A file may be compressed.
type Logs struct {
	// Paths are files, or folders whose files are all read, on disk or in an object store.
	Paths []string

	// JobDuration is the running time of jobs if no job ended in the logs.
	JobDuration time.Duration
}

// ErrNoEvents means that the logs contain nothing in the interval.
var ErrNoEvents = errors.New("no event of the API server and no line of Karpenter")

const logsRead = "what is read are audit logs of level Request or more, logs of Karpenter, CSV of LogParserForKarpenter and " +
	"captures of kubereplay, as lines or as a logging service exports them (CloudWatch Logs Insights: the field @message; " +
	"Azure: log_s, properties.log or AKSAudit)"

// logStep is the resolution of the times of a log.
const logStep = time.Second

// Read returns the history of an interval.
func (l *Logs) Read(ctx context.Context, from, to policy.Time) (*History, error) {
	r := &logReading{builder: newBuilder(from, to, logStep), reclaimed: map[string]bool{}}
	entries := entryReader{take: r.entry}
	files, err := EachFile(ctx, l.Paths, nil, func(_ string, f objects.File) error { return entries.file(f) })
	if err != nil {
		return nil, err
	}
	lives := r.claims.lives(from, to)
	if r.first == 0 && len(lives) == 0 {
		return nil, fmt.Errorf("%w in %d files from %v to %v; %s",
			ErrNoEvents, files, from.Std().Format(time.RFC3339), to.Std().Format(time.RFC3339), logsRead)
	}
	r.clock.last = to
	slices.SortStableFunc(r.changes, func(a, b logChange) int { return cmp.Compare(a.at, b.at) })
	for i := range r.changes {
		r.apply(&r.changes[i])
	}
	r.claimed(lives)
	if entries.empty > 0 {
		r.note(fmt.Sprintf("%d of %d files have nothing that is read", entries.empty, files))
	}
	return r.conclude(l.JobDuration), nil
}

// entry reads an object of a log. It returns false for an object that is not an entry.
func (r *logReading) entry(x fields, prefix string) (bool, error) {
	switch {
	case strings.HasPrefix(x.text("apiVersion"), "audit.k8s.io/") && !x.has("items"), x.has("verb", "stage", "objectRef"):
		e, err := auditOf(x)
		if err == nil {
			r.event(&e)
		}
		return true, err
	case x.has("type", "kind", "key", "timestamp"):
		var e replayedEvent
		raw, _ := json.Marshal(x) // the fields are valid values
		if err := json.Unmarshal(raw, &e); err != nil {
			return true, err
		}
		r.replayed(&e)
		return true, nil
	}
	return r.claims.entry(x, prefix)
}

// A replayedEvent is an event of kubereplay.
type replayedEvent struct {
	Type, Kind, Key string
	Deployment, Job *auditObject
	Replicas        *int32
	Timestamp       time.Time
}

// replayed records an event of kubereplay.
func (r *logReading) replayed(e *replayedEvent) {
	c := logChange{at: policy.TimeOf(e.Timestamp), name: e.Key, verb: e.Type,
		resource: map[string]string{"Deployment": "deployments", "Job": "jobs"}[e.Kind]}
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
}
