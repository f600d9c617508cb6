package record

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

var seedFlag = flag.Uint64("seed", 0, "the first seed of random tests; 0 takes the time")

// enumMax bounds random values of the enumerations.
var enumMax = map[reflect.Type]uint64{
	reflect.TypeFor[policy.CapacityType]():     uint64(policy.Reserved),
	reflect.TypeFor[policy.ForecastSource]():   uint64(policy.SourceRecorded),
	reflect.TypeFor[policy.NodePhase]():        uint64(policy.NodeDeleting),
	reflect.TypeFor[policy.Actor]():            uint64(policy.ActorPerson),
	reflect.TypeFor[policy.TaintEffect]():      uint64(policy.NoExecute),
	reflect.TypeFor[policy.PodPhase]():         uint64(policy.PodTerminating),
	reflect.TypeFor[policy.EndCause]():         uint64(policy.EndPreempted),
	reflect.TypeFor[policy.WorkloadKind]():     uint64(policy.KindDaemonSet),
	reflect.TypeFor[policy.Operator]():         uint64(policy.OpLt),
	reflect.TypeFor[policy.Provisioner]():      uint64(policy.ProvisionerClusterAutoscaler),
	reflect.TypeFor[policy.Mode]():             uint64(policy.ModeOff),
	reflect.TypeFor[policy.Consolidation]():    uint64(policy.ConsolidateNever),
	reflect.TypeFor[policy.DisruptionReason](): uint64(policy.Drifted),
}

// fill writes a random value into every field below v, so that a field which
// the tables do not hold makes a round trip unequal. Lists are nil or have
// entries.
func fill(t *testing.T, r *rand.Rand, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, r, v.Field(i))
			}
		}
	case reflect.Slice:
		n := r.IntN(4)
		if n == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, r, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, r, v.Index(i))
		}
	case reflect.String:
		v.SetString([]string{"", "a", "pool \"ü\"", "\x00\u2028<&>", fmt.Sprint(r.Uint32())}[r.IntN(5)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint8:
		v.SetUint(r.Uint64N(enumMax[v.Type()] + 1))
	case reflect.Uint64:
		v.SetUint(r.Uint64())
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		x := []int64{0, -1, 1, r.Int64()}[r.IntN(4)]
		if v.OverflowInt(x) {
			x = int64(int8(x))
		}
		v.SetInt(x)
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -0.1, r.NormFloat64() * 1e-300, r.Float64()}[r.IntN(5)])
	default:
		t.Fatalf("a field of kind %v is new: teach the generator", v.Kind())
	}
}

func random[E any](t *testing.T, r *rand.Rand) E {
	t.Helper()
	var e E
	fill(t, r, reflect.ValueOf(&e).Elem())
	return e
}

