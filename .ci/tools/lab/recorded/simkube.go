package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
)

// A simkubeFile is what a SimKube trace holds of use here, whether it was
// written as MessagePack or as JSON.
type simkubeFile struct {
	Version *int           `json:"version"`
	Events  []simkubeEvent `json:"events"`

	// Index and Lifecycles hold by object when its pods began and ended: the
	// first in version 3, the second in version 2.
	Index      map[string]any `json:"index"`
	Lifecycles map[string]any `json:"pod_lifecycles"`
}

// A simkubeEvent is what changed at an instant.
type simkubeEvent struct {
	Seconds int64           `json:"ts"` // Unix time
	Applied []simkubeObject `json:"applied_objs"`
	Deleted []simkubeObject `json:"deleted_objs"`
}

// A simkubeObject is a Kubernetes object as it was recorded.
type simkubeObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Owners      []any             `json:"ownerReferences"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`

	// Those of a PriorityClass stand next to its metadata.
	Value            *int32 `json:"value"`
	GlobalDefault    bool   `json:"globalDefault"`
	PreemptionPolicy string `json:"preemptionPolicy"`
}

// A life is when a pod began and ended, in Unix seconds; ended is 0 while it
// runs.
type life struct{ began, ended int64 }

// The defaults for what a SimKube trace does not hold.
const (
	defaultCPU    = "500m"
	defaultMemory = "512Mi"
	defaultWork   = 10 * time.Minute
)

// readSimKube merges the events of all files.
func readSimKube(files []*input, _ *Options) (*recording, error) {
	k := &simkube{
		r: &recording{about: "Kubernetes objects of a cluster as SimKube recorded them, with every change",
			lasting: true},
		places: map[string]int{}, extra: map[string]map[string]any{}, lives: map[string][]life{},
		bare: map[string]barePod{}, skipped: map[string]map[string]bool{},
	}
	var events []simkubeEvent
	for _, in := range files {
		f, err := readSimKubeFile(in)
		if err != nil {
			return nil, err
		}
		k.readLives(f)
		events = append(events, f.Events...)
		k.file = in.path
	}
	slices.SortStableFunc(events, func(a, b simkubeEvent) int { return int(min(1, max(-1, a.Seconds-b.Seconds))) })
	if len(events) == 0 {
		return k.r, nil
	}
	k.first = events[0].Seconds
	k.r.origin = time.Unix(k.first, 0).UTC()
	k.r.end = time.Duration(events[len(events)-1].Seconds-k.first) * time.Second
	if k.r.end < 0 || k.r.end > daysMost*day {
		return nil, fmt.Errorf("%s: events[%d].ts: %d is more than ten years after the first event", k.file, len(events)-1,
			events[len(events)-1].Seconds)
	}
	for i := range events {
		e := &events[i]
		at := time.Duration(e.Seconds-k.first) * time.Second
		for j := range e.Applied {
			if err := k.apply(at, &e.Applied[j]); err != nil {
				return nil, fmt.Errorf("%s: events[%d].applied_objs[%d]: %w", k.file, i, j, err)
			}
		}
		for j := range e.Deleted {
			k.remove(at, &e.Deleted[j])
		}
	}
	k.finish()
	return k.r, nil
}

// traceMax is the most that a SimKube trace may hold: it is read whole.
const traceMax = 1 << 30

func readSimKubeFile(in *input) (*simkubeFile, error) {
	data, err := io.ReadAll(io.LimitReader(in, traceMax+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.path, err)
	}
	if len(data) > traceMax {
		return nil, fmt.Errorf("%s: it holds more than %d GiB", in.path, traceMax>>30)
	}
	if packedMap(data[0]) {
		v, err := unpack(data)
		if err != nil {
			return nil, fmt.Errorf("%s: MessagePack: %w", in.path, err)
		}
		if data, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("%s: MessagePack: %w", in.path, err)
		}
	}
	f := &simkubeFile{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %s", in.path, jsonFault(data, err))
	}
	switch {
	case f.Version == nil || f.Events == nil:
		return nil, fmt.Errorf("%s: %w: it has no version or no events, as a SimKube trace has", in.path, ErrFormat)
	case *f.Version != 2 && *f.Version != 3:
		return nil, fmt.Errorf("%s: version: %d is not 2 or 3, which are understood", in.path, *f.Version)
	}
	return f, nil
}

// jsonFault says where in data decoding failed.
func jsonFault(data []byte, err error) string {
	at := int64(-1)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at = syntax.Offset
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		at = kind.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return err.Error()
	}
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:at], []byte("\n")), err)
}

// readLives collects when the pods of each object began and ended. The objects
// are known by kind and name, as in "v1.Pod default/web".
func (k *simkube) readLives(f *simkubeFile) {
	for _, key := range slices.Sorted(maps.Keys(f.Lifecycles)) {
		var owner []string
		if json.Unmarshal([]byte(key), &owner) == nil && len(owner) == 2 {
			id := owner[0] + " " + owner[1]
			k.lives[id] = livesIn(k.lives[id], f.Lifecycles[key])
		}
	}
	for _, gvk := range slices.Sorted(maps.Keys(f.Index)) {
		objects, ok := f.Index[gvk].(map[string]any)
		if !ok {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			id := gvk + " " + name
			k.lives[id] = livesIn(k.lives[id], objects[name])
		}
	}
}

// livesIn finds {"Finished": [began, ended]} and {"Running": began} anywhere in
// v.
func livesIn(lives []life, v any) []life {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			lives = livesIn(lives, x)
		}
	case map[string]any:
		if span, ok := v["Finished"].([]any); ok && len(span) == 2 {
			began, ended := unixOf(span[0]), unixOf(span[1])
			if began > 0 && ended >= began {
				return append(lives, life{began, ended})
			}
		}
		if began := unixOf(v["Running"]); began > 0 {
			return append(lives, life{began: began})
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			lives = livesIn(lives, v[key])
		}
	}
	return lives
}

func unixOf(v any) int64 {
	if n, ok := v.(json.Number); ok {
		if x, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
			return x
		}
	}
	return 0
}

// workOf returns the mean running time of the pods that ended, of how many, or
// the default of none.
func workOf(lives []life) (time.Duration, int) {
	total, n := int64(0), 0
	for _, l := range lives {
		if l.ended > 0 {
			total += max(1, l.ended-l.began)
			n++
		}
	}
	if n == 0 {
		return defaultWork, 0
	}
	return time.Duration(total/int64(n)) * time.Second, n
}

// cronInstants returns when a CronJob creates jobs from begin to end, as times
// since first.
func cronInstants(spec *batchv1.CronJobSpec, first int64, begin, end time.Duration) ([]release, error) {
	text := spec.Schedule
	if spec.TimeZone != nil {
		text = "CRON_TZ=" + *spec.TimeZone + " " + text
	}
	s, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("spec.schedule: %q is no cron schedule: %w", spec.Schedule, err)
	}
	origin := time.Unix(first, 0).UTC()
	var out []release
	for next := s.Next(origin.Add(begin - time.Second)); !next.IsZero() &&
		next.Before(origin.Add(end)); next = s.Next(next) {
		out = append(out, release{next.Sub(origin), 1})
	}
	return out, nil
}
