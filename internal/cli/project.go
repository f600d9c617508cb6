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

// ProjectFile is read from the current folder. It contains a key for each command that reads it,
// and below it a key for each flag, so that a team need not repeat them.
const ProjectFile = ".spotter.yaml"

// ProjectVariable disables the file if set to "off". The other side of a comparison uses this,
// because its command line contains all flags.
const ProjectVariable = "SPOTTER_PROJECT"

// projectCommands are the commands that read the file. Commands that access a cluster do not.
var projectCommands = []string{"eval", "sim", "plot", "tui", "whatif"}

// readProject sets the flags of c that are not on the command line to the values in the file, and
// adds them to p.Args, so that the command can be repeated without the file.
func (p *Program) readProject(c *cobra.Command) error {
	name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	if p.WithoutProject || !slices.Contains(projectCommands, name) || os.Getenv(ProjectVariable) == "off" {
		return nil
	}
	file, err := openProject()
	if err != nil {
		return err
	}
	var added []string
	given := map[string]bool{}
	c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, flag := range slices.Sorted(maps.Keys(file[name])) {
		at := fmt.Sprintf("%s:%d: %s.%s", ProjectFile, file[name][flag].line, name, flag)
		if f := c.Flags().Lookup(flag); f == nil || f.Hidden {
			return Invalid(fmt.Errorf("%s: there is no flag --%s%s", at, flag, Meant(flag, flagNames(c))), projectAdvice)
		}
		if given[flag] {
			continue
		}
		for _, value := range file[name][flag].values {
			if err := c.Flags().Set(flag, value); err != nil {
				return Invalid(fmt.Errorf("%s: %w", at, plainError(err)), projectAdvice)
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

const projectAdvice = "fix it, or set " + ProjectVariable + "=off to leave it out"

// A projectFlag contains the values of a flag in the file, as written.
type projectFlag struct {
	line   int
	values []string
}

// openProject reads the file. It returns flags by command and name, nil if there is no file.
func openProject() (map[string]map[string]projectFlag, error) {
	text, err := os.ReadFile(ProjectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Invalid(err, projectAdvice)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, Invalid(fmt.Errorf("%s: %w", ProjectFile, err), projectAdvice)
	}
	if len(document.Content) == 0 { // the file only contains comments
		return nil, nil
	}
	commands, err := projectMapping("", document.Content[0])
	if err != nil {
		return nil, err
	}
	file := map[string]map[string]projectFlag{}
	for _, command := range commands {
		if !slices.Contains(projectCommands, command.key) {
			return nil, projectFault(command.value, command.key, "is not one of "+strings.Join(projectCommands, ", "))
		}
		flags, err := projectMapping(command.key, command.value)
		if err != nil {
			return nil, err
		}
		file[command.key] = map[string]projectFlag{}
		for _, flag := range flags {
			values := []*yaml.Node{flag.value}
			if flag.value.Kind == yaml.SequenceNode {
				values = flag.value.Content
			}
			one := projectFlag{line: flag.value.Line}
			for _, v := range values {
				if v.Kind != yaml.ScalarNode {
					return nil, projectFault(v, command.key+"."+flag.key, "want a value or a list of values, got "+nodeKinds[v.Kind])
				}
				one.values = append(one.values, v.Value)
			}
			file[command.key][flag.key] = one
		}
	}
	return file, nil
}

var nodeKinds = map[yaml.Kind]string{yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping",
	yaml.ScalarNode: "a value", yaml.AliasNode: "an alias"}

// A projectEntry is a key of a mapping and its value.
type projectEntry struct {
	key   string
	value *yaml.Node
}

// projectMapping returns the entries of the mapping in a field.
func projectMapping(field string, n *yaml.Node) (all []projectEntry, err error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, projectFault(n, field, "want a mapping, got "+nodeKinds[n.Kind])
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, projectEntry{n.Content[i].Value, n.Content[i+1]})
	}
	return all, nil
}

// projectFault returns the error for a field of the file.
func projectFault(n *yaml.Node, field, problem string) error {
	if field != "" {
		field += ": "
	}
	return Invalid(fmt.Errorf("%s:%d: %s%s", ProjectFile, n.Line, field, problem), projectAdvice)
}
