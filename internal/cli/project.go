package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// ProjectFile is read in the folder of a call. It has a key for each command that reads
// it, and below that one for each flag: what a team would else repeat in every call.
const ProjectFile = ".spotter.yaml"

// ProjectVariable switches the file off where it is set to "off", as for the other side
// of a comparison, whose flags are all given.
const ProjectVariable = "SPOTTER_PROJECT"

// projectCommands are the commands that read the file. What touches a cluster does not.
var projectCommands = []string{"eval", "sim", "plot", "tui", "whatif"}

// readProject gives the flags of c that are not in the call the values of the project's
// file, and adds them to the call, so that whoever repeats it needs no file.
func (p *Program) readProject(c *cobra.Command) error {
	name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	if !slices.Contains(projectCommands, name) || os.Getenv(ProjectVariable) == "off" {
		return nil
	}
	file, err := openProject()
	if err != nil {
		return Invalid(fmt.Errorf("%s: %w", ProjectFile, err), projectAdvice)
	}
	var added []string
	given := map[string]bool{}
	c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, flag := range slices.Sorted(maps.Keys(file[name])) {
		if f := c.Flags().Lookup(flag); f == nil || f.Hidden {
			return Invalid(fmt.Errorf("%s: %s.%s: there is no flag --%s%s", ProjectFile, name, flag, flag, Meant(flag, flagNames(c))), projectAdvice)
		}
		if given[flag] {
			continue
		}
		node := file[name][flag]
		values := []*yaml.Node{&node}
		if node.Kind == yaml.SequenceNode {
			values = node.Content
		}
		for _, v := range values {
			value := v.Value // as it is written: a date stays one
			if err := c.Flags().Set(flag, value); err != nil {
				return Invalid(fmt.Errorf("%s: %s.%s: %w", ProjectFile, name, flag, plainError(err)), projectAdvice)
			}
			added = append(added, "--"+flag+"="+value)
		}
	}
	end := len(p.Args)
	if i := slices.Index(p.Args, "--"); i >= 0 {
		end = i
	}
	p.Args = slices.Insert(slices.Clone(p.Args), end, added...)
	return nil
}

const projectAdvice = "mend it, or set " + ProjectVariable + "=off to leave it out"

// openProject reads the file: values by command and flag, none where there is no file.
func openProject() (map[string]map[string]yaml.Node, error) {
	text, err := os.ReadFile(ProjectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var file map[string]map[string]yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	for command := range file {
		if !slices.Contains(projectCommands, command) {
			err = fmt.Errorf("%q is none of %s", command, strings.Join(projectCommands, ", "))
		}
	}
	return file, err
}
