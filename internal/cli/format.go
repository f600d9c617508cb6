package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Invocation returns the command that this call is.
func (p *Program) Invocation() string { return Shell(append([]string{"spotter"}, p.Args...)) }

// Shell joins words so that a shell splits them again.
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

// Count writes a number of things that have a regular plural.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Hours formats d in hours.
func Hours(d time.Duration) string { return fmt.Sprintf("%.4g h", d.Hours()) }

// Clock formats a duration to three digits.
func Clock(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.3g days", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.3g h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.3g min", d.Minutes())
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// FirstOf returns the first n words, and how many there are beyond them.
func FirstOf(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}
