package eval

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
)

//go:embed starter
var starter embed.FS

// starterFiles are the files that init writes, with their embedded sources.
var starterFiles = [...]struct{ path, source string }{
	{"spotter/scenario.yaml", "scenario.yaml"},
	{".github/workflows/spotter.yaml", "github.yaml"},
	{"spotter/gitlab-ci.yml", "gitlab.yaml"},
}

// initCommand returns the command that writes a starter scenario and CI files.
func initCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented scenario, and files with which GitHub and GitLab compare changes of it",
		Long: "init writes a commented scenario, and the files with which GitHub and GitLab compare\n" +
			"every change of it, into the folder DIR, the root of a repository (default: the\n" +
			"current folder). If one of the files exists, nothing is written.",
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return writeStarter(p, append(args, ".")[0]) },
	}
}

func writeStarter(p *cli.Program, dir string) error {
	var paths []string
	for _, f := range starterFiles {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return cli.Invalid(fmt.Errorf("init: %s already exists", path), "move it away, or give another folder")
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return cli.Invalid(fmt.Errorf("init: %w", err), "give a folder that can be written")
		}
	}
	err := cli.ReplaceFiles(paths, func(w io.Writer, i int) error {
		text, err := starter.ReadFile("starter/" + starterFiles[i].source)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return p.Output("", func(w io.Writer) error {
		for _, path := range paths {
			fmt.Fprintln(w, path)
		}
		_, err := fmt.Fprintf(w, "compare policies on the scenario with `spotter eval %s`\n", cli.Shell(paths[:1]))
		return err
	})
}
