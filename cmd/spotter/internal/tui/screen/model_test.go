package screen

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/sim"
)

// TestPlay lets the screen play: shown time passes at the speed that is shown, not
// at all in a pause, and ends with the run.
func TestPlay(t *testing.T) {
	v := sit(t, 120, 40)
	v.play.story = nil // it would pause there
	passed := func(d time.Duration) time.Duration {
		before := v.play.time()
		v.wait(d)
		return v.play.time().Sub(before)
	}
	v.wait(frameTime) // the first tick sets when playing began
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%s: %v passed, not about %v", what, got, want)
		}
	}
	near("as it begins", passed(2*time.Second), 2*time.Hour)
	v.press("+")
	near("faster", passed(2*time.Second), 4*time.Hour)
	v.press("-", "-")
	near("slower", passed(2*time.Second), time.Hour)
	if v.press("space"); passed(time.Second) != 0 {
		t.Error("time passes in a pause")
	}
	if v.play.next() != nil {
		t.Error("it asks for ticks although nothing moves")
	}
	v.press("t", "thu 20:00", "enter", "space")
	if v.wait(10 * time.Second); v.play.time() != v.play.shown().to || v.play.clock.playing {
		t.Errorf("it plays on at %v, after the end at %v", v.play.time(), v.play.shown().to)
	}
	if v.press("space"); v.play.time() != v.play.shown().from || !v.play.clock.playing {
		t.Errorf("from the end it does not begin again but is at %v", v.play.time())
	}
}

// TestStep steps by event and by decision, on and back: every instant is one of the
// run's, none is left out, and the way back is the way there.
func TestStep(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "t", "tue 00:00", "enter")
	line := v.play.shown().Timeline
	for _, one := range []struct {
		on, back string
		known    func() bool
	}{
		{"right", "left", func() bool {
			i, ok := line.PreviousEvent(v.play.time() + 1)
			return ok && line.Event(i).At == v.play.time()
		}},
		{"]", "[", func() bool {
			i, ok := line.PreviousDecision(v.play.time() + 1)
			return ok && line.Decision(i).At == v.play.time()
		}},
	} {
		v.press(one.on)
		start := v.play.time()
		for range 20 {
			before := v.play.time()
			if v.press(one.on); v.play.time() <= before || !one.known() {
				t.Fatalf("%s goes from %v to %v", one.on, before, v.play.time())
			}
		}
		for range 20 {
			v.press(one.back)
		}
		if v.play.time() != start {
			t.Errorf("20 steps of %s and of %s end at %v, not %v", one.on, one.back, v.play.time(), start)
		}
	}
}

// TestOutageSums holds that what is shown of the outages of each workload at the end is
// what the run came to, though it is counted from events.
func TestOutageSums(t *testing.T) {
	v := sit(t, 120, 40)
	s := v.play.shown()
	res, err, done := s.Timeline.Ended()
	if err != nil || !done || res.Incidents == 0 {
		t.Fatalf("the run came to %+v, %v, %v", res, err, done)
	}
	for i := range res.Workloads {
		w := &res.Workloads[i]
		got, want := s.outageOf(s.workload(w.Name), s.from, s.to), outageSum{total: w.Outage, incidents: int(w.Incidents),
			longest: w.Longest.Outage, began: w.Longest.Began}
		if got.now = false; got != want {
			t.Errorf("%s: shown %+v, the run came to %+v", w.Name, got, want)
		}
	}
}

// TestJump goes through all reclaims and outages, which are as many as the run has.
func TestJump(t *testing.T) {
	for key, kind := range map[string]timeline.Kind{"r": timeline.Reclaimed, "o": timeline.OutageBegan, "n": timeline.Noticed} {
		v := sit(t, 120, 40)
		v.press("space", "H", "H") // from the start of warm-up
		line, instants := v.play.shown().Timeline, map[int64]bool{}
		for i := range line.Events() {
			if e := line.Event(i); e.Kind == kind && e.At > v.play.time() {
				instants[int64(e.At)] = true
			}
		}
		n := 0
		for v.press("g", key); !strings.HasPrefix(v.prompt.note, "no "); v.press("g", key) {
			if n++; !instants[int64(v.play.time())] || n > len(instants) {
				t.Fatalf("g %s goes to %v, where there is none", key, v.play.time())
			}
		}
		if n != len(instants) || n == 0 {
			t.Errorf("g %s finds %d instants of %d", key, n, len(instants))
		}
		at := v.play.time()
		if v.press("G", key); v.play.time() >= at {
			t.Errorf("G %s does not go back", key)
		}
	}
}

