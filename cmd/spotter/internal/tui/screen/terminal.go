package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/quiet"
)

func init() { quiet.Restore() }

// ErrChoice is wrapped when a word is not one of the choices.
var ErrChoice = errors.New("unknown choice")

// Colors are the choices of how many colours there are, Themes those of which.
var (
	Colors = []string{"auto", "never", "16", "256", "true"}
	Themes = append([]string{"auto"}, draw.Themes...)
)

// ThemeVariable is the environment variable that has the theme where no flag says it.
const ThemeVariable = "SPOTTER_THEME"

// A Terminal is where the screen is drawn.
type Terminal struct {
	In, Out *os.File

	// Color is one of Colors and Theme one of Themes; auto finds out, where ThemeVariable
	// has no theme.
	Color, Theme string
}

// Check says whether the choices of t are known.
func (t *Terminal) Check() error {
	if !slices.Contains(Colors, t.Color) {
		return fmt.Errorf("--color: %w: %q is not one of %v", ErrChoice, t.Color, Colors)
	}
	if !slices.Contains(Themes, t.Theme) {
		return fmt.Errorf("--theme: %w: %q is not one of %v", ErrChoice, t.Theme, Themes)
	}
	if v := os.Getenv(ThemeVariable); v != "" && !slices.Contains(Themes, v) {
		return fmt.Errorf("%s: %w: %q is not one of %v", ThemeVariable, ErrChoice, v, Themes)
	}
	return nil
}

// profiles are the choices of Colors but auto.
var profiles = map[string]termenv.Profile{
	"never": termenv.Ascii, "16": termenv.ANSI, "256": termenv.ANSI256, "true": termenv.TrueColor,
}

// theme returns the theme for t. To find out the background it may query the terminal, so it is
// called before anything is drawn.
func (t *Terminal) theme() *draw.Theme {
	out := termenv.NewOutput(t.Out)
	profile, ok := profiles[t.Color]
	if !ok {
		profile = out.EnvColorProfile()
	}
	name := t.Theme
	if name == "auto" {
		name = cmp.Or(os.Getenv(ThemeVariable), name)
	}
	if name == "dark" || name == "light" {
		return draw.NewTheme(profile, name == "dark")
	}
	theme := draw.NewTheme(profile, profile == termenv.Ascii || out.HasDarkBackground())
	if name == "auto" {
		return theme
	}
	return theme.As(name)
}

// Show draws the screen called title until the viewer leaves it. Meanwhile play
// sends what there is to show; it ends when its context does, and Show waits for
// that. The error is that of what was shown, see [Model.Err].
func Show(ctx context.Context, t *Terminal, title string, play func(ctx context.Context, send func(any))) error {
	m := New(title, t.theme())
	ctx, cancel := context.WithCancel(ctx)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithAltScreen(),
		tea.WithMouseCellMotion())
	done := make(chan struct{})
	go func() {
		defer close(done)
		play(ctx, func(msg any) { p.Send(msg) })
	}()
	_, err := p.Run()
	cancel()
	<-done
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return errors.Join(fmt.Errorf("drawing the screen: %w", err), m.Err())
	}
	return m.Err()
}
