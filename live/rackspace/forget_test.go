package rackspace

import (
	"errors"
	"fmt"
	"testing"
)

// The credentials of accounts that no pool names any more are not kept, and a call that was
// under way with one ends as any other.
func TestAccountsAreForgotten(t *testing.T) {
	used, gone := accountKey{cloudspace: "used"}, accountKey{cloudspace: "gone"}
	x := &accountTable{byKey: map[accountKey]*account{used: {key: used}, gone: {key: gone}}}
	x.keepOnly(map[accountKey]error{used: nil})
	if len(x.byKey) != 1 || x.byKey[used] == nil {
		t.Errorf("kept are %v", x.byKey)
	}
	if err := fmt.Errorf("refused: %w", errLogin); !errors.Is(x.failed(gone, err), err) {
		t.Error("the error of a call was changed")
	}
}
