package screen

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// TestStory: the story is an outage of the run that it names, the other run has no outage at that
// time if the text says so, and the order of the runs does not matter. Where not all events are
// known, there is no story.
func TestStory(t *testing.T) {
	v := sit(t, 120, 40)
	x := v.play.story
	if x == nil || !strings.Contains(v.View(), x.text) {
		t.Fatalf("the story is %+v, and the screen shows:\n%s", x, v.View())
	}
	s := v.play.shows[x.of]
	if !slices.ContainsFunc(s.outages, func(o outage) bool { return o.from == x.at }) {
		t.Errorf("no outage of %s begins at %v", s.Name, x.at)
	}
	if !strings.Contains(x.text, s.Name+" has a ") {
		t.Errorf("it is of %s and says %q", s.Name, x.text)
	}
	if other := v.play.shows[1-x.of]; strings.HasSuffix(x.text, other.Name+" none") {
		for _, o := range other.outages {
			if o.from <= x.at && (o.to == 0 || o.to > x.at) {
				t.Errorf("%s has an outage at %v, and the story says %q", other.Name, x.at, x.text)
			}
		}
	}
	back := slices.Clone(v.play.shows)
	slices.Reverse(back)
	if y, ok := findStory(back); !ok || y.at != x.at || y.text != x.text {
		t.Errorf("the other way round it is %+v, want %+v", y, x)
	}
	recorded := *s
	recorded.run = &run{Run: s.run.Run, inventory: s.inventory, progress: s.progress}
	recorded.about.Recorded = true
	failed := recorded
	failed.run = &run{Run: s.run.Run, inventory: s.inventory, progress: s.progress}
	failed.err = errors.New("broke")
	for _, shows := range [][]*show{{s, &recorded}, {s, &failed}} {
		if y, ok := findStory(shows); ok {
			t.Errorf("of runs that are not known whole it says %q", y.text)
		}
	}
}

// madeShow is a run of a week with the given outages and reclaims, in hours.
func madeShow(name string, outages [][2]float64, reclaims ...float64) *show {
	at := func(h float64) policy.Time { return monday.Add(time.Duration(h * float64(time.Hour))) }
	r := &run{Run: Run{Name: name}, inventory: inventory{from: monday, to: at(168)}, progress: progress{done: true, until: at(168)}}
	for _, o := range outages {
		r.outages = append(r.outages, outage{from: at(o[0]), to: at(o[1])})
	}
	for _, h := range reclaims {
		r.reclaims = append(r.reclaims, reclaim{at: at(h)})
	}
	return &show{run: r}
}

// TestStoryOf holds what is said of runs whose outages can be read off.
func TestStoryOf(t *testing.T) {
	for _, one := range []struct {
		name  string
		shows []*show
		want  string
	}{
		{"the one that differs, not the longest", []*show{
			madeShow("a", [][2]float64{{10, 12}, {30, 30.5}}, 29.9, 29.95, 20), madeShow("b", [][2]float64{{10.5, 12.4}})},
			"Tue 6 06:00, 2 reclaims: a has a 30m outage, b none"},
		{"both, one of them longer", []*show{madeShow("a", [][2]float64{{10, 10.5}}), madeShow("b", [][2]float64{{10, 12}, {12.05, 13}})},
			"Mon 5 10:00, b has a 2h57m outage, a 30m"},
		{"overlapping workloads count once", []*show{madeShow("a", [][2]float64{{10, 11}, {10, 11}, {10.5, 11}}),
			madeShow("b", nil)}, "Mon 5 10:00, a has a 1h outage, b none"},
		{"before the window nothing counts", []*show{madeShow("a", [][2]float64{{-5, -1}, {-1, 0.25}}), madeShow("b", nil)},
			"Mon 5 00:00, a has a 15m outage, b none"},
		{"a policy alone", []*show{madeShow("a", [][2]float64{{10, 11}})}, "Mon 5 10:00, a has a 1h outage"},
		{"reclaims where outages are alike", []*show{madeShow("a", nil, 5, 50, 50.1, 50.2), madeShow("b", nil, 7, 8)},
			"Wed 7 02:00, 3 nodes of a reclaimed; outages differ little"},
		{"the first of two alike", []*show{madeShow("a", [][2]float64{{30, 31}}),
			madeShow("b", [][2]float64{{10, 11}, {50, 51}})}, "Tue 6 06:00, a has a 1h outage, b none"},
		{"reclaims before the window", []*show{madeShow("a", nil, -5, -5.1, -5.2, -5.1), madeShow("b", nil)}, ""},
		{"a calm week", []*show{madeShow("a", nil, 5, 50, 100), madeShow("b", nil)}, ""},
	} {
		if got, _ := findStory(one.shows); got.text != one.want {
			t.Errorf("%s: %q, want %q", one.name, got.text, one.want)
		}
	}
}

// TestFaultsIn names the capacity shortages of the scenario, which last 90 minutes from 05:00 and
// from 14:00 on, while they last.
func TestFaultsIn(t *testing.T) {
	s := sit(t, 120, 40).play.shown()
	for _, one := range []struct {
		from, to time.Duration
		want     string
	}{{5*time.Hour + 30*time.Minute, 6 * time.Hour, "shortage"}, {10 * time.Hour, 11 * time.Hour, ""}, {4 * time.Hour,
		20 * time.Hour, "shortage"}, {13 * time.Hour, 15 * time.Hour, "shortage"}} {
		if got := strings.Join(s.faultsIn(span{monday.Add(one.from), monday.Add(one.to)}), ", "); got != one.want {
			t.Errorf("from %v to %v: %q, want %q", one.from, one.to, got, one.want)
		}
	}
}