// TestFilter filters nodes while it is typed, keeps it on enter, and brings back
// what was there on escape.
func TestFilter(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "t", "wed 14:00", "enter", "1")
	all := len(v.play.shown().nodePane.grid.Nodes)
	v.press("/", "on-demand")
	some := len(v.play.shown().nodePane.grid.Nodes)
	if some == 0 || some >= all {
		t.Fatalf("%d of %d nodes are on-demand", some, all)
	}
	for i := range v.play.shown().nodePane.grid.Nodes {
		if v.play.shown().nodePane.grid.Nodes[i].Spot {
			t.Error("a spot node is left")
		}
	}
	v.press("enter", "/", "x", "y", "esc")
	if got := len(v.play.shown().nodePane.grid.Nodes); got != some {
		t.Errorf("after escape %d nodes are shown, not %d", got, some)
	}
	if v.press("esc"); len(v.play.shown().nodePane.grid.Nodes) != all {
		t.Error("escape does not take the filter away")
	}
	if v.press("5", "/", "NOTICE", "enter"); len(v.play.shown().decisionPane.log.Entries) == 0 {
		t.Error("no decision for a notice is found")
	}
	for _, e := range v.play.shown().decisionPane.log.Entries {
		if e.Entry.Why.Reason != "notice" {
			t.Errorf("a decision for %s is left", e.Entry.Why.Reason)
		}
	}
}

// TestMouse clicks on a pane, a node and the bar of the run, and turns the wheel.
func TestMouse(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "t", "wed 14:00", "enter")
	click := func(x, y int, button tea.MouseButton) {
		v.send(tea.MouseMsg{X: x, Y: y, Button: button, Action: tea.MouseActionPress})
	}
	l := v.layout()
	for _, a := range l.areas {
		if click(a.x+a.w-3, a.y, tea.MouseButtonLeft); v.port.pane != a.pane {
			t.Errorf("a click on %v focuses %v", a.pane, v.port.pane)
		}
	}
	nodes, found := inside(l.areas[0].rect), 0
	for y := range nodes.h {
		for x := range nodes.w {
			if _, ok := v.play.shown().nodePane.grid.NodeAt(nodes.w, nodes.h, x, y); ok && found == 0 {
				found++
				click(nodes.x+x, nodes.y+y, tea.MouseButtonLeft)
				click(nodes.x+x, nodes.y+y, tea.MouseButtonLeft)
			}
		}
	}
	if v.selection.chosen[Nodes] == "" || len(v.port.inspected) != 1 || v.port.inspected[0].name != v.selection.chosen[Nodes] {
		t.Errorf("two clicks on a node select %q and inspect %v", v.selection.chosen[Nodes], v.port.inspected)
	}
	before := v.play.time()
	if click(60, l.scrub.y+1, tea.MouseButtonWheelDown); v.play.time().Sub(before) != time.Hour {
		t.Errorf("the wheel on the bar moves by %v", v.play.time().Sub(before))
	}
	click(l.scrub.w-1, l.scrub.y+1, tea.MouseButtonLeft)
	if s := v.play.shown(); s.to.Sub(v.play.time()) > 2*time.Hour {
		t.Errorf("a click on the end of the bar goes to %v of a run to %v", v.play.time(), s.to)
	}
}

// TestInspect goes from a reclaimed node, which is gone, to the decision about it
// and back.
func TestInspect(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "1")
	for v.press("g", "r"); ; v.press("g", "r") {
		if strings.HasPrefix(v.prompt.note, "no ") {
			t.Fatal("no node was reclaimed that something was decided about")
		}
		if _, _, ok := v.play.shown().Timeline.DecisionAbout(v.selection.chosen[Nodes], v.play.time()); ok {
			break
		}
	}
	name := v.selection.chosen[Nodes]
	v.press("enter")
	for _, want := range []string{"Node " + name, "before it went", "reclaimed", "second was", "What else was possible"} {
		if !strings.Contains(v.text(), want) {
			t.Errorf("what is said of %s lacks %q:\n%s", name, want, v.text())
		}
	}
	v.press("enter")
	if !strings.Contains(v.text(), "Decision") || !strings.Contains(v.text(), name) {
		t.Errorf("behind %s is not the decision about it:\n%s", name, v.text())
	}
	v.press("esc")
	if v.inspector.known != "Node "+name {
		t.Errorf("escape goes back to %q", v.inspector.known)
	}
	if v.press("esc"); len(v.port.inspected) != 0 {
		t.Error("escape does not leave the inspector")
	}
}

