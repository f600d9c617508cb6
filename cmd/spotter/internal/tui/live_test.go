package tui

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/sim"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/screen"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/record"
)

// TestFollow follows a record whose segments come one by one: each is sent once, what
// cannot be read is said and tried again, and a record is not read again at once.
func TestFollow(t *testing.T) {
	whole := inSegments(t, recorded(t), 60)
	segments, err := filepath.Glob(filepath.Join(whole, "segment=*"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	dir := t.TempDir()
	come := func(i int) {
		t.Helper()
		if err := os.CopyFS(filepath.Join(dir, filepath.Base(segments[i])), os.DirFS(segments[i])); err != nil {
			t.Fatal(err)
		}
	}
	come(0)
	now := time.Unix(1_800_000_000, 0)
	l := follower{dir: dir, clock: func() time.Time { now = now.Add(time.Second); return now }}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	send := func(msg any) { got = append(got, msg) }
	if err := l.open(r, send); err != nil {
		t.Fatal(err)
	}
	o, ok := got[0].(screen.Opened)
	if !ok || !o.Live || len(o.Runs) != 1 {
		t.Fatalf("it opens with %+v", got[0])
	}
	_, _, end := o.Runs[0].Timeline.Span()
	look := func() (grown *screen.Grown, err error) {
		t.Helper()
		got = nil
		l.look(send)
		for _, msg := range got {
			switch x := msg.(type) {
			case screen.Grown:
				grown = &x
			case screen.Looked:
				err = x.Err
			}
		}
		return grown, err
	}
	come(1)
	if g, _ := look(); g != nil {
		t.Error("it is read again at once")
	}
	now = now.Add(time.Minute)
	g, err := look()
	if g == nil || err != nil {
		t.Fatalf("what came is not sent: %v", err)
	}
	if _, _, later := g.Run.Timeline.Span(); later <= end {
		t.Errorf("it ends at %v, and ended at %v before", later, end)
	}
	now = now.Add(time.Minute)
	if g, err := look(); g != nil || err != nil {
		t.Errorf("without anything new it sends %v, %v", g, err)
	}
	come(2)
	nodes := filepath.Join(dir, filepath.Base(segments[2]), "nodes.parquet")
	text, err := os.ReadFile(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nodes, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if g, err := look(); g != nil || !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("of a damaged segment it says %v", err)
	}
	if err := os.WriteFile(nodes, text, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if g, err := look(); g == nil || err != nil {
		t.Errorf("mended, it says %v", err)
	}
}

// inSegments rewrites a recording in segments of steps steps.
func inSegments(t *testing.T, from string, steps int) string {
	t.Helper()
	r, err := record.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := record.Resume(dir, r.Meta, record.Limits{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Record(t.Context(), s.Snapshot, &s.Memory, &s.Plan); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// recorded simulates a short scenario and returns the folder of its recording.
func recorded(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "steps")
	var said strings.Builder
	p := &cli.Program{Args: []string{"sim", "tiny", "--policy", "static:share=0.5", "--seed", "5", "--intensity", "20",
		"--record", dir}, Stdout: io.Discard, Stderr: &said}
	if code := p.Run(t.Context(), func(p *cli.Program) []*cobra.Command { return []*cobra.Command{sim.Command(p)} }); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	return dir
}
