package screen

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
)

// ranking is a run of the policy that ranks nodes: what it says changes as it
// learns, so that no golden screen is of it.
var ranking = sync.OnceValues(func() (Run, error) {
	p, err := prepare("squeeze", 48*time.Hour)
	if err != nil {
		return Run{}, err
	}
	return p.run("portfolio")
})

// sitBefore opens one run on a screen.
func sitBefore(t tester, r Run, w, h int) *viewer {
	v := &viewer{Model: New("squeeze", draw.Plain), t: t, clock: time.Unix(1_800_000_000, 0)}
	v.send(tea.WindowSizeMsg{Width: w, Height: h})
	v.send(Opened{Runs: []Run{r}})
	return v
}

// TestRanks filters for the nodes whose pods leave first, shows why one does, and jumps to that
// node, which shows it too.
func TestRanks(t *testing.T) {
	r, err := ranking()
	if err != nil {
		t.Fatal(err)
	}
	v := sitBefore(t, r, 160, 50)
	v.press("space", "$", "5", "/", "leave first", "enter")
	s := v.play.shown()
	if len(s.decisionPane.log.Entries) == 0 {
		t.Fatal("no node is ranked")
	}
	for _, e := range s.decisionPane.log.Entries {
		if e.Entry.Verb != timeline.Rank {
			t.Errorf("%v is left", e.Entry)
		}
	}
	if !strings.Contains(v.View(), " rank ") {
		t.Errorf("the log does not say what is done:\n%s", v.View())
	}
	v.press("enter")
	for _, want := range []string{"what rank ", "how deletion cost -", "when workloads shrink"} {
		if !strings.Contains(v.text(), want) {
			t.Errorf("the decision lacks %q:\n%s", want, v.text())
		}
	}
	v.press("enter")
	if !strings.HasPrefix(v.inspector.known, "Node ") || !strings.Contains(v.text(), "ranked ") && !strings.Contains(v.text(), "what rank ") {
		t.Errorf("behind it is not the node with its rank:\n%s", v.text())
	}
}

// TestDrainBeforeRank looks at a node that was drained and ranked: the drain is why
// it went.
func TestDrainBeforeRank(t *testing.T) {
	r, err := ranking()
	if err != nil {
		t.Fatal(err)
	}
	s, found := newRun(r), 0
	for i := range s.Timeline.Decisions() {
		d := s.Timeline.Decision(i)
		for _, e := range d.Entries {
			if _, _, ranked := s.Timeline.DecisionAbout(e.Subject, s.to, timeline.Rank); e.Verb != timeline.Drain || !ranked {
				continue
			}
			found++
			if at, k, ok := (&facts{run: s, now: s.to}).decided(e.Subject); !ok || s.Timeline.Decision(at).Entries[k].Verb == timeline.Rank {
				t.Errorf("of %s it says that it was ranked, not that it was drained", e.Subject)
			}
		}
	}
	if found == 0 {
		t.Error("no node was drained and ranked")
	}
}

// TestHolds lists and steps through decisions without those that only held
// something back, and with them when asked to.
func TestHolds(t *testing.T) {
	r, err := ranking()
	if err != nil {
		t.Fatal(err)
	}
	v := sitBefore(t, r, 160, 50)
	v.press("space", "t", "tue 12:00", "enter", "5")
	holds := func() (n int) {
		for _, e := range v.play.shown().decisionPane.log.Entries {
			if e.Entry.Verb == timeline.Hold {
				n++
			}
		}
		return n
	}
	steps := func() (n int) {
		v.press("0")
		for v.press("]"); !strings.HasPrefix(v.prompt.note, "no "); v.press("]") {
			n++
		}
		return n
	}
	if holds() != 0 || len(v.play.shown().decisionPane.log.Entries) == 0 {
		t.Errorf("%d of %d entries are holds that nobody asked for", holds(), len(v.play.shown().decisionPane.log.Entries))
	}
	without := steps()
	if v.press("a", "t", "tue 12:00", "enter"); holds() == 0 {
		t.Error("no hold is listed")
	}
	if with := steps(); with <= without || without == 0 {
		t.Errorf("%d decisions are stepped through with holds, %d without", with, without)
	}
	v.press("a", "/", "hold", "enter")
	if n := len(v.play.shown().decisionPane.log.Entries); n == 0 || holds() != n {
		t.Errorf("a filter for holds leaves %d, %d of them holds", n, holds())
	}
	v.press("esc", "0")
	for v.press("g", "d"); !strings.HasPrefix(v.prompt.note, "no "); v.press("g", "d") {
		if !slices.Contains(v.play.shown().moved, v.play.time()) {
			t.Fatalf("g d goes to %v, where nothing was moved", v.play.time())
		}
	}
}

// TestKeysAtOnce types faster than the terminal is read: several keys then arrive as one message,
// and a paste is ignored where no prompt is open.
func TestKeysAtOnce(t *testing.T) {
	v := sit(t, 120, 40)
	send := func(text string, paste bool) {
		v.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: paste})
	}
	v.press("space")
	send("twed", false)
	v.press("space")
	send("14:00", false)
	v.press("enter")
	if want := monday.Add(62 * time.Hour); v.play.time() != want || v.play.clock.playing {
		t.Errorf("it is at %v, playing %v, not at %v", v.play.time(), v.play.clock.playing, want)
	}
	if send("$q", true); v.play.time() != monday.Add(62*time.Hour) || v.left {
		t.Error("what was pasted was taken for keys")
	}
	v.press("t")
	send("tue 09:00", true)
	if v.press("enter"); v.play.time() != monday.Add(33*time.Hour) {
		t.Errorf("a pasted time leads to %v", v.play.time())
	}
	if send("lq", false); !v.left || v.play.time() != monday.Add(34*time.Hour) {
		t.Errorf("after l and q it is at %v and goes on", v.play.time())
	}
}