// TestBeginAtStory opens shortly before the story with both policies. A key that is pressed
// before the runs have ended starts the playback at their start instead.
func TestBeginAtStory(t *testing.T) {
	v := sit(t, 120, 40)
	o := opened(t)
	o.AtStory = true
	v.send(o)
	if p := &v.play; p.story == nil || p.time() != p.story.at.Add(-storyLead) || !p.clock.playing || !v.port.both ||
		v.port.focus != p.story.of {
		t.Errorf("it begins at %v, the story is %+v:\n%s", v.play.time(), v.play.story, v.View())
	}
	w, err := prepare("squeeze", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cfg, line, err := w.config("static:share=0.7")
	if err != nil {
		t.Fatal(err)
	}
	v.send(Opened{Runs: []Run{{Name: "static:share=0.7", Timeline: line}}, AtStory: true})
	if v.wait(time.Second); !strings.Contains(v.View(), "simulating…") ||
		!strings.Contains(v.View(), "is being looked for") || !v.play.awaits || v.play.next() == nil && !v.play.ticking {
		t.Errorf("before the run ends it does not wait for the story:\n%s", v.View())
	}
	if v.press("g", "s"); !strings.Contains(v.prompt.note, "when the runs have ended") || v.play.awaits || !v.play.clock.playing {
		t.Errorf("a key does not end the wait, or the story is known: %q", v.prompt.note)
	}
	asked := &viewer{Model: New("x", draw.Plain), t: t, clock: time.Unix(1_800_000_000, 0)}
	asked.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	asked.send(Opened{Runs: []Run{{Name: "static:share=0.7", Timeline: line}}})
	asked.press("g", "s")
	v.send(Opened{Runs: []Run{{Name: "static:share=0.7", Timeline: line}}, AtStory: true})
	bounded := &viewer{Model: New("x", draw.Plain), t: t}
	bounded.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	bounded.send(Opened{Runs: []Run{{Name: "static:share=0.7", Timeline: line}}, AtStory: true})
	line.Finish(sim.Run(t.Context(), cfg))
	if bounded.send(Bounded{Cost: bound}); bounded.play.story == nil || bounded.play.awaits || !bounded.port.both {
		t.Errorf("with the bound the story is %+v, and it waits for it still: %v", bounded.play.story, bounded.play.awaits)
	}
	if v.wait(frameTime); v.play.awaits || v.play.story == nil || v.play.time().Sub(v.play.story.at.Add(-storyLead)) > time.Minute {
		t.Errorf("when the run has ended it is at %v, the story %+v", v.play.time(), v.play.story)
	}
	if asked.wait(frameTime); asked.play.story == nil || asked.play.time() != asked.play.story.at ||
		strings.Contains(asked.prompt.note, "ended") {
		t.Errorf("the story that was asked for early is %+v, it is at %v and says %q", asked.play.story, asked.play.time(), asked.prompt.note)
	}
}

// TestGreeting shows what to press until something is pressed.
func TestGreeting(t *testing.T) {
	for _, touch := range []tea.Msg{special["right"], tea.MouseMsg{X: 3, Y: 5, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}} {
		v := sit(t, 80, 24)
		v.wait(time.Second)
		if v.send(tea.MouseMsg{X: 3, Y: 5, Action: tea.MouseActionMotion}); !strings.Contains(v.View(), "New here?") {
			t.Fatalf("it does not greet:\n%s", v.View())
		}
		if v.send(touch); strings.Contains(v.View(), "New here?") {
			t.Errorf("it greets after %v:\n%s", touch, v.View())
		}
	}
}

// TestJumpAgain repeats the last jump, on and back, and goes to the story by key and by
// a click on its line.
func TestJumpAgain(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "g", "n")
	line, first := v.play.shown().Timeline, v.play.time()
	i, ok := line.NextEvent(first, timeline.Noticed)
	if !ok {
		t.Fatal("there is one notice")
	}
	if v.press("n"); v.play.time() != line.Event(i).At {
		t.Errorf("again goes to %v, and the next notice is at %v", v.play.time(), line.Event(i).At)
	}
	if v.press("N"); v.play.time() != first {
		t.Errorf("back again goes to %v, want %v", v.play.time(), first)
	}
	for _, there := range []func(){
		func() { v.press("g", "s") },
		func() {
			v.send(tea.MouseMsg{X: 20, Y: v.layout().story.y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
		},
	} {
		v.press("0")
		v.selection = selection{}
		if there(); v.play.time() != v.play.story.at || v.port.focus != v.play.story.of {
			t.Errorf("it goes to %v, the story is %+v", v.play.time(), v.play.story)
		}
		if !strings.Contains(v.View(), "1 outage") || v.selection.chosen[Workloads] == "" {
			t.Errorf("it does not select the workload that is out:\n%s", v.View())
		}
	}
	v = &viewer{Model: New("x", draw.Plain), t: t}
	if v.send(tea.WindowSizeMsg{Width: 80, Height: 24}); v.layout().story.h != 0 {
		t.Error("there is a line for a story before there is one")
	}
}
