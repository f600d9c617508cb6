package screen

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// TestCommands types commands, whole, cut short and completed.
func TestCommands(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space")
	for _, one := range []struct {
		typed string
		tab   bool
		is    func() bool
	}{
		{"go wed 14:00", false, func() bool { return strings.HasSuffix(draw.Day(v.play.time()), "14:00") }},
		{"pane markets", false, func() bool { return v.port.pane == Markets }},
		{"pa w", false, func() bool { return v.port.pane == Workloads }},
		{"pane d", true, func() bool { return v.port.pane == Decisions }},
		{"so", true, func() bool { return v.selection.order == 1 || v.selection.order == inGrid }},
		{"sort use", false, func() bool { return nodeOrders[v.selection.order].name == "use" && v.port.pane == Nodes }},
		{"filter spot", false, func() bool { return v.selection.filters[Nodes] == "spot" }},
		{"filter", false, func() bool { return v.selection.filters[Nodes] == "" }},
		{"policy spot", false, func() bool { return v.play.shown().Name == "spot" }},
		{"zoom", false, func() bool { return v.port.zoom }},
		{"story", false, func() bool { return v.play.time() == v.play.story.at }},
		{"next notice", false, func() bool { return strings.Contains(v.prompt.note, "notice") }},
		{"theme light", false, func() bool { return v.prompt.note == "" }},
		{"help", false, func() bool { return v.help.open }},
	} {
		v.press(":", one.typed)
		if one.tab {
			v.send(special["tab"])
		}
		if v.press("enter"); !one.is() {
			t.Errorf("%q says %q and shows\n%s", one.typed, v.prompt.note, v.View())
		}
		fills(t, v, 120, 40)
	}
	v.press("?")
	for typed, want := range map[string]string{
		"fly": `no "fly"`, "p": `"p" may be pane, play, policy`, "sort": "give one of grid, age, use, price", "sort size": `no "size"`,
		"zoom in": "nothing may follow", "go nowhere": "write ",
	} {
		if v.press(":", typed, "enter"); !strings.Contains(v.prompt.note, want) {
			t.Errorf("%q says %q, want %q", typed, v.prompt.note, want)
		}
	}
	for _, typed := range []string{"", "fly", "sort"} {
		v.press(":", typed, "up", "up", "down", "up")
		fills(t, v, 120, 40)
		v.press("esc")
	}
	v.press(":", "theme h")
	if !strings.Contains(v.View(), ":theme high-contrast") {
		t.Errorf("it does not show what tab completes:\n%s", v.View())
	}
	v.press("esc", ":", "quit", "enter")
	if !v.left {
		t.Error("quit does not leave")
	}
}

// TestNodeTable sorts the nodes by every column there is, and selects by key and mouse.
func TestNodeTable(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "t", "wed 14:00", "enter")
	for range nodeOrders[1:] {
		v.press("s")
		p := &v.play.shown().nodePane
		o := nodeOrders[p.order]
		if n := len(p.grid.Nodes); n < 3 || n != len(v.play.shown().frame.Nodes) || p.names[0] != p.grid.Nodes[0].Name {
			t.Fatalf("%s: %d nodes are listed", o.name, n)
		}
		price := func(i int) float64 {
			return v.play.shown().frame.Markets[p.grid.Nodes[i].Market].Price.Float()
		}
		for i := range p.grid.Nodes[1:] {
			a, b := &p.grid.Nodes[i], &p.grid.Nodes[i+1]
			ok := map[string]bool{"age": a.Since <= b.Since, "use": draw.Use(a) >= draw.Use(b), "price": price(i) >= price(i+1)}
			if !ok[o.name] {
				t.Errorf("%s: %s is listed before %s", o.name, a.Name, b.Name)
			}
		}
		if !strings.Contains(v.View(), " ▾") {
			t.Errorf("%s: the column is not marked:\n%s", o.name, v.View())
		}
	}
	v.press("down", "down")
	if p := &v.play.shown().nodePane; v.selection.chosen[Nodes] != p.names[1] {
		t.Errorf("the second row is %s, selected is %q", p.names[1], v.selection.chosen[Nodes])
	}
	before := v.play.shown().frame.Nodes[0].Name
	if v.press("s"); v.selection.order != inGrid || v.play.shown().frame.Nodes[0].Name != before {
		t.Error("sorting changed the frame, or does not end with the grid")
	}
}

// TestClickRows clicks on every line of every pane: each row that is drawn is selected by
// a click anywhere on it, in the grid on its label too.
func TestClickRows(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		v := sit(t, size[0], size[1])
		v.press("space", "t", "wed 14:00", "enter")
		for p, key := range map[Pane]string{Nodes: "1", Markets: "2", Savings: "3", Workloads: "4", Decisions: "5"} {
			for _, column := range []int{1, 9} {
				v.press("esc", "esc", key)
				chosen := map[any]bool{}
				in := v.inner(p)
				for y := range in.h {
					now := v.play.time()
					v.send(tea.MouseMsg{X: in.x + column, Y: in.y + y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
					if v.play.time() != now { // a chart: it goes to a time
						v.play.stop(now)
						v.refresh()
					}
					if len(v.port.inspected) > 0 {
						v.press("esc")
					}
					chosen[[2]any{v.selection.chosen[p], v.play.shown().decisionPane.entry}] = true
				}
				want := 3
				if p == Savings || p == Nodes || p == Workloads {
					want = 2
				}
				if len(chosen) < want {
					t.Errorf("%v at %v, column %d: clicks select %d rows of\n%s", p, size, column, len(chosen), v.View())
				}
			}
		}
	}
}

// inner is where the rows of a pane are on the screen.
func (v *viewer) inner(p Pane) rect {
	for _, a := range v.layout().areas {
		if a.pane == p {
			return inside(a.rect)
		}
	}
	v.t.Fatalf("there is no pane %v", p)
	return rect{}
}

// TestStoryPause plays towards the story and stops there, once.
func TestStoryPause(t *testing.T) {
	v := sit(t, 120, 40)
	v.play.stop(v.play.story.at.Add(-10 * time.Minute))
	v.press("space")
	if v.wait(5 * time.Second); v.play.time() != v.play.story.at || v.play.clock.playing ||
		!strings.Contains(v.View(), "paused at the story") {
		t.Errorf("it is at %v, the story at %v:\n%s", v.play.time(), v.play.story.at, v.View())
	}
	v.press("space")
	if v.wait(time.Second); v.play.time() <= v.play.story.at {
		t.Error("it does not play on")
	}
}
