package screen

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/sim"
)

// part records the first steps of a run, decisions up to most, and returns what a
// reader has of them.
type part struct {
	*record.Writer
	most int
}

func (p *part) Record(ctx context.Context, s *policy.Snapshot, m *policy.Memory, x *policy.Plan) error {
	if p.most--; p.most < 0 {
		return nil
	}
	return p.Writer.Record(ctx, s, m, x)
}

func recorded(t *testing.T, w *prepared, steps int) Run {
	t.Helper()
	dir := t.TempDir()
	out, err := record.NewWriter(dir, record.Meta{Version: "v1", Policy: "static:share=0.7", Scenario: "live"})
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := w.config("static:share=0.7")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Recorder = &part{out, steps}
	if _, err := sim.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	line, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return Run{Name: line.About().Policy, Timeline: line}
}

// TestLive follows a record that grows: a viewer at its end stays at the end, a viewer of an
// earlier time stays there, and values that only a simulation knows are shown as unknown, not as
// zero.
func TestLive(t *testing.T) {
	w, err := prepare("squeeze", 6*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	short, long := recorded(t, w, 20), recorded(t, w, 40)
	_, _, end := short.Timeline.Span()
	_, _, later := long.Timeline.Span()
	if later <= end {
		t.Fatalf("the longer record ends at %v, the shorter at %v", later, end)
	}
	v := sit(t, 120, 40)
	send := func(msg any) { v.Update(msg) }
	send(Opened{Runs: []Run{short}, Live: true})
	send(Looked{At: end.Add(3 * time.Minute)})
	shows := func(want ...string) {
		t.Helper()
		for _, x := range want {
			if !strings.Contains(v.View(), x) {
				t.Errorf("the screen lacks %q:\n%s", x, v.View())
			}
		}
	}
	if v.play.time() != end {
		t.Errorf("it opens at %v, and the record ends at %v", v.play.time(), end)
	}
	shows("● live, 3m ago", "last decision 3m ago", "the last decision", "outage cost not known")
	send(Looked{At: end.Add(silentAfter + time.Minute)})
	shows("▲ stale, 21m ago")
	if strings.Contains(v.View(), "● live") || v.play.live.state(end).Style.Ink != draw.Warn {
		t.Errorf("a record that has stopped looks live:\n%s", v.View())
	}
	for _, never := range []string{"oracle", "$0.00", "outage 0 min"} {
		if strings.Contains(v.View(), never) {
			t.Errorf("the screen says %q of what is not known:\n%s", never, v.View())
		}
	}
	send(Grown{long})
	if v.play.time() != later {
		t.Errorf("at the end it goes on to %v, want %v", v.play.time(), later)
	}
	v.press("h")
	back := v.play.time()
	if back != later.Add(-time.Hour) {
		t.Errorf("an hour back it stands at %v", back)
	}
	v.press("5", "/", "drain", "enter")
	send(Grown{recorded(t, w, 45)})
	if v.play.time() != back || v.selection.filters[Decisions] != "drain" {
		t.Errorf("while looking back it went to %v with the filter %q", v.play.time(), v.selection.filters[Decisions])
	}
	shows("▌▌ paused")
	send(Looked{At: later.Add(time.Hour), Err: errors.New("corrupt recording")})
	shows("not read: corrupt recording")
}
