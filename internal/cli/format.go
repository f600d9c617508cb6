package cli

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// Invocation returns the command line of this call.
func (p *Program) Invocation() string { return Shell(append([]string{"spotter"}, p.Args...)) }

// Shell quotes and joins words for a shell.
func Shell(words []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%"
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.Trim(w, plain) != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Minute formats t to the minute, in UTC.
func Minute(t policy.Time) string { return t.Std().Format("2006-01-02 15:04") }

// FirstOf returns the first n words, and the number of remaining ones.
func FirstOf(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}
