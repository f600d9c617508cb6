package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// OpenTrace reads the trace at path, which may be an s3:// URL or the name of an embedded trace;
// the default trace if path is empty.
func OpenTrace(path string) (*trace.Trace, error) { return OpenPart(path, trace.ReadOptions{}) }

// OpenPart reads the part of a trace that o selects. It always returns all of an embedded trace.
func OpenPart(path string, o trace.ReadOptions) (*trace.Trace, error) {
	if t, ok, err := trace.EmbeddedNamed(path); ok {
		if err != nil {
			return nil, cli.Invalid(fmt.Errorf("trace: %w", err), "name one of those")
		}
		return t, nil
	}
	if o.Store == nil {
		o.Store = StoreOf(path)
	}
	t, err := trace.Open(path, o)
	if errors.Is(err, trace.ErrEmpty) && o.Whole() {
		return nil, cli.Invalid(fmt.Errorf("trace: %w", err), madeAgain)
	}
	if err != nil {
		return nil, TraceError(path, err)
	}
	return t, nil
}

// TraceError returns the error for a trace at path that cannot be read, with advice.
func TraceError(path string, err error) error {
	advice := TraceAdvice(path, err)
	if file := (*trace.FileError)(nil); objects.Remote(path) && !errors.As(err, &file) && !errors.Is(err, trace.ErrEmpty) {
		advice = "write s3://BUCKET/PREFIX, and set AWS_REGION, credentials, and AWS_ENDPOINT_URL_S3 where it is not AWS"
	}
	return cli.Invalid(fmt.Errorf("trace: %w", err), advice)
}

// madeAgain is the advice about a trace that cannot be used.
const madeAgain = "record it again, or import its source again"

// TraceAdvice explains what to do about a trace at path that cannot be read. It does not suggest to
// import a file that Spotter has written.
func TraceAdvice(path string, err error) string {
	fault := (*trace.FileError)(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "give a folder that `spotter trace import` wrote, or leave --trace out for the embedded prices"
	case errors.Is(err, trace.ErrVersion):
		return "read it with the version of Spotter that wrote it"
	case errors.Is(err, trace.ErrCorrupt), errors.As(err, &fault) && fault.Own:
		return madeAgain
	case errors.Is(err, trace.ErrEmpty):
		return "choose more of it, or another trace: `spotter trace info" + Argument(path) + "` says what it has"
	}
	return "make a trace of it with `spotter trace import" + Argument(path) + " --out DIR`"
}

// Traces opens each trace only once, because several scenarios may use the same one.
type Traces map[string]*opened

// An opened trace is read as a whole or, if it has an index, in parts.
type opened struct {
	path    string
	whole   *trace.Trace
	index   *trace.Index // nil if whole is set
	store   trace.Store
	traffic *trace.Traffic // nil for an embedded trace
}

func (t Traces) open(path string) (*opened, error) {
	if o, ok := t[path]; ok {
		return o, nil
	}
	o := &opened{path: path, store: StoreOf(path)}
	var err error
	if !trace.IsEmbedded(path) {
		o.traffic = &trace.Traffic{}
		if o.index, err = trace.ReadIndex(path, o.store); err != nil {
			return nil, TraceError(path, err)
		}
	}
	if o.index == nil {
		if o.whole, err = OpenPart(path, trace.ReadOptions{Store: o.store, Traffic: o.traffic}); err != nil {
			return nil, err
		}
	}
	t[path] = o
	return o, nil
}

// span returns the first and the last time of the trace.
func (o *opened) span() (from, to policy.Time) {
	if o.whole != nil {
		return o.whole.From, o.whole.To
	}
	return o.index.From, o.index.To
}

// part returns the part of the trace for a run of sc whose metered window starts at start.
func (o *opened) part(sc *scenarios.Scenario, start policy.Time) (*trace.Trace, error) {
	if o.whole != nil {
		return o.whole, nil
	}
	if err := sc.CheckCovered(start, o.path, o.index.From, o.index.To); err != nil {
		return nil,
			cli.Invalid(err,
				"see what the trace holds with `spotter trace info"+Argument(o.path)+"`, and choose with --from, --windows and --trace")
	}
	reads := sc.ReadOptions(start)
	reads.Store, reads.Traffic = o.store, o.traffic
	t, err := OpenPart(o.path, reads)
	if errors.Is(err, trace.ErrEmpty) {
		return nil, cli.Invalid(fmt.Errorf("%w: no pool of %s may buy what %s has of that time", scenarios.ErrNoMarket,
			sc.Name, o.path),
			"see what the trace holds with `spotter trace info"+Argument(o.path)+"`, and choose with --from, --windows and --trace")
	}
	return t, err
}

// StoreOf returns the store of path, nil for the file system.
func StoreOf(path string) trace.Store {
	if objects.Remote(path) {
		return &bucket{}
	}
	return nil
}

// A bucket is the store of s3:// URLs. Requests have no time limits other than those of the SDK,
// like reads from a disk.
type bucket struct{ objects objects.Store }

// List implements [trace.Store].
func (b *bucket) List(name string) ([]trace.Entry, error) {
	if strings.HasSuffix(name, ".parquet") {
		f, err := b.objects.Open(context.Background(), name)
		if err != nil {
			return nil, err
		}
		return []trace.Entry{{Name: name, Size: f.Size()}}, f.Close()
	}
	found, err := b.objects.List(context.Background(), name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: nothing exists there: %w", name, fs.ErrNotExist)
	}
	all := make([]trace.Entry, len(found))
	for i, x := range found {
		all[i] = trace.Entry{Name: x.Name, Size: x.Size}
	}
	return all, nil
}

// Open implements [trace.Store].
func (b *bucket) Open(name string) (trace.File, error) {
	return b.objects.Open(context.Background(), name)
}
