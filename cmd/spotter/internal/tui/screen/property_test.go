package screen

import (
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"
)

// TestAnyKeys types, clicks and resizes at random: every screen has exactly the
// size it should, and the clock stays within the run.
func TestAnyKeys(t *testing.T) {
	visits := 0
	rapid.Check(t, func(t *rapid.T) {
		if visits++; raceEnabled && visits > raceVisits {
			return
		}
		w, h := rapid.IntRange(0, 260).Draw(t, "w"), rapid.IntRange(0, 85).Draw(t, "h")
		v := sit(t, w, h)
		if rapid.Bool().Draw(t, "listed") {
			v.send(Listed{Rows: listed, Choose: func(int) {}})
		}
		for range rapid.IntRange(1, 15).Draw(t, "n") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				w, h = rapid.IntRange(0, 260).Draw(t, "w"), rapid.IntRange(0, 85).Draw(t, "h")
				v.send(tea.WindowSizeMsg{Width: w, Height: h})
			case 1:
				v.wait(time.Duration(rapid.IntRange(0, 500).Draw(t, "ms")) * time.Millisecond)
			case 2:
				v.send(tea.MouseMsg{X: rapid.IntRange(-1, 261).Draw(t, "x"), Y: rapid.IntRange(-1, 86).Draw(t, "y"),
					Button: rapid.SampledFrom([]tea.MouseButton{tea.MouseButtonLeft, tea.MouseButtonWheelDown,
						tea.MouseButtonWheelUp, tea.MouseButtonRight}).Draw(t, "button"),
					Action: rapid.SampledFrom([]tea.MouseAction{tea.MouseActionPress, tea.MouseActionRelease, tea.MouseActionMotion}).Draw(t, "action")})
			default:
				v.press(rapid.SampledFrom(anyKeys).Draw(t, "key"))
			}
			fills(t, v, w, h)
			s := v.play.shown()
			if v.play.time() < s.warmup || v.play.time() > s.to {
				t.Fatalf("the clock is at %v, outside %v to %v", v.play.time(), s.warmup, s.to)
			}
		}
	})
}

// raceVisits is how many visits the race detector sees: it makes each ten times as
// long, and what it looks for is the same in all.
const raceVisits = 15

// anyKeys are those that random visits press: all there are, and texts to type.
var anyKeys = []string{"space", "+", "-", "left", "right", "[", "]", "shift+left", "shift+right", "h", "l", "H", "L",
	"0", "$", "home", "end",
	"t", ":", "g", "G", "o", "r", "d", "n", "N", "s", "tab", "b", "1", "2", "3", "4", "5", "6", "shift+tab", "z", "up", "down", "k", "j", ".", ",", "pgup", "pgdown",
	"enter", "esc", "/", "?", "backspace", "wed 14:00", "+36h", "-2d", "spot", "general-1", "no such thing", "äöü漢字é"}
