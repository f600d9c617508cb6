// Package progress shows the progress of a command: a screen on a terminal, or lines in a pipe or a
// CI log. It knows the progress messages of a comparison, but no command.
package progress

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A Progress shows progress on standard error: on a terminal as a screen below the existing text,
// which is removed when it is closed; otherwise as a line every ten seconds. If the program has a
// function for progress, it calls that instead. A nil Progress shows nothing.
type Progress struct {
	// lines or called is set instead of the other fields if there is no terminal.
	lines  *lines
	called *called

	screen *tea.Program
	ended  chan struct{}
	forget func() bool

	// mu prevents sending text to a screen that is being closed.
	mu sync.Mutex
}

// Show shows the progress of step on standard error until the progress is closed or ctx ends. On a
// terminal, p.Stderr then writes above the screen.
func Show(ctx context.Context, p *cli.Program, step string) *Progress {
	if p.Progress != nil {
		return &Progress{called: call(p.Progress, step)}
	}
	f, ok := cli.File(p.Stderr)
	if !ok {
		return nil
	}
	if !term.IsTerminal(int(f.Fd())) {
		return &Progress{lines: writeLines(f, step, lineEvery)}
	}
	width, height, _ := term.GetSize(int(f.Fd())) // 0 if unknown
	m := &progressView{step: step, begun: time.Now(), now: time.Now(), width: width, height: height, bar: true}
	g := &Progress{
		// Without an input, keys stay with the terminal, which converts Ctrl-C to a signal.
		screen: tea.NewProgram(m, tea.WithOutput(f), tea.WithInput(nil), tea.WithoutSignalHandler(),
			tea.WithoutBracketedPaste()),
		ended: make(chan struct{}),
	}
	above := &aboveProgress{g, p.Stderr}
	p.Stderr = above
	go func() {
		defer close(g.ended)
		g.screen.Run() //nolint:errcheck // a terminal that is gone must not stop the work
	}()
	// The user sees at once that the signal arrived. A second signal, which kills the process,
	// finds the terminal restored.
	g.forget = context.AfterFunc(ctx, func() {
		fmt.Fprintln(above, "stopping: once more ends it at once")
		g.end()
	})
	return g
}

// OnTerminal reports whether g is a screen on a terminal, where a question can be asked.
func (g *Progress) OnTerminal() bool { return g != nil && g.screen != nil }

// Send sends a message such as [Counted] to the screen.
func (g *Progress) Send(msg any) {
	switch {
	case g == nil:
	case g.lines != nil:
		g.lines.update(msg)
	case g.called != nil:
		g.called.update(msg)
	default:
		g.screen.Send(msg)
	}
}

// Enter reports that another step starts.
func (g *Progress) Enter(step string) { g.Send(enterStep{step, time.Now()}) }

// end removes the screen.
func (g *Progress) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.screen.Send(leave{})
	<-g.ended
}

// Close removes the screen and restores standard error of p.
func (g *Progress) Close(p *cli.Program) {
	if g == nil || g.called != nil {
		return
	}
	if g.lines != nil {
		g.lines.close()
		return
	}
	g.forget()
	g.end()
	if above, ok := p.Stderr.(*aboveProgress); ok {
		p.Stderr = above.w
	}
}

// An aboveProgress writes to w above the screen.
type aboveProgress struct {
	g *Progress
	w io.Writer
}

func (a *aboveProgress) Write(text []byte) (int, error) {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	select {
	case <-a.g.ended:
		return a.w.Write(text)
	default:
		// characters that the terminal echoes, such as ^C, have moved the cursor
		a.g.screen.Send(tea.Println("\r" + figures.PlainText(strings.TrimRight(string(text), "\n")))())
		return len(text), nil
	}
}

var _ io.Writer = (*aboveProgress)(nil)

// Counted is a message with the progress of a step.
type Counted struct{ Done, Total int }

// An enterStep reports that a step starts, a ticked the current time, and a leave that the screen
// must be removed.
type (
	enterStep struct {
		name string
		at   time.Time
	}
	ticked time.Time
	leave  struct{}
)

// progressEvery is the interval at which the times on the screen are updated.
const progressEvery = 500 * time.Millisecond

// A progressView is the model of the screen: a line about the current step, and below it a table of
// interim results.
type progressView struct {
	step          string
	done, total   int
	begun, now    time.Time
	width, height int // 0 until known

	// last is the last message about the runs of a comparison.
	last eval.Progress
	gone bool

	// bar draws a progress bar.
	bar bool
}

// Init implements tea.Model. It starts the clock.
func (m *progressView) Init() tea.Cmd { return tick() }

func tick() tea.Cmd { return tea.Tick(progressEvery, func(t time.Time) tea.Msg { return ticked(t) }) }

