package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A topCall is the values of the flags of the command top.
type topCall struct {
	cluster access.Cluster
	sort    string
	watch   bool
	form    cli.Form
}

// Command returns the command top.
func Command(p *cli.Program) *cobra.Command {
	var f topCall
	c := &cobra.Command{
		Use:   "top",
		Short: "List the nodes of a cluster with their market, price, age and use",
		Long: "top lists the nodes of a running cluster with their pool, instance type, zone, price,\n" +
			"age and use (what pods request of what is allocatable), and marks nodes that are under\n" +
			"notice or being drained. It needs the rights to list nodes and pods, and changes\n" +
			"nothing. Spot prices are read from AWS or from the feed of Rackspace; where neither can\n" +
			"be reached, recorded prices are shown, marked with ~.",
		Example: "  spotter top\n  spotter top --sort price --context production\n  spotter top -o json",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return run(c.Context(), p, &f) },
	}
	flags := c.Flags()
	f.cluster.Register(flags)
	f.form.Register(c)
	flags.StringVar(&f.sort, "sort", "pool", "sort by `COLUMN`: "+strings.Join(orderNames, ", "))
	cli.Complete(c, "sort", orderNames)
	flags.BoolVarP(&f.watch, "watch", "w", false, "refresh every 5 seconds until Ctrl-C")
	return c
}

const (
	// readWait is the timeout for reading all nodes and pods.
	readWait = time.Minute

	// watchEvery is the interval between two reads of --watch.
	watchEvery = 5 * time.Second
)

func run(ctx context.Context, p *cli.Program, f *topCall) error {
	if err := new(Table).Sort(f.sort); err != nil {
		return cli.Invalid(fmt.Errorf("--sort: %q is unknown: %w", f.sort, err), "run `spotter top --help`")
	}
	screen := terminal(p)
	if f.watch && (screen == nil || f.form.String() == cli.FormJSON || f.form.String() == cli.FormYAML) {
		return cli.Invalid(errors.New("--watch: it needs a terminal, and a table"), "leave --watch out")
	}
	cfg, err := f.cluster.Config(p.Version)
	if err != nil {
		return err
	}
	access.QuietClients()
	if _, err := access.Ask(ctx, cfg); err != nil {
		return err
	}
	c, err := access.Client(cfg)
	if err != nil {
		return err
	}
	var prices Prices
	if f.watch {
		return watch(ctx, p, f, c, &prices, screen)
	}
	t, err := read(ctx, c, &prices, f.sort)
	if err != nil {
		return err
	}
	width := p.Width("")
	return p.Print(&f.form, t, func(w io.Writer, wide bool) error { return t.write(w, width, wide) })
}

// read reads a sorted table within readWait.
func read(ctx context.Context, c client.Reader, prices *Prices, by string) (*Table, error) {
	ctx, stop := context.WithTimeout(ctx, readWait)
	defer stop()
	t, err := Read(ctx, c, prices, time.Now())
	if err != nil {
		return nil, err
	}
	return t, t.Sort(by)
}

// terminal returns standard output if it is a terminal, otherwise nil.
func terminal(p *cli.Program) *os.File {
	if out, ok := cli.File(p.Stdout); ok && term.IsTerminal(int(out.Fd())) {
		return out
	}
	return nil
}

// watch redraws the table until ctx ends. If a read fails, it keeps the last table and shows the
// error below it.
func watch(ctx context.Context, p *cli.Program, f *topCall, c client.Reader, prices *Prices, screen *os.File) error {
	var last *Table
	for {
		t, err := read(ctx, c, prices, f.sort)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // that it was stopped is no error
		}
		switch {
		case err != nil && last == nil:
			return err
		case err == nil:
			last = t
		}
		width, height, sizeErr := term.GetSize(int(screen.Fd()))
		if sizeErr != nil {
			return sizeErr
		}
		frame := last.fit(width, height-1, f.form.String() == cli.FormWide)
		if err != nil {
			frame = append(frame[:min(len(frame), height-2)], fmt.Sprintf("as of %s; later reads failed: %s",
				last.At.Format(time.TimeOnly), cli.FirstLine(err)))
		}
		if err := draw(screen, frame, width); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// fit returns the table in at most height lines, with fewer nodes if they do not fit.
func (t *Table) fit(width, height int, wide bool) []string {
	for rows := len(t.Nodes); rows > 0; rows-- {
		if lines := t.Lines(width, rows, wide); len(lines) <= height {
			return lines
		}
	}
	lines := t.Lines(width, 0, wide)
	return lines[:min(len(lines), max(1, height))]
}

// draw replaces the content of the terminal by lines.
func draw(w io.Writer, lines []string, width int) error {
	var b strings.Builder
	b.WriteString(ansi.CursorHomePosition)
	for _, line := range lines {
		b.WriteString(ansi.Truncate(figures.Plain(line), width, "…") + ansi.EraseLineRight + "\r\n")
	}
	b.WriteString(ansi.EraseScreenBelow)
	_, err := io.WriteString(w, b.String())
	return err
}