// text is all that the inspector says.
func (v *viewer) text() string {
	var b strings.Builder
	b.WriteString(v.inspector.known)
	for _, s := range v.inspector.panel.Sections {
		b.WriteString("\n" + s.Title)
		for _, i := range s.Items {
			b.WriteString("\n" + i.Key + " " + i.Value)
		}
	}
	return b.String()
}

// TestStream shows runs while other goroutines simulate them: the screen never shows a time that
// is not yet simulated, and in the end it equals that of runs that had ended before.
func TestStream(t *testing.T) {
	done := sit(t, 120, 40)
	p, err := prepare("squeeze", days*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var o Opened
	var all sync.WaitGroup
	var starts []func()
	for i, spec := range policies {
		cfg, line, err := p.config(spec)
		if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, func() { line.Finish(sim.Run(context.Background(), cfg)) })
		if i == len(policies)-1 {
			o.Baseline = line
		} else {
			o.Runs = append(o.Runs, Run{Name: spec, Timeline: line})
		}
	}
	v := &viewer{Model: New("squeeze", draw.Plain), t: t, clock: time.Unix(1_800_000_000, 0)}
	v.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	if !strings.Contains(v.View(), "loading squeeze") {
		t.Errorf("before anything is open it shows:\n%s", v.View())
	}
	v.send(o)
	for _, start := range starts {
		all.Go(start)
	}
	v.press("+", "+", "+", "+", "+")
	for !v.play.shown().done {
		v.wait(frameTime)
		fills(t, v, 120, 40)
		if v.play.time() > max(v.play.shown().until, v.play.shown().warmup) {
			t.Fatalf("%v is shown of a run until %v", v.play.time(), v.play.shown().until)
		}
	}
	all.Wait()
	v.wait(frameTime)
	v.send(Bounded{Cost: bound})
	for _, x := range []*viewer{v, done} {
		if x.play.clock.playing {
			x.press("space")
		}
		x.play.clock.speed = usualSpeed
		x.press("t", "wed 14:00", "enter", "b", "b")
	}
	if v.View() != done.View() {
		t.Errorf("a run that streamed in looks different:\n%s\nfrom one that was done:\n%s", v.View(), done.View())
	}
}

// TestFailures shows a run that failed on the screen and afterwards, and ends when
// there is nothing to show.
func TestFailures(t *testing.T) {
	p, err := prepare("squeeze", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, line, err := p.config("spot")
	if err != nil {
		t.Fatal(err)
	}
	broke := errors.New("the market is on fire")
	line.Finish(nil, broke)
	v := &viewer{Model: New("squeeze", draw.Plain), t: t}
	v.send(tea.WindowSizeMsg{Width: 200, Height: 40})
	v.send(Opened{Runs: []Run{{Name: "spot", Timeline: line}}})
	if !strings.Contains(v.View(), broke.Error()) || v.left {
		t.Errorf("the screen does not say that the run failed, or ends:\n%s", v.View())
	}
	if err := v.Err(); !errors.Is(err, broke) || !strings.Contains(err.Error(), "spot") {
		t.Errorf("the error is %v", err)
	}
	v = &viewer{Model: New("squeeze", draw.Plain), t: t}
	if v.send(Failed{broke}); !v.left || !errors.Is(v.Err(), broke) {
		t.Errorf("with nothing to show it goes on, or forgets why: %v", v.Err())
	}
}

// TestBaselineRow selects and inspects the baseline, which is in the table of savings although it
// is not one of the requested runs.
func TestBaselineRow(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("3", "z")
	l := v.layout()
	in := l.size(Savings, 0)
	for y := in.y; v.selection.chosen[Savings] != "on-demand"; y++ {
		if y == in.y+in.h {
			t.Fatalf("no line of the table is the baseline:\n%s", v.View())
		}
		v.send(tea.MouseMsg{X: in.x + 2, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	}
	if v.press("enter"); v.inspector.known != "Policy on-demand" {
		t.Errorf("the inspector is on %q", v.inspector.known)
	}
}