// Update implements tea.Model.
func (m *progressView) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case ticked:
		m.now = time.Time(msg)
		return m, tick()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case enterStep:
		m.step, m.done, m.total, m.begun, m.now = msg.name, 0, 0, msg.at, msg.at
	case Counted:
		m.done, m.total = msg.Done, msg.Total
	case eval.Progress:
		step := string(msg.Step)
		if msg.Under != "" {
			step += " under " + msg.Under
		}
		if m.step != step {
			m.step, m.begun = step, m.now
		}
		m.done, m.total = msg.Done, msg.Total
		if msg.Step == eval.StepRuns {
			m.last = msg
		}
	case leave:
		m.gone = true
		return m, tea.Quit
	}
	return m, nil
}

// View returns the screen, which fits the height and width of the terminal.
func (m *progressView) View() string {
	if m.gone {
		return ""
	}
	lines := []string{m.line()}
	if slices.ContainsFunc(m.last.SoFar, func(x eval.SoFar) bool { return x.Outage.Known }) {
		lines = append(lines, "")
		lines = append(lines, m.table()...)
	}
	if linesMax := m.height - 1; m.height > 0 && len(lines) > linesMax {
		linesMax = max(linesMax, 1)
		lines = append(lines[:linesMax-1:linesMax-1], fmt.Sprintf("… and %d lines more", len(lines)-linesMax+1))
	}
	for i := range lines {
		if m.width > 0 {
			lines[i] = ansi.Truncate(lines[i], m.width-1, "…")
		}
	}
	return strings.Join(lines, "\n")
}

// line returns the current step, how much of it is done, and the estimated remaining time.
func (m *progressView) line() string {
	spent := m.now.Sub(m.begun)
	parts := []string{m.step}
	if m.total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", m.done, m.total))
		if m.bar {
			parts[0] += " " + bar(m.done, m.total)
		}
	}
	parts = append(parts, Rough(spent))
	if m.done > 0 && m.done < m.total && spent >= time.Second {
		left := time.Duration(float64(spent) / float64(m.done) * float64(m.total-m.done))
		parts = append(parts, "about "+Rough(left)+" left")
	}
	return strings.Join(parts, " · ")
}

// barWidth is the width of the bar in characters.
const barWidth = 24

// bar returns a bar that shows the share of total that is done.
func bar(done, total int) string {
	full := min(barWidth*done/total, barWidth)
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

// Rough formats a duration in seconds, or in minutes from ten minutes on.
func Rough(d time.Duration) string {
	if d < 10*time.Minute {
		return d.Round(time.Second).String()
	}
	d = d.Round(time.Minute)
	if d < time.Hour {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
}

// table returns the interim medians: a row for each policy, or a row for each scenario if there are
// several.
func (m *progressView) table() []string {
	p := &m.last
	of := fmt.Sprintf("medians of %d of %d cells (a scenario, window and seed each)", p.Finished, p.Cells)
	if p.Finished == 0 {
		of = fmt.Sprintf("the first of %d cells (a scenario, window and seed each), so far", p.Cells)
	}
	first := p.SoFar[0].Scenario
	policies := 0
	for policies < len(p.SoFar) && p.SoFar[policies].Scenario == first {
		policies++
	}
	var rows [][]string
	if policies == len(p.SoFar) {
		rows = append(rows, []string{first, "SAVED %", "OUTAGE MIN"})
		for _, x := range p.SoFar {
			rows = append(rows, []string{x.Policy, figureOf(x.Saved, 1), figureOf(x.Outage, 1)})
		}
		return append(aligned(rows), of)
	}
	rows = append(rows, []string{"SAVED % / OUTAGE MIN"})
	for _, x := range p.SoFar[:policies] {
		rows[0] = append(rows[0], x.Policy)
	}
	for i := 0; i < len(p.SoFar); i += policies {
		row := []string{p.SoFar[i].Scenario}
		for _, x := range p.SoFar[i : i+policies] {
			row = append(row, figureOf(x.Saved, 1)+" / "+figureOf(x.Outage, 1))
		}
		rows = append(rows, row)
	}
	return append(aligned(rows), of)
}

// figureOf formats a value. It returns a dash if the value is unknown.
func figureOf(v eval.Value, digits int) string {
	if !v.Known {
		return figures.Unknown
	}
	return figures.Number(v.V, digits)
}

// aligned aligns the first column of rows to the left and the others to the right.
func aligned(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	out := make([]string, len(rows))
	for k, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if i == 0 {
				b.WriteString(cell + space)
			} else {
				b.WriteString("  " + space + cell)
			}
		}
		out[k] = strings.TrimRight(b.String(), " ")
	}
	return out
}
