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

// OpenTrace reads the trace at path, which may be an s3:// name or the name of an embedded trace;
// the default one when path is empty.
func OpenTrace(path string) (*trace.Trace, error) { return OpenPart(path, trace.ReadOptions{}) }

// OpenPart is [OpenTrace] of what o chooses. Of an embedded trace it is all.
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

// TraceError says what to do about a trace at path that cannot be read.
func TraceError(path string, err error) error {
	advice := TraceAdvice(path, err)
	if file := (*trace.FileError)(nil); objects.Remote(path) && !errors.As(err, &file) && !errors.Is(err, trace.ErrEmpty) {
		advice = "write s3://BUCKET/PREFIX, and set AWS_REGION, credentials, and AWS_ENDPOINT_URL_S3 where it is not AWS"
	}
	return cli.Invalid(fmt.Errorf("trace: %w", err), advice)
}

// madeAgain is what to do about a trace that is of no use.
const madeAgain = "record it again, or import its source again"

// TraceAdvice says what to do about a trace at path that cannot be read. An import is no help
// for what Spotter has written itself.
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

// Traces opens each trace once, since several scenarios may use one.
type Traces map[string]*opened

// An opened trace is read whole, or, where it has an index, a part at a time.
type opened struct {
	path    string
	whole   *trace.Trace
	index   *trace.Index // nil where whole is set
	store   trace.Store
	traffic *trace.Traffic // nil of an embedded one
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

// span returns the trace's first and last time.
func (o *opened) span() (from, to policy.Time) {
	if o.whole != nil {
		return o.whole.From, o.whole.To
	}
	return o.index.From, o.index.To
}

// part returns what a run of sc needs that is metered from start.
func (o *opened) part(sc *scenarios.Scenario, start policy.Time) (*trace.Trace, error) {
	if o.whole != nil {
		return o.whole, nil
	}
	if err := sc.CoveredBy(o.path, o.index.From, o.index.To, start); err != nil {
		return nil,
			cli.Invalid(err,
				"see what the trace holds with `spotter trace info"+Argument(o.path)+"`, and choose with --from, --windows and --trace")
	}
	reads := sc.Reads(start)
	reads.Store, reads.Traffic = o.store, o.traffic
	t, err := OpenPart(o.path, reads)
	if errors.Is(err, trace.ErrEmpty) {
		return nil, cli.Invalid(fmt.Errorf("%w: no pool of %s may buy what %s has of that time", scenarios.ErrNoMarket,
			sc.Name, o.path),
			"see what the trace holds with `spotter trace info"+Argument(o.path)+"`, and choose with --from, --windows and --trace")
	}
	return t, err
}

// StoreOf returns the store of path, nil for the disk.
func StoreOf(path string) trace.Store {
	if objects.Remote(path) {
		return &bucket{}
	}
	return nil
}

// A bucket is the store of s3:// names. Its requests have only the time limits of the SDK, since
// reads from a disk have no time limit either.
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
