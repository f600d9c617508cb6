package screen

import (
	"context"
	"fmt"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// monday is when the runs of the tests begin.
var monday = policy.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))

// A prepared is a scenario that is ready to be run.
type prepared struct {
	scenario *scenarios.BoundScenario
	sim      *sim.Prepared
}

// prepare binds an embedded scenario to the embedded trace from Monday on, for so
// long.
func prepare(name string, length time.Duration) (*prepared, error) {
	sc, err := scenarios.Load(name)
	if err != nil {
		return nil, err
	}
	sc.Duration = length
	tr, err := trace.Synthetic()
	if err != nil {
		return nil, err
	}
	bound, err := scenarios.Bind(sc, tr, scenarios.BindOptions{From: monday})
	if err != nil {
		return nil, err
	}
	ready, err := sim.Prepare(bound)
	return &prepared{bound, ready}, err
}

// config returns a run of a policy and the timeline that watches it.
func (p *prepared) config(spec string) (sim.Config, *timeline.Timeline, error) {
	pol, err := registry.New(spec, registry.Options{})
	if err != nil {
		return sim.Config{}, nil, err
	}
	f, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return sim.Config{}, nil, err
	}
	cfg := sim.Config{Prepared: p.sim, Policy: pol, Forecaster: f, Seed: 1}
	t := timeline.New(p.sim, spec, 1)
	t.Watch(&cfg)
	return cfg, t, nil
}

// run does a run to its end.
func (p *prepared) run(spec string) (Run, error) {
	cfg, t, err := p.config(spec)
	if err != nil {
		return Run{}, err
	}
	r, err := sim.Run(context.Background(), cfg)
	t.Finish(r, err)
	return Run{Name: spec, Timeline: t}, err
}

// policies are those of the tests, the baseline last: the plainest there are, so
// that the screens change when the screen does and not when a policy learns.
var policies = []string{"static:share=0.7", "spot", "on-demand"}

// days is how long the runs of the tests are.
const days = 4

// bound is what no policy of the tests costs less than.
var bound policy.Money

// ran are the runs of all tests, with their bound. They are read only.
var ran = sync.OnceValues(func() ([]Run, error) {
	p, err := prepare("squeeze", days*24*time.Hour)
	if err != nil {
		return nil, err
	}
	bound = oracle.Of(p.scenario).Cost
	var all []Run
	for _, spec := range policies {
		r, err := p.run(spec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
		all = append(all, r)
	}
	return all, nil
})

// A tester is a test or a try of a property.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// opened returns the message that brings the runs of the tests.
func opened(t tester) Opened {
	t.Helper()
	runs, err := ran()
	if err != nil {
		t.Fatal(err)
	}
	return Opened{Runs: runs[:2], Baseline: runs[2].Timeline}
}

// A viewer is a screen and whoever sits before it.
type viewer struct {
	*Model
	t tester

	// clock is the viewer's own time.
	clock time.Time

	// left says that the screen wants to end.
	left bool
}

// sit opens the runs of the tests on a screen of a size.
func sit(t tester, w, h int) *viewer {
	v := &viewer{Model: New("squeeze", draw.Plain), t: t, clock: time.Unix(1_800_000_000, 0)}
	v.send(tea.WindowSizeMsg{Width: w, Height: h})
	v.send(opened(t))
	v.send(Bounded{Cost: bound})
	return v
}

// send brings a message and ends the screen when it says so. Its ticks come from
// wait.
func (v *viewer) send(msg tea.Msg) {
	ticking := v.play.ticking
	_, cmd := v.Update(msg)
	if _, ticked := msg.(tick); cmd == nil || ticked || v.play.ticking != ticking {
		return
	}
	if _, ok := cmd().(tea.QuitMsg); ok {
		v.left = true
	}
}

// wait lets so much of the viewer's time pass, frame by frame.
func (v *viewer) wait(d time.Duration) {
	for end := v.clock.Add(d); v.clock.Before(end); {
		v.clock = v.clock.Add(frameTime)
		v.send(tick(v.clock))
	}
}

// special are the keys other than letters.
var special = map[string]tea.KeyMsg{
	"space": {Type: tea.KeySpace, Runes: []rune{' '}}, "enter": {Type: tea.KeyEnter}, "esc": {Type: tea.KeyEsc},
	"tab": {Type: tea.KeyTab}, "shift+tab": {Type: tea.KeyShiftTab}, "up": {Type: tea.KeyUp}, "down": {Type: tea.KeyDown},
	"left": {Type: tea.KeyLeft}, "right": {Type: tea.KeyRight}, "shift+left": {Type: tea.KeyShiftLeft}, "shift+right": {Type: tea.KeyShiftRight},
	"pgup": {Type: tea.KeyPgUp}, "pgdown": {Type: tea.KeyPgDown}, "home": {Type: tea.KeyHome}, "end": {Type: tea.KeyEnd},
	"backspace": {Type: tea.KeyBackspace}, "ctrl+c": {Type: tea.KeyCtrlC},
}

// press presses keys, each a name of special or a text whose letters are typed.
func (v *viewer) press(names ...string) {
	v.t.Helper()
	for _, name := range names {
		if k, ok := special[name]; ok {
			v.send(k)
			continue
		}
		for _, r := range name {
			if r == ' ' {
				v.send(special["space"])
				continue
			}
			v.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		}
	}
}
