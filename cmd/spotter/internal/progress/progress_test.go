package progress

import (
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/eval"
)

// The screen shows the current step, its progress, the time left and interim results, within its
// size.
func TestProgressView(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var m tea.Model = &progressView{step: "loading scenarios and traces", begun: day, now: day}
	send := func(msgs ...tea.Msg) string {
		for _, msg := range msgs {
			m, _ = m.Update(msg)
		}
		return m.View()
	}
	row := func(scenario, policy string, saved, outage float64) eval.SoFar {
		return eval.SoFar{Scenario: scenario, Policy: policy, Saved: eval.Value{V: saved, Known: true},
			Outage: eval.Value{V: outage, Known: true}}
	}
	runs := eval.Progress{Step: eval.StepRuns, Done: 30, Total: 120, Cells: 40}
	begun, one, two := runs, runs, runs
	begun.SoFar = []eval.SoFar{row("web-week", "on-demand", 0, 4.5), {Scenario: "web-week", Policy: "spot"}}
	one.Finished, one.SoFar = 10, []eval.SoFar{row("web-week", "on-demand", 0, 4.5), row("web-week", "static:share=0.7", 42.13, 0)}
	two.Finished, two.SoFar = 1, []eval.SoFar{row("web-week", "on-demand", 0, 4.5), row("web-week", "spot", -3.14, 120),
		{Scenario: "batch-night", Policy: "on-demand"}, {Scenario: "batch-night", Policy: "spot"}}
	at := func(seconds int) ticked { return ticked(day.Add(time.Duration(seconds) * time.Second)) }
	for _, c := range []struct {
		msgs []tea.Msg
		want string
	}{
		{nil, "loading scenarios and traces · 0s"},
		{[]tea.Msg{at(3)}, "loading scenarios and traces · 3s"},
		{[]tea.Msg{enterStep{"preparing", day.Add(3 * time.Second)}, at(5)}, "preparing · 2s"},
		{[]tea.Msg{runs}, "runs · 30 of 120 · 0s"},
		{[]tea.Msg{begun}, "runs · 30 of 120 · 0s\n\n" +
			"web-week   SAVED %  OUTAGE MIN\n" +
			"on-demand      0.0         4.5\n" +
			"spot             –           –\n" +
			"the first of 40 cells (a scenario, window and seed each), so far"},
		{[]tea.Msg{at(45), one}, "runs · 30 of 120 · 40s · about 2m0s left\n\n" +
			"web-week          SAVED %  OUTAGE MIN\n" +
			"on-demand             0.0         4.5\n" +
			"static:share=0.7     42.1         0.0\n" +
			"medians of 10 of 40 cells (a scenario, window and seed each)"},
		{[]tea.Msg{two}, "runs · 30 of 120 · 40s · about 2m0s left\n\n" +
			"SAVED % / OUTAGE MIN  on-demand          spot\n" +
			"web-week              0.0 / 4.5  −3.1 / 120.0\n" +
			"batch-night               – / –         – / –\n" +
			"medians of 1 of 40 cells (a scenario, window and seed each)"},
		{[]tea.Msg{tea.WindowSizeMsg{Width: 30, Height: 5}}, "runs · 30 of 120 · 40s · abo…\n\n" +
			"SAVED % / OUTAGE MIN  on-dem…\n… and 3 lines more"},
		{[]tea.Msg{eval.Progress{Step: eval.StepBounds, Done: 1, Total: 4}, tea.WindowSizeMsg{Width: 30, Height: 3}},
			"bounds · 1 of 4 · 0s\n… and 5 lines more"},
		{[]tea.Msg{Counted{Done: 3, Total: 7}}, "bounds · 3 of 7 · 0s\n… and 5 lines more"},
		{[]tea.Msg{leave{}}, ""},
	} {
		if got := send(c.msgs...); got != c.want {
			t.Errorf("after %v:\n%s\nwant\n%s", c.msgs, got, c.want)
		}
	}
}
