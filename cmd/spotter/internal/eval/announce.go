package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
)

// A comparison of at least cellsAnnounced cells (a scenario, window and seed each) first prints the
// number of its runs and their estimated time, which takes the time of one cell. One that is
// estimated to take longer than askBeyond requires confirmation, and is refused without a terminal.
const (
	cellsAnnounced = 100
	askBeyond      = time.Hour
)

// announce prints the size of the comparison of cfg, of which runs runs remain. It returns the
// progress display to use from then on.
func (f *evalFlags) announce(ctx context.Context, p *cli.Program, shown *progress.Progress, cfg *eval.Config,
	runs int, run eval.Runner) (*progress.Progress, error) {
	policies := cfg.Compared()
	cells := (runs + len(policies) - 1) / len(policies)
	if cells < cellsAnnounced {
		return shown, nil
	}
	began := time.Now()
	first := eval.Config{Policies: policies, Cases: cfg.Cases[:1], Seeds: cfg.Seeds[:1], Parallel: 1}
	rows, err := eval.Cells(ctx, &first, run)
	if err != nil {
		return shown, err
	}
	if eval.Broken(rows) != nil {
		return shown, nil // the comparison reports it
	}
	left := timeOf(time.Since(began), cells, runtime.GOMAXPROCS(0))
	text := fmt.Sprintf("%d runs, about %s if all take as long as the first: %d policies × %d cells, %s",
		runs, progress.Rough(left), len(policies), cells, f.SeedsText(cfg.Seeds))
	if left <= askBeyond || f.yes {
		fmt.Fprintln(p.Stderr, text)
		return shown, nil
	}
	const advice = "give fewer seeds, windows or policies, or --yes to run it all the same"
	if in := os.Stdin; shown.OnTerminal() && term.IsTerminal(int(in.Fd())) {
		shown.Close(p)
		if confirm(in, p.Stderr, text) {
			return progress.Show(ctx, p, string(eval.StepRuns)), nil
		}
		return nil, cli.Invalid(errors.New("nothing was run"), advice)
	}
	return shown, cli.Invalid(fmt.Errorf("a comparison of more than an hour needs --yes: %s", text), advice)
}

// timeOf returns the estimated time of cells cells if one cell takes spent on one processor.
func timeOf(spent time.Duration, cells, processors int) time.Duration {
	return time.Duration(float64(spent) * float64(cells) / float64(min(processors, cells)))
}

// confirm prompts whether to continue. Every answer other than yes means no.
func confirm(in io.Reader, out io.Writer, text string) bool {
	fmt.Fprintf(out, "%s. Continue? [y/N] ", text)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