// change replaces, adds or drops entries of a table.
func change[E any](t *testing.T, r *rand.Rand, table []E) []E {
	t.Helper()
	out := slices.Clone(table)
	for range r.IntN(3) {
		if len(out) > 0 {
			out[r.IntN(len(out))] = random[E](t, r)
		}
	}
	if len(out) > 0 && r.IntN(5) == 0 {
		out = out[:r.IntN(len(out))]
	}
	for range r.IntN(3) {
		out = append(out, random[E](t, r))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// steps returns a run of random snapshots, each a change of the one before.
func steps(t *testing.T, r *rand.Rand, n int) []*Step {
	t.Helper()
	s := random[policy.Snapshot](t, r)
	s.Now = 1_700_000_000_000
	var out []*Step
	for i := range n {
		s.Types, s.Markets, s.Pools = change(t, r, s.Types), change(t, r, s.Markets), change(t, r, s.Pools)
		s.Nodes, s.Pods = change(t, r, s.Nodes), change(t, r, s.Pods)
		s.Templates, s.Workloads, s.PDBs = change(t, r, s.Templates), change(t, r, s.Workloads), change(t, r, s.PDBs)
		s.Ended, s.Zones = random[[]policy.EndedPod](t, r), random[[]string](t, r)
		s.Quotas, s.Sources = random[[]policy.Quota](t, r), random[[]policy.Source](t, r)
		s.Commitments = random[[]policy.Commitment](t, r)
		s.Now += policy.Time(r.Int64N(2_000_000)) + 1
		s.EstimateUse()
		copied := s
		out = append(out, &Step{
			Number: int64(i + 1), Snapshot: &copied,
			Memory: random[policy.Memory](t, r), Plan: random[policy.Plan](t, r),
		})
	}
	return out
}

func write(t *testing.T, w *Writer, steps []*Step) {
	t.Helper()
	for _, s := range steps {
		if err := w.Record(context.Background(), s.Snapshot, &s.Memory, &s.Plan); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func newWriter(t *testing.T, dir string, meta Meta) *Writer {
	t.Helper()
	w, err := NewWriter(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, dir string) []*Step {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []*Step
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

var testMeta = Meta{Version: "v1", Policy: "static:share=0.5", Scenario: "web-week", Seed: 1 << 63, Note: "n"}

func TestRoundTrip(t *testing.T) {
	first := *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for seed := first; seed < first+3; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		want := steps(t, r, 9)
		dir := t.TempDir()
		w := newWriter(t, dir, testMeta)
		w.limits.Steps = 1 + r.IntN(6)
		write(t, w, want)
		got := read(t, dir)
		if len(got) != len(want) {
			t.Fatalf("%d steps read of %d; repeat with -seed=%d", len(got), len(want), seed)
		}
		for i := range want {
			if *got[i].Meta != testMeta {
				t.Fatalf("step %d is of %+v", i, got[i].Meta)
			}
			got[i].Meta = nil
			if path := unequal(reflect.ValueOf(want[i]), reflect.ValueOf(got[i]), "step"); path != "" {
				t.Fatalf("%s differs; repeat with -seed=%d", path, seed)
			}
		}
		rec, err := Open(dir)
		if err != nil || rec.Meta != testMeta {
			t.Fatalf("meta %+v, %v", rec.Meta, err)
		}
	}
}

// unequal returns the path to the first field that differs.
func unequal(a, b reflect.Value, path string) string {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer:
		return unequal(a.Elem(), b.Elem(), path)
	case reflect.Struct:
		for i := range a.NumField() {
			if p := unequal(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); p != "" {
				return p
			}
		}
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if p := unequal(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
	}
	return fmt.Sprintf("%s: %#v, read %#v", path, a.Interface(), b.Interface())
}

// A price that stands still moves the history on without a row, which is most
// of what happens in a market.
func TestHistoryTakesNoRows(t *testing.T) {
	const grid = 600_000
	start := policy.Time(1_700_000_400_000)
	m := policy.Market{Name: "m", Offered: true, Price: 7, OnDemand: 9}
	var want []*Step
	for i := range 40 {
		now := start + policy.Time(i)*grid/2 // every other step is off the grid
		if now%grid == 0 || i == 0 {
			h := append(slices.Clone(m.History), m.Price)
			m.History = h[max(0, len(h)-historyMax):]
		}
		if i == 30 {
			m.Price = 8
		}
		want = append(want, &Step{
			Number: int64(i + 1), Memory: policy.Memory{Decisions: uint64(i)},
			Snapshot: &policy.Snapshot{Now: now, Markets: []policy.Market{m}},
		})
	}
	dir := t.TempDir()
	write(t, newWriter(t, dir, testMeta), want)
	got := read(t, dir)
	for i := range want {
		got[i].Meta = nil
		if path := unequal(reflect.ValueOf(want[i]), reflect.ValueOf(got[i]), "step"); path != "" {
			t.Fatal(path)
		}
	}
	_, pf, err := openFile(filepath.Join(segmentDir(dir, 1), tableMarkets+".parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if n := pf.NumRows(); n > 3 {
		t.Errorf("%d rows for one price change, want at most 3", n)
	}
}

// A recorder copies: the observer writes into the tables that it gave.
func TestWriterCopies(t *testing.T) {
	nodes := []policy.Node{
		{Name: "a", Phase: policy.NodeInitialized},
		{Name: "b", Labels: []policy.Label{{Key: "k", Value: "1"}}},
	}
	history := []policy.Money{1, 2}
	s := &policy.Snapshot{Now: 1, Nodes: nodes, Markets: []policy.Market{{Name: "m", History: history}}}
	dir := t.TempDir()
	w := newWriter(t, dir, testMeta)
	record := func() {
		if err := w.Record(context.Background(), s, &policy.Memory{}, &policy.Plan{Wake: s.Now + 1}); err != nil {
			t.Fatal(err)
		}
	}
	record()
	s.Now = 2
	nodes[0].Phase, nodes[1].Labels[0].Value, history[0] = policy.NodeDraining, "2", 5
	record()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, dir)
	n := got[1].Snapshot.Nodes
	if n[0].Phase != policy.NodeDraining || n[1].Labels[0].Value != "2" || got[1].Snapshot.Markets[0].History[0] != 5 {
		t.Errorf("the second step reads %+v", got[1].Snapshot)
	}
	if n := got[0].Snapshot.Nodes; n[0].Phase != policy.NodeInitialized || n[1].Labels[0].Value != "1" {
		t.Errorf("the first step reads %+v", n)
	}
}

// A complete segment whose rows contradict each other is corrupt.
func TestContradictingRows(t *testing.T) {
	for name, rows := range map[string][]podRow{
		"missing entry":  {{Step: 1, Slot: 0, Phase: "ready"}},
		"slot too large": {{Step: 1, Slot: 0, Phase: "ready"}, {Step: 1, Slot: 2, Phase: "ready"}},
		"step of before": {{Step: 0, Slot: 0, Phase: "ready"}, {Step: 1, Slot: 0, Phase: "ready"}, {Step: 1, Slot: 1, Phase: "ready"}},
		"unknown phase":  {{Step: 1, Slot: 0, Phase: "happy"}, {Step: 1, Slot: 1, Phase: "ready"}},
	} {
		dir := t.TempDir()
		s := small(1)
		s.Snapshot.Pods = make([]policy.Pod, 2)
		write(t, newWriter(t, dir, testMeta), []*Step{s})
		pods, err := create[podRow](segmentDir(dir, 1), tablePods, &testMeta, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			pods.add(r)
		}
		if err := errors.Join(pods.flush(), pods.close()); err != nil {
			t.Fatal(err)
		}
		if err := readAll(dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "pods.parquet") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func small(now policy.Time) *Step {
	return &Step{Snapshot: &policy.Snapshot{Now: now}, Plan: policy.Plan{Wake: now + 1}}
}

func TestUnfinishedSegmentIsReported(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, testMeta)
	w.limits.Steps = 2
	for now := range policy.Time(5) {
		s := small(now + 1)
		if err := w.Record(context.Background(), s.Snapshot, &s.Memory, &s.Plan); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir) // the writer was never closed, as after a crash
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "unfinished-00003") {
		t.Errorf("warnings %q", r.Warnings)
	}
	if got := read(t, dir); len(got) != 4 || got[3].Snapshot.Now != 4 {
		t.Errorf("%d steps read, want the 4 of the complete segments", len(got))
	}
	again := newWriter(t, dir, testMeta) // a restart continues after the last complete step
	write(t, again, []*Step{small(9)})
	got := read(t, dir)
	if len(got) != 5 || got[4].Number != 5 || got[4].Snapshot.Now != 9 {
		t.Errorf("after a restart %d steps, the last %+v", len(got), got[len(got)-1])
	}
	if err := w.Close(); err == nil {
		t.Error("the first writer completed a segment whose name was taken")
	}
}

func TestNewWriterRefusesOtherFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, newWriter(t, dir, testMeta), []*Step{small(1)})
	other := testMeta
	other.Seed = 2
	if _, err := NewWriter(dir, other); !errors.Is(err, ErrOtherRecording) || !strings.Contains(err.Error(), "web-week") {
		t.Errorf("other seed: %v", err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewWriter(foreign, testMeta); !errors.Is(err, ErrOtherRecording) || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf("foreign folder: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNoRecording) {
		t.Errorf("empty folder: %v", err)
	}
}

// Whatever happens to the bytes of a file, reading it is an error or gives
// steps, and never a panic.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 0))
	write(t, newWriter(t, dir, testMeta), steps(t, r, 6))
	for _, table := range []string{tableSteps, tableMarkets, tablePlan} {
		path := filepath.Join(segmentDir(dir, 1), table+".parquet")
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := [][]byte{nil, []byte("PAR1"), []byte("a,b\n1,2\n")}
		for i := 1; i < 5; i++ {
			damaged = append(damaged, good[:len(good)*i/5])
			flipped := slices.Clone(good)
			flipped[len(good)*i/5] ^= 0x55
			damaged = append(damaged, flipped)
		}
		for i, b := range damaged {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := readAll(dir); err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%s, damage %d: the error does not name the file: %v", table, i, err)
			} else if err == nil {
				t.Errorf("%s, damage %d: %d bytes of %d are read without an error", table, i, len(b), len(good))
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(segmentDir(dir, 1), "pods.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := readAll(dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "pods.parquet") {
		t.Errorf("missing table: %v", err)
	}
}

func readAll(dir string) error {
	r, err := Open(dir)
	if err != nil {
		return err
	}
	for _, err := range r.Steps() {
		if err != nil {
			return err
		}
	}
	return nil
}
