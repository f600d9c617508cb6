package main

import (
	"path/filepath"
	"testing"
)

// TestTableFits: each line of the table is in the code exactly once, so that a change of the
// code that moves or renames one is noticed with it.
func TestTableFits(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	all, err := chosen(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i := range all {
		if _, err := all[i].apply(); err != nil {
			t.Error(err)
		}
		if names[all[i].Name] {
			t.Errorf("two mutations are called %s", all[i].Name)
		}
		names[all[i].Name] = true
	}
}
