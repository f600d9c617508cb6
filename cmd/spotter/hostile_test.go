package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy/record"
)

// lie is a line that a hostile text tries to add to an output.
const lie = "all is well"

// hostile acts on a terminal, hides, ends lines, cells, code and quotes, and names a person, an issue and a page.
const hostile = "\x1b[2J\x1b]0;x\a\r\n" + lie +
	"\n\t|`</td><img src=x onerror=y>\u009b31m\u202e\u2066\u200b\x7f@octocat #1 https://example.com \"'\\\xff"

// isSafe fails where text has a character that does not show, or a line of its own that hostile made.
func isSafe(t *testing.T, what, text string) {
	t.Helper()
	for at, r := range text {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x200b ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069) {
			t.Errorf("%s: %q at %q", what, r, text[max(0, at-60):min(len(text), at+60)])
			return
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, lie) {
			t.Errorf("%s: a line of its own: %q", what, line)
			return
		}
	}
}

// plantIn appends hostile to every text of v that is of someone else's choice.
func plantIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.String() != "" {
			v.SetString(v.String() + hostile)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plantIn(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			plantIn(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			plantIn(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			entry := []reflect.Value{reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()}
			entry[0].Set(k)
			entry[1].Set(v.MapIndex(k))
			plantIn(entry[0])
			plantIn(entry[1])
			v.SetMapIndex(k, reflect.Value{})
			v.SetMapIndex(entry[0], entry[1])
		}
	}
}

// hostileRecording is a recording in which every text is hostile.
func hostileRecording(t *testing.T) string {
	t.Helper()
	r, err := record.Open(recordedRun(t, "portfolio"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "hostile")
	meta := r.Meta
	meta.Scenario += hostile
	w, err := record.NewWriter(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if s.Number > 150 {
			break
		}
		// The steps share what they point to, so each is changed as a copy.
		var snapshot = *s.Snapshot
		for _, part := range []any{&snapshot, &s.Memory, &s.Plan} {
			text, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			fresh := reflect.New(reflect.TypeOf(part).Elem())
			if err := json.Unmarshal(text, fresh.Interface()); err != nil {
				t.Fatal(err)
			}
			plantIn(fresh.Elem())
			reflect.ValueOf(part).Elem().Set(fresh.Elem())
		}
		if err := w.Record(t.Context(), &snapshot, &s.Memory, &s.Plan); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHostileRecording: whatever the texts of a recording are, no command that reads it writes one that acts on a
// terminal, hides, or makes a line of its own.
func TestHostileRecording(t *testing.T) {
	dir := hostileRecording(t)
	calls := [][]string{
		{"explain", "--run", dir, "-o", "wide"}, {"explain", "--run", dir, "-o", "json"}, {"explain", "--run", dir, "-o", "yaml"},
		{"replay", dir}, {"replay", dir, "--policy", "static:share=0.9", "--show", "0"}, {"replay", dir, "-o", "json"},
		{"bill", dir, "--by", "pool"}, {"bill", dir, "--by", "namespace"}, {"bill", dir}, {"bill", dir, "--format", "opencost"},
		{"plot", "--run", dir, "--out", t.TempDir()},
		{"tui", "--run", dir}, {"__complete", "explain", "--run", dir, "--node", ""},
	}
	for step := 1; step <= 150; step += 7 {
		calls = append(calls, []string{"explain", "--run", dir, "--step", fmt.Sprint(step)})
	}
	shown := 0
	for _, args := range calls {
		code, stdout, stderr := call(t, args...)
		isSafe(t, strings.Join(args, " ")+": standard output", stdout)
		isSafe(t, strings.Join(args, " ")+": standard error", stderr)
		if code > 2 {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
		shown += strings.Count(stdout, lie)
	}
	if shown < 1000 {
		t.Errorf("the hostile text was shown %d times: the test does not reach what is shown", shown)
	}
}
