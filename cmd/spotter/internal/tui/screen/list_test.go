package screen

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/golden"
)

// listed are runs to choose from.
var listed = []Listing{
	{Scenario: "squeeze", Policy: "portfolio", Seed: 1, From: monday, Savings: policy.Dollars(31), Share: 0.2,
		OutageMinutes: 23, Incidents: 8, Longest: 3 * time.Minute},
	{Scenario: "squeeze", Policy: "spot", Seed: 1, From: monday, Savings: policy.Dollars(-4), Share: -0.03,
		OutageMinutes: 61, Incidents: 9, Longest: 14 * time.Minute},
	{Scenario: "worlds/shop.yaml", Policy: "portfolio", Seed: 17, From: monday, Failed: true},
	{Scenario: "web-week", Policy: "portfolio", Seed: 2, From: monday, Savings: policy.Dollars(3_700), Share: 0.88},
}

// choosing is a viewer before a list of runs, and the rows that they have chosen.
func choosing(t *testing.T, w, h int) (*viewer, *[]int) {
	v := &viewer{Model: New("results.json", draw.Plain), t: t, clock: time.Unix(1_800_000_000, 0)}
	var chosen []int
	v.send(tea.WindowSizeMsg{Width: w, Height: h})
	v.send(Listed{Rows: listed, Choose: func(row int) { chosen = append(chosen, row) }})
	return v, &chosen
}

// TestList chooses runs by keys and by the mouse, in every order and through a filter.
func TestList(t *testing.T) {
	v, chosen := choosing(t, 80, 24)
	is := func(what string, want int) {
		t.Helper()
		if len(*chosen) != 1 || (*chosen)[0] != want {
			t.Errorf("%s: chosen are %v, want %v:\n%s", what, *chosen, want, v.View())
		}
		*chosen = nil
		v.press("r")
		fills(t, v, 80, 24)
	}
	golden.Hold(t, "testdata/screens/list.txt", v.View())
	if v.press("esc"); !v.list.open {
		t.Error("escape leaves the list although there is nothing else")
	}
	v.press("down", "enter")
	is("the second", 1)
	v.press("end", "enter")
	is("the last", 3)
	v.press("s", "enter")
	is("that of the longest outage", 1)
	v.press("s", "enter")
	is("that which saves least", 1)
	v.press("s", "/", "WEB portf", "enter", "enter")
	is("through the filter", 3)
	v.press("esc", "/", "seed=17", "enter", "enter")
	is("of a seed", 2)
	v.press("esc", "/", "none such", "enter", "enter")
	if len(*chosen) != 0 || !strings.Contains(v.View(), "none such") {
		t.Errorf("where nothing is listed %v is chosen:\n%s", *chosen, v.View())
	}
	v.press("esc", "home")
	at := inside(v.port.page())
	click := tea.MouseMsg{X: 10, Y: at.y + 3, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}
	if v.send(click); v.list.at != 2 {
		t.Errorf("a click on the third row selects row %d", v.list.at)
	}
	v.send(click)
	is("two clicks", 2)
}

// TestListAndRun goes from the list to a run and back, and stays with the list where a
// run cannot be opened.
func TestListAndRun(t *testing.T) {
	v, _ := choosing(t, 120, 40)
	v.press("enter")
	v.send(Unopened{errors.New("no such scenario: squeeze")})
	if v.left || !v.list.open || !strings.Contains(v.View(), "no such scenario") {
		t.Errorf("of a run that cannot be opened it shows:\n%s", v.View())
	}
	v.press("enter")
	o := opened(t)
	o.Title = "squeeze again"
	v.send(o)
	if s := v.View(); !strings.Contains(s, "spotter squeeze again") || !strings.Contains(s, "1 Nodes") {
		t.Errorf("a run that was opened shows:\n%s", s)
	}
	v.send(Bounded{Cost: bound})
	v.press("space", "1", "/", "spot", "enter", "r")
	if s := v.View(); !strings.Contains(s, "4 of 4") || strings.Contains(s, "1 Nodes") {
		t.Errorf("r does not bring the list:\n%s", s)
	}
	if v.press("esc"); v.list.open || v.selection.filters[Nodes] != "spot" {
		t.Error("escape does not go back to the run as it was")
	}
	v.send(o)
	if v.play.bound != 0 || v.selection.filters[Nodes] != "" {
		t.Error("another run has the bound or the filter of the one before")
	}
	if v.send(Noted("it differs")); !strings.Contains(v.View(), "it differs") {
		t.Error("a note is not shown")
	}
	v = sit(t, 80, 24)
	if v.press("r"); v.list.open || !strings.Contains(v.prompt.note, "results.json") {
		t.Errorf("without results r says %q", v.prompt.note)
	}
}

// TestWorkloadStates shows that an outage is shown in words, and that the bar
// marks what is required.
func TestWorkloadStates(t *testing.T) {
	for _, c := range []struct {
		f       timeline.Workload
		minutes int64
		want    []string
	}{
		{timeline.Workload{Ready: 5, Required: 8, Desired: 10, OnSpot: 5}, 7,
			[]string{"OUTAGE", "█████···│·", "5/10", "100%", "7"}},
		{timeline.Workload{Ready: 9, Required: 8, Desired: 10}, 0, []string{"short 1", "████████│·", "9/10", "0%"}},
		{timeline.Workload{Ready: 10, Required: 8, Desired: 10}, 0, []string{"ok", "████████│█"}},
	} {
		table, canvas := workloadTable, draw.New(100, 3)
		table.Rows = [][]draw.Field{workloadRow(&timeline.WorkloadInfo{Name: "w"}, &c.f, c.minutes)}
		table.Draw(canvas)
		for _, want := range c.want {
			if got := canvas.Render(draw.Plain); !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	}
}
