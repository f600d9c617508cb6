package tui

import (
	"context"
	"encoding/hex"
	"io"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/eval"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/screen"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
)

// evaluated compares on a short scenario, under a truth and with more reclaims, and
// returns the path of its results.
func evaluated(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	var said strings.Builder
	p := &cli.Program{Args: []string{"eval", "tiny", "--policies", "static:share=0.5,spot", "--seeds", "2", "--windows",
		"2", "--intensity", "20", "--truth", "no-notice", "--out", path},
		Stdout: io.Discard, Stderr: &said}
	if code := p.Run(t.Context(), func(p *cli.Program) []*cobra.Command { return []*cobra.Command{eval.Command(p)} }); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	return path
}

// TestResults repeats every run of a results file. Each has the same hash, and is shown next to a
// run of the baseline, or of another policy if it is the baseline itself. A run that differs or
// cannot be repeated is reported.
func TestResults(t *testing.T) {
	r, err := input.ReadResults(evaluated(t, "results.parquet"))
	if err != nil || r == nil || len(r.Runs) != 16 {
		t.Fatalf("%+v, %v", r, err)
	}
	var got []any
	p := replayer{&tuiFlags{}, r, func(msg any) { got = append(got, msg) }}
	opened := func(i int) *screen.Opened {
		t.Helper()
		got = nil
		p.again(t.Context(), i)
		o, ok := got[0].(screen.Opened)
		if !ok {
			t.Fatalf("run %d: it sends %+v", i, got[0])
		}
		return &o
	}
	hashes := map[string]bool{}
	for i := range r.Runs {
		x := &r.Runs[i]
		o := opened(i)
		res, err, done := o.Runs[0].Timeline.Ended()
		if err != nil || !done || hex.EncodeToString(res.Hash[:]) != x.Hash || o.Runs[0].Name != x.Policy || !o.AtStory || o.Title != "tiny" {
			t.Errorf("run %d, %+v, is done again as %+v, %v", i, x, o.Runs[0], err)
		}
		if len(o.Runs) != 2 || (o.Runs[1].Name == r.Baseline) == (x.Policy == r.Baseline) {
			t.Errorf("run %d, %s, stands beside %+v", i, x.Policy, o.Runs[1:])
		}
		hashes[x.Hash] = true
	}
	if len(hashes) < 9 || len(p.warnings) != 0 {
		t.Errorf("%d runs differ; warnings %v", len(hashes), p.warnings)
	}
	r.Runs[1].Hash = r.Runs[2].Hash
	opened(1)
	if n, ok := got[len(got)-1].(screen.Noted); !ok || !strings.Contains(string(n), "is not the run of the file") || len(p.warnings) != 1 {
		t.Errorf("of a run that differs it says %+v", got)
	}
	r.Runs[1].Scenario, got = "gone.yaml", nil
	if p.again(t.Context(), 1); !strings.Contains(got[0].(screen.Unopened).Err.Error(), "gone.yaml") {
		t.Errorf("of a run without its scenario it says %+v", got)
	}
	r.Runs[2].Case.Truth, got = "none such", nil
	if p.again(t.Context(), 2); !strings.Contains(got[0].(screen.Unopened).Err.Error(), "none such") {
		t.Errorf("of a run under an unknown truth it says %+v", got)
	}
}

// TestChoose lists runs, plays the last one chosen and ends with the screen.
func TestChoose(t *testing.T) {
	path := evaluated(t, "results.json")
	r, err := input.ReadResults(path)
	if err != nil {
		t.Fatal(err)
	}
	f := tuiFlags{}
	f.Flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	_, play, err := f.results(path, r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	titles, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		play(ctx, func(msg any) {
			switch msg := msg.(type) {
			case screen.Listed:
				for i := range msg.Rows {
					msg.Choose(i)
				}
			case screen.Opened:
				titles <- msg.Runs[0].Name
			}
		})
	}()
	last := r.Runs[len(r.Runs)-1].Policy
	for name := range titles {
		if name == last {
			break
		}
	}
	leave()
	<-done
}

// TestStoryOfDefault: the default scenario opens at an outage that only one of the two policies
// has.
func TestStoryOfDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("three runs of a week")
	}
	c := Command(&cli.Program{})
	f := tuiFlags{seed: storySeed, atStory: true}
	f.Register(pflag.NewFlagSet("", pflag.ContinueOnError))
	sc, err := input.LoadScenario(t.Context(), input.DefaultScenario)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := input.ParsePolicies(c.Flags().Lookup("policies").DefValue)
	if err != nil {
		t.Fatal(err)
	}
	m := screen.New("x", draw.Plain)
	m.Update(tea.WindowSizeMsg{Width: 150, Height: 44})
	var o screen.Opened
	f.play(t.Context(), func(msg any) {
		if x, ok := msg.(screen.Opened); ok {
			o = x
		}
	}, sc, input.DefaultScenario, specs)
	m.Update(o)
	if s := m.View(); !strings.Contains(s, "karpenter has a ") || !strings.Contains(s, " outage, portfolio none") {
		t.Errorf("the screen does not begin at an outage of karpenter alone:\n%s", s)
	}
}
