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

// ErrChoice means that a word is not one of the choices.
var ErrChoice = errors.New("unknown choice")

// Colors are the choices for the number of colours, and Themes those for the theme.
var (
	Colors = []string{"auto", "never", "16", "256", "true"}
	Themes = append([]string{"auto"}, draw.Themes...)
)

// ThemeVariable is the environment variable with the theme that is used without a flag.
const ThemeVariable = "SPOTTER_THEME"

// A Terminal is the terminal on which the screen is drawn.
type Terminal struct {
	In, Out *os.File

	// Color is one of Colors and Theme one of Themes. With the theme auto, the value of
	// ThemeVariable is used if it is set, and otherwise the theme is detected.
	Color, Theme string
}

// Check returns an error if a choice of t is unknown.
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

// profiles are the profiles for Colors, without auto.
var profiles = map[string]termenv.Profile{
	"never": termenv.Ascii, "16": termenv.ANSI, "256": termenv.ANSI256, "true": termenv.TrueColor,
}

// theme returns the theme for t. It may query the terminal for its background, so it must be called
// before anything is drawn.
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

// Show draws the screen until the viewer leaves it. play runs concurrently and sends messages to
// the screen; it must return when its context ends, which Show waits for. Show returns [Model.Err].
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
