package aws

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestCauses: one cause of several requests is one text on one line; what differs stays apart.
func TestCauses(t *testing.T) {
	expired := func(action string) error {
		return &RequestError{Action: action, Region: "us-east-1", Kind: ErrExpired, Err: errors.New("ExpiredToken: it is\nold")}
	}
	missing := fmt.Errorf("%w: no role", ErrNoCredentials)
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, nil},
		{missing, []string{"no credentials found: no role"}},
		{errors.Join(missing, errors.Join(missing, missing), nil), []string{"no credentials found: no role"}},
		{expired("ec2:A"), []string{"credentials have expired: ExpiredToken: it is old (ec2:A in us-east-1)"}},
		{
			errors.Join(expired("ec2:A"), missing, expired("ec2:B"), expired("ec2:C")),
			[]string{"credentials have expired: ExpiredToken: it is old (ec2:A in us-east-1 and 2 more)", "no credentials found: no role"},
		},
		{errors.Join(errors.New("a"), errors.New("b")), []string{"a", "b"}},
	} {
		if got := Causes(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v: causes %q, want %q", c.err, got, c.want)
		}
	}
}
